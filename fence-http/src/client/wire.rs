//! What the layer must know of a client's own types: those of `http`, which hyper has, and those of reqwest.

use std::error::Error;
use std::pin::pin;

use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::BodyExt as _;

/// A request to be sent.
pub trait Outgoing {
    /// Its headers.
    fn headers_mut(&mut self) -> &mut HeaderMap;
}

/// An answer that begins to arrive.
pub trait Reply: Send {
    /// Its status.
    fn status(&self) -> StatusCode;
    /// Its headers.
    fn headers(&self) -> &HeaderMap;
    /// Its body, cut at so many bytes or where the connection was.
    fn read(self, limit_bytes: usize) -> impl Future<Output = Bytes> + Send;
}

/// Why a client has no answer.
pub trait SendError: Error + Send + Sync {
    /// Whether no byte of the request can have left, such as where no connection came about.
    fn was_never_sent(&self) -> bool {
        false
    }
}

impl<B> Outgoing for Request<B> {
    fn headers_mut(&mut self) -> &mut HeaderMap {
        Request::headers_mut(self)
    }
}

impl<B> Reply for Response<B>
where
    B: Body + Send,
    B::Data: Send,
{
    fn status(&self) -> StatusCode {
        Response::status(self)
    }

    fn headers(&self) -> &HeaderMap {
        Response::headers(self)
    }

    async fn read(self, limit_bytes: usize) -> Bytes {
        let mut body = pin!(self.into_body());
        let mut read = BytesMut::new();
        while let Some(Ok(frame)) = body.frame().await {
            if let Ok(mut data) = frame.into_data() {
                let left = limit_bytes - read.len();
                read.extend_from_slice(&data.copy_to_bytes(data.remaining().min(left)));
            }
            if read.len() == limit_bytes {
                break;
            }
        }
        read.freeze()
    }
}

impl SendError for std::convert::Infallible {}
impl SendError for std::io::Error {}

#[cfg(feature = "hyper-util")]
impl SendError for hyper_util::client::legacy::Error {
    fn was_never_sent(&self) -> bool {
        self.is_connect()
    }
}

#[cfg(feature = "reqwest")]
mod reqwest {
    use bytes::{Bytes, BytesMut};
    use http::{HeaderMap, StatusCode};

    use super::{Outgoing, Reply, SendError};

    impl Outgoing for reqwest::Request {
        fn headers_mut(&mut self) -> &mut HeaderMap {
            reqwest::Request::headers_mut(self)
        }
    }

    impl Reply for reqwest::Response {
        fn status(&self) -> StatusCode {
            reqwest::Response::status(self)
        }

        fn headers(&self) -> &HeaderMap {
            reqwest::Response::headers(self)
        }

        async fn read(mut self, limit_bytes: usize) -> Bytes {
            let mut read = BytesMut::new();
            while let Ok(Some(chunk)) = self.chunk().await {
                let left = limit_bytes - read.len();
                read.extend_from_slice(&chunk[..chunk.len().min(left)]);
                if read.len() == limit_bytes {
                    break;
                }
            }
            read.freeze()
        }
    }

    impl SendError for reqwest::Error {
        fn was_never_sent(&self) -> bool {
            self.is_connect() || self.is_builder()
        }
    }
}
