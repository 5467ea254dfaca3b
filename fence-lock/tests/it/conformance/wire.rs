//! A client behind the proxy, as the suite disturbs it.

use std::sync::Arc;
use std::time::Duration;

use fence_lock::LockStore;
use fence_lock::conformance::{BenchError, Wire};
use futures_util::future::BoxFuture;

use crate::proxy::{Connection, Proxy};

/// How many bytes of a protocol are a whole request or answer, and not what keeps a connection alive.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    pub(super) request: usize,
    pub(super) answer: usize,
}

pub(super) struct ProxyWire {
    proxy: Proxy,
    client: Arc<dyn LockStore>,
    sizes: Sizes,
}

impl ProxyWire {
    pub(super) fn new(proxy: Proxy, client: Arc<dyn LockStore>, sizes: Sizes) -> ProxyWire {
        ProxyWire { proxy, client, sizes }
    }

    async fn any(&self, so: impl Fn(&Connection) -> bool) -> Result<(), BenchError> {
        until(|| self.proxy.connections().iter().any(|connection| so(connection))).await
    }
}

async fn until(so: impl Fn() -> bool) -> Result<(), BenchError> {
    for _ in 0..10_000 {
        if so() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Err("what the case waited for did not come to lie on the path".into())
}

impl Wire for ProxyWire {
    fn client(&self) -> Arc<dyn LockStore> {
        Arc::clone(&self.client)
    }

    fn hold_requests(&self) {
        for connection in self.proxy.connections() {
            connection.hold_requests();
        }
    }

    fn holds_a_request(&self) -> BoxFuture<'_, Result<(), BenchError>> {
        Box::pin(self.any(|connection| connection.requests_held() >= self.sizes.request))
    }

    fn hold_answers(&self) {
        for connection in self.proxy.connections() {
            connection.hold_answers();
        }
    }

    fn holds_an_answer(&self) -> BoxFuture<'_, Result<(), BenchError>> {
        Box::pin(self.any(|connection| connection.answers_held() >= self.sizes.answer))
    }

    fn cut(&self) {
        self.proxy.cut();
    }

    fn let_go(&self) -> BoxFuture<'_, Result<(), BenchError>> {
        Box::pin(async move {
            let mut answers = Vec::new();
            for connection in self.proxy.connections() {
                if connection.requests_held() >= self.sizes.request {
                    answers.push((Arc::clone(&connection), connection.answered() + self.sizes.answer));
                }
                connection.release_requests();
                connection.release_answers();
            }
            until(|| {
                answers
                    .iter()
                    .all(|(connection, enough)| connection.answered() >= *enough)
            })
            .await
        })
    }
}
