//! The suite's bench on PostgreSQL.

use std::sync::Arc;
use std::time::Duration;

use fence_core::{ClassName, Epoch, GrantId, Key};
use fence_lock::conformance::{Bench, BenchError, Place, Wire};
use fence_lock::{LockStore, PostgresStore};
use futures_util::future::BoxFuture;
use pause_kit::services::DatabaseUrl;

use super::wire::{ProxyWire, Sizes};
use crate::proxy::Proxy;
use crate::support::{database, postgres, tier};

/// Every request begins with its transaction's settings, and every answer ends with their tags; nothing else is sent.
const SIZES: Sizes = Sizes {
    request: 200,
    answer: 40,
};

pub(super) struct PostgresBench {
    /// How often waiters ask again; none listens for what wakes them.
    pub(super) poll: Option<Duration>,
    /// The port of a pooler that clients go through.
    pub(super) pooler: Option<u16>,
}

struct Database {
    /// Where the clients reach it.
    address: DatabaseUrl,
    port: u16,
    store: PostgresStore,
    poll: Option<Duration>,
}

async fn open(address: &str, poll: Option<Duration>) -> Result<PostgresStore, BenchError> {
    Ok(match poll {
        Some(interval) => PostgresStore::poll_every(address, tier(), interval).await?,
        None => PostgresStore::connect(address, tier()).await?,
    })
}

impl Bench for PostgresBench {
    fn place(&self) -> BoxFuture<'_, Result<Box<dyn Place>, BenchError>> {
        Box::pin(async {
            let address = database().await;
            let store = open(address.as_str(), self.poll).await?;
            store.install().await?;
            store.init(Epoch::FIRST, "a test").await?;
            let port = match self.pooler {
                Some(port) => port,
                None => postgres().await.port(),
            };
            let place: Box<dyn Place> = Box::new(Database {
                address: address.through(port),
                port,
                store,
                poll: self.poll,
            });
            Ok(place)
        })
    }

    /// A connection costs some thousand rounds of hashing on this side.
    fn at_once(&self) -> usize {
        4
    }
}

impl Place for Database {
    fn client(&self) -> BoxFuture<'_, Result<Arc<dyn LockStore>, BenchError>> {
        Box::pin(async {
            let client: Arc<dyn LockStore> = Arc::new(open(self.address.as_str(), self.poll).await?);
            Ok(client)
        })
    }

    fn wire(&self) -> BoxFuture<'_, Result<Box<dyn Wire>, BenchError>> {
        Box::pin(async {
            let proxy = Proxy::to(&format!("127.0.0.1:{}", self.port)).await;
            let client = open(self.address.through(proxy.port()).as_str(), self.poll).await?;
            let wire: Box<dyn Wire> = Box::new(ProxyWire::new(proxy, Arc::new(client), SIZES));
            Ok(wire)
        })
    }

    fn holder<'a>(
        &'a self,
        class: &'a ClassName,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Option<GrantId>, BenchError>> {
        Box::pin(async move {
            let holder = self.store.holder(class, key).await?;
            Ok(holder.map(|holder| holder.grant_id))
        })
    }

    fn waiters<'a>(&'a self, class: &'a ClassName, key: &'a Key) -> BoxFuture<'a, Result<usize, BenchError>> {
        Box::pin(async move { Ok(self.store.waiters(class, key).await?) })
    }
}
