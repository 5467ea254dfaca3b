//! The layer and its service.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use fence_core::Claim;
use tower::{Layer, Service};

use super::bound::Bound;
use super::error::{ClientError, Unknown};
use super::sort::sort;
use super::wire::{Outgoing, Reply, SendError};
use crate::header::{FENCING_TOKEN, header_value};

/// What tokens are read from: a live hold, or a closure that asks one, such as `move || hold.claim()`.
pub trait Holder {
    /// Why no work may start.
    type Error: Error + Send + Sync + 'static;

    /// The claim for a request that is sent now.
    ///
    /// # Errors
    ///
    /// When no work may start under the hold any more.
    fn claim(&self) -> Result<Claim, Self::Error>;
}

impl<F, E> Holder for F
where
    F: Fn() -> Result<Claim, E>,
    E: Error + Send + Sync + 'static,
{
    type Error = E;

    fn claim(&self) -> Result<Claim, E> {
        self()
    }
}

/// Layer that sends every request under one hold's grant. See the [module](crate::client).
///
/// All its services belong to the same grant.
#[derive(Debug)]
pub struct ClientLayer<H> {
    holder: Arc<H>,
    bound: Arc<Bound>,
    timeout: Duration,
}

impl<H: Holder> ClientLayer<H> {
    /// A layer over a hold. An answer is waited for for 30 s.
    pub fn new(holder: H) -> ClientLayer<H> {
        ClientLayer {
            holder: Arc::new(holder),
            bound: Arc::new(Bound::default()),
            timeout: Duration::from_secs(30),
        }
    }

    /// Waits so long for an answer, and calls the outcome unknown then. The end of the hold cuts no request short: that would
    /// be one that may or may not be on its way.
    pub fn timeout(mut self, timeout: Duration) -> ClientLayer<H> {
        self.timeout = timeout;
        self
    }
}

impl<S, H> Layer<S> for ClientLayer<H> {
    type Service = Client<S, H>;

    fn layer(&self, inner: S) -> Client<S, H> {
        Client {
            inner,
            holder: Arc::clone(&self.holder),
            bound: Arc::clone(&self.bound),
            timeout: self.timeout,
        }
    }
}

/// Service that sends every request under one hold's grant. See the [module](crate::client).
#[derive(Debug)]
pub struct Client<S, H> {
    inner: S,
    holder: Arc<H>,
    bound: Arc<Bound>,
    timeout: Duration,
}

impl<S: Clone, H> Clone for Client<S, H> {
    fn clone(&self) -> Client<S, H> {
        Client {
            inner: self.inner.clone(),
            holder: Arc::clone(&self.holder),
            bound: Arc::clone(&self.bound),
            timeout: self.timeout,
        }
    }
}

impl<S, H, Req> Service<Req> for Client<S, H>
where
    S: Service<Req>,
    S::Response: Reply + 'static,
    S::Error: SendError + 'static,
    S::Future: Send + 'static,
    H: Holder,
    Req: Outgoing,
{
    type Response = S::Response;
    type Error = ClientError;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, ClientError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ClientError>> {
        // Nothing has been sent yet, whatever the client inside says.
        self.inner
            .poll_ready(cx)
            .map_err(|error| ClientError::NotConnected(Box::new(error)))
    }

    fn call(&mut self, mut request: Req) -> Self::Future {
        if let Err(error) = self.put_token(&mut request) {
            return Box::pin(async move { Err(error) });
        }
        // Begun here and now: the token was read for this.
        let sent = self.inner.call(request);
        let (bound, timeout) = (Arc::clone(&self.bound), self.timeout);
        Box::pin(async move {
            let answered = async {
                match sent.await {
                    Ok(reply) => sort(reply).await,
                    Err(error) if error.was_never_sent() => Err(ClientError::NotConnected(Box::new(error))),
                    Err(error) => Err(ClientError::Unknown(Unknown::Lost(Box::new(error)))),
                }
            };
            let outcome = tokio::time::timeout(timeout, answered)
                .await
                .unwrap_or(Err(ClientError::Unknown(Unknown::TimedOut(timeout))));
            if let Err(ClientError::Refused(refused)) = &outcome
                && refused.is_terminal()
            {
                bound.end(refused);
            }
            outcome
        })
    }
}

impl<S, H: Holder> Client<S, H> {
    fn put_token<Req: Outgoing>(&self, request: &mut Req) -> Result<(), ClientError> {
        let headers = request.headers_mut();
        if headers.contains_key(FENCING_TOKEN) {
            return Err(ClientError::TokenGiven);
        }
        let claim = self
            .holder
            .claim()
            .map_err(|error| ClientError::NotHeld(Box::new(error)))?;
        self.bound.take(&claim)?;
        headers.insert(FENCING_TOKEN, header_value(&claim));
        Ok(())
    }
}
