//! The suite's bench on etcd.

use std::sync::Arc;

use etcd_client::GetOptions;
use fence_core::{ClassName, GrantId, Key};
use fence_lock::conformance::{Bench, BenchError, Place, Wire};
use fence_lock::{EtcdStore, LockStore};
use futures_util::future::BoxFuture;

use super::wire::{ProxyWire, Sizes};
use crate::proxy::Proxy;
use crate::support::{endpoint, fresh_prefix, raw, store_at, store_in};

/// A grant's transaction is longer than the first; so is its answer than the second, and pings and settings are shorter.
const SIZES: Sizes = Sizes {
    request: 350,
    answer: 64,
};

pub(super) struct EtcdBench;

struct Prefix {
    name: String,
    store: EtcdStore,
}

impl Bench for EtcdBench {
    fn place(&self) -> BoxFuture<'_, Result<Box<dyn Place>, BenchError>> {
        Box::pin(async {
            let name = fresh_prefix();
            let store = store_in(&name).await;
            let place: Box<dyn Place> = Box::new(Prefix { name, store });
            Ok(place)
        })
    }
}

impl Place for Prefix {
    fn client(&self) -> BoxFuture<'_, Result<Arc<dyn LockStore>, BenchError>> {
        Box::pin(async {
            let client: Arc<dyn LockStore> = Arc::new(store_at(&endpoint().await, &self.name).await);
            Ok(client)
        })
    }

    fn wire(&self) -> BoxFuture<'_, Result<Box<dyn Wire>, BenchError>> {
        Box::pin(async {
            let proxy = Proxy::to(&endpoint().await).await;
            let client = store_at(&proxy.endpoint(), &self.name).await;
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
        // The cases' keys need no escaping.
        let queue = format!("{}/lock/{class}/{}/queue/", self.name, key.as_str());
        Box::pin(async move {
            let all = GetOptions::new().with_prefix().with_count_only();
            Ok(usize::try_from(raw().await.get(queue, Some(all)).await?.count())?)
        })
    }
}
