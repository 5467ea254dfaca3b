//! How requests travel to a resource that has a front.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How the requests of holders, and the kit's own, travel to a resource that has a front.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transport {
    /// What clients speak.
    pub http: Http,
    /// What stands between the path and the resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<Proxy>,
}

/// A version of HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Http {
    /// HTTP/1.1.
    #[default]
    #[serde(rename = "http1")]
    One,
    /// HTTP/2 without TLS, spoken from the first byte on.
    #[serde(rename = "http2")]
    Two,
}

/// A proxy that the kit starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Proxy {
    /// nginx, which speaks HTTP/1.1 to the resource.
    #[serde(rename = "nginx")]
    Nginx,
}

impl Http {
    /// Its name, such as `http2`.
    pub fn as_str(self) -> &'static str {
        match self {
            Http::One => "http1",
            Http::Two => "http2",
        }
    }
}

impl Proxy {
    /// Its name, such as `nginx`.
    pub fn as_str(self) -> &'static str {
        match self {
            Proxy::Nginx => "nginx",
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.http {
            Http::One => "HTTP/1.1",
            Http::Two => "HTTP/2",
        })?;
        match self.through {
            Some(Proxy::Nginx) => f.write_str(" through nginx"),
            None => Ok(()),
        }
    }
}

/// A text names no transport. Use one of those that it lists.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no \"{named}\"; there are {known}")]
pub struct UnknownTransport {
    named: String,
    known: &'static str,
}

impl FromStr for Http {
    type Err = UnknownTransport;

    fn from_str(text: &str) -> Result<Http, UnknownTransport> {
        match text {
            "http1" => Ok(Http::One),
            "http2" => Ok(Http::Two),
            _ => Err(UnknownTransport {
                named: text.to_owned(),
                known: "http1 and http2",
            }),
        }
    }
}

impl FromStr for Proxy {
    type Err = UnknownTransport;

    fn from_str(text: &str) -> Result<Proxy, UnknownTransport> {
        match text {
            "nginx" => Ok(Proxy::Nginx),
            _ => Err(UnknownTransport {
                named: text.to_owned(),
                known: "nginx",
            }),
        }
    }
}
