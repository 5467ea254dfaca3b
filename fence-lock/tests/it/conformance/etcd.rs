//! The suite's bench on etcd.

use std::sync::Arc;

use etcd_client::{Client, GetOptions};
use fence_core::{ClassName, Epoch, GrantId, Key};
use fence_lock::conformance::{Bench, BenchError, Place, Wire};
use fence_lock::{EtcdOptions, EtcdStore, LockStore};
use futures_util::future::BoxFuture;

use super::wire::{ProxyWire, Sizes};
use crate::proxy::Proxy;
use crate::secure::Secure;
use crate::support::{endpoint, fresh_prefix, raw, store_at};

/// A grant's transaction is longer than the first; so is its answer than the second, and pings and settings are shorter.
const SIZES: Sizes = Sizes {
    request: 350,
    answer: 64,
};

/// The shared etcd, or one that is reached under TLS, with a user.
#[derive(Clone)]
pub(super) enum EtcdBench {
    Shared,
    Secure(Arc<Secure>),
}

impl EtcdBench {
    /// An etcd of the bench's own, which asks for a certificate, a user and a password.
    pub(super) async fn secure() -> EtcdBench {
        let etcd = Secure::start().await;
        etcd.require_users("test-").await;
        EtcdBench::Secure(Arc::new(etcd))
    }

    async fn store(&self, prefix: &str) -> Result<EtcdStore, BenchError> {
        Ok(match self {
            EtcdBench::Shared => store_at(&endpoint().await, prefix).await,
            EtcdBench::Secure(etcd) => as_holder(etcd.options(prefix)).await?,
        })
    }

    /// A path to it, and a client on that path.
    async fn behind(&self, prefix: &str) -> Result<(Proxy, EtcdStore), BenchError> {
        Ok(match self {
            EtcdBench::Shared => {
                let proxy = Proxy::to(&endpoint().await).await;
                let client = store_at(&proxy.endpoint(), prefix).await;
                (proxy, client)
            }
            EtcdBench::Secure(etcd) => {
                let proxy = Proxy::to(&format!("127.0.0.1:{}", etcd.port())).await;
                let client = as_holder(etcd.options_through(proxy.port(), prefix)).await?;
                (proxy, client)
            }
        })
    }

    /// For looking behind the store.
    async fn raw(&self) -> Result<Client, BenchError> {
        Ok(match self {
            EtcdBench::Shared => raw().await,
            EtcdBench::Secure(etcd) => etcd.root(Some(("root", "root-secret"))).await?,
        })
    }
}

async fn as_holder(options: EtcdOptions) -> Result<EtcdStore, BenchError> {
    Ok(EtcdStore::connect_with(options.user("holder", "holder-secret")).await?)
}

struct Prefix {
    name: String,
    bench: EtcdBench,
    store: EtcdStore,
}

impl Bench for EtcdBench {
    fn place(&self) -> BoxFuture<'_, Result<Box<dyn Place>, BenchError>> {
        Box::pin(async {
            let name = fresh_prefix();
            let store = self.store(&name).await?;
            store.init(Epoch::FIRST, "a test").await?;
            let bench = self.clone();
            let place: Box<dyn Place> = Box::new(Prefix { name, bench, store });
            Ok(place)
        })
    }
}

impl Place for Prefix {
    fn client(&self) -> BoxFuture<'_, Result<Arc<dyn LockStore>, BenchError>> {
        Box::pin(async {
            let client: Arc<dyn LockStore> = Arc::new(self.bench.store(&self.name).await?);
            Ok(client)
        })
    }

    fn wire(&self) -> BoxFuture<'_, Result<Box<dyn Wire>, BenchError>> {
        Box::pin(async {
            let (proxy, client) = self.bench.behind(&self.name).await?;
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
            let answer = self.bench.raw().await?.get(queue, Some(all)).await?;
            Ok(usize::try_from(answer.count())?)
        })
    }
}
