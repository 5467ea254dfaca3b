//! One etcd for the tests of this binary, a key prefix for each test.

use std::sync::atomic::{AtomicU64, Ordering};

use fence_core::{ClassName, Epoch, Key, TierName, Ttl};
use fence_lock::{EtcdStore, Session};
use pause_kit::reaper::ReaperCommand;
use pause_kit::services::{Services, ServicesConfig};
use tokio::sync::OnceCell;

static SHARED: OnceCell<Services> = OnceCell::const_new();
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Services with an etcd of this name and nothing else.
pub(crate) async fn services() -> Services {
    let reaper = ReaperCommand::find().unwrap_or_else(|error| panic!("{error}"));
    let config = ServicesConfig {
        reaper,
        postgres: false,
        etcd: vec!["lock".to_owned()],
    };
    Services::start(config)
        .await
        .unwrap_or_else(|error| panic!("{error}: {:?}", std::error::Error::source(&error)))
}

/// The address of the shared etcd, such as `http://127.0.0.1:40123`.
pub(crate) async fn endpoint() -> String {
    SHARED
        .get_or_init(services)
        .await
        .etcd("lock")
        .unwrap()
        .endpoint()
}

pub(crate) fn fresh_prefix() -> String {
    format!("test-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A store on the shared etcd under a prefix of its own, not initialised.
pub(crate) async fn bare_store() -> EtcdStore {
    store_at(&endpoint().await, &fresh_prefix()).await
}

/// The same, in epoch 1.
pub(crate) async fn store() -> EtcdStore {
    store_in(&fresh_prefix()).await
}

/// A store on the shared etcd under this prefix, in epoch 1.
pub(crate) async fn store_in(prefix: &str) -> EtcdStore {
    let store = store_at(&endpoint().await, prefix).await;
    store.init(Epoch::FIRST, "a test").await.unwrap();
    store
}

pub(crate) async fn store_at(endpoint: &str, prefix: &str) -> EtcdStore {
    EtcdStore::connect(&[endpoint], prefix, tier()).await.unwrap()
}

pub(crate) fn tier() -> TierName {
    TierName::new("entity").unwrap()
}

pub(crate) async fn session(store: &EtcdStore) -> Session {
    Session::open(store.clone(), ttl()).await.unwrap()
}

/// The shortest TTL there is.
pub(crate) fn ttl() -> Ttl {
    Ttl::MIN
}

pub(crate) fn class() -> ClassName {
    ClassName::new("paydb.account").unwrap()
}

pub(crate) fn key(text: &str) -> Key {
    Key::text(text).unwrap()
}

/// A client of the shared etcd, for looking behind the store.
pub(crate) async fn raw() -> etcd_client::Client {
    etcd_client::Client::connect([endpoint().await], None)
        .await
        .unwrap()
}
