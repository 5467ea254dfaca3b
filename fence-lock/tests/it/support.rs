//! One etcd for the tests of this binary, a key prefix for each test.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fence_core::{ClassName, Epoch, Key, TierName, Ttl};
use fence_lock::{
    AcquireError, Attempt, EtcdStore, Lease, LockStore, Minted, OpenError, Release, Renewals, Session,
    SessionId, SessionRegistry, StoreError,
};
use futures_util::future::BoxFuture;
use pause_kit::reaper::ReaperCommand;
use pause_kit::services::{
    Child, DatabaseUrl, Postgres, ProcessSpec, Services, ServicesConfig, free_port, locate,
};
use tokio::sync::OnceCell;

static SHARED: OnceCell<Services> = OnceCell::const_new();
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Services with an etcd named lock, and nothing else.
pub(crate) async fn services() -> Services {
    services_with(false).await
}

async fn services_with(postgres: bool) -> Services {
    let reaper = ReaperCommand::find().unwrap_or_else(|error| panic!("{error}"));
    let config = ServicesConfig {
        reaper,
        postgres,
        etcd: vec!["lock".to_owned()],
    };
    Services::start(config)
        .await
        .unwrap_or_else(|error| panic!("{error}: {:?}", std::error::Error::source(&error)))
}

/// What the tests of this binary share.
pub(crate) async fn shared() -> &'static Services {
    SHARED.get_or_init(|| services_with(true)).await
}

/// A database of the shared PostgreSQL, empty, with an owner of its own who is no superuser.
pub(crate) async fn database() -> DatabaseUrl {
    let name = format!("locks_{}", NEXT.fetch_add(1, Ordering::Relaxed));
    postgres()
        .await
        .create_database(&name, &format!("{name}_owner"))
        .await
        .unwrap()
}

/// The shared PostgreSQL.
pub(crate) async fn postgres() -> &'static Postgres {
    shared().await.postgres().unwrap()
}

/// A connection to a database, for looking behind the store.
pub(crate) async fn psql(address: &DatabaseUrl) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(address.as_str(), tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    client
}

/// The address of the shared etcd, such as `http://127.0.0.1:40123`.
pub(crate) async fn endpoint() -> String {
    shared().await.etcd("lock").unwrap().endpoint()
}

/// The version of the shared etcd.
pub(crate) async fn etcd_version() -> &'static str {
    shared().await.etcd("lock").unwrap().version()
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

/// A session that a busy machine does not fence.
pub(crate) async fn session(store: &EtcdStore) -> Session {
    session_of(store, Ttl::from_secs(20).unwrap()).await
}

pub(crate) async fn session_of(store: &EtcdStore, ttl: Ttl) -> Session {
    Session::open(store.clone(), ttl).await.unwrap()
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

/// An etcd of one test's own, which can be killed and started again on the same data and port.
pub(crate) struct Etcd {
    services: Services,
    client: String,
    peer: String,
    process: Option<Child>,
}

impl Etcd {
    pub(crate) async fn start() -> Etcd {
        let url = || format!("http://127.0.0.1:{}", free_port().unwrap());
        let mut etcd = Etcd {
            services: services().await,
            client: url(),
            peer: url(),
            process: None,
        };
        etcd.start_again().await;
        etcd
    }

    pub(crate) fn endpoint(&self) -> String {
        self.client.clone()
    }

    pub(crate) async fn kill(&mut self) {
        self.process.take().unwrap().kill().await.unwrap();
    }

    /// Throws its data away. It must not run.
    pub(crate) fn empty(&self) {
        std::fs::remove_dir_all(self.data()).unwrap();
    }

    /// A copy of its data. It must not run.
    pub(crate) fn copy_of_the_data(&self) -> tempfile::TempDir {
        let copy = tempfile::tempdir().unwrap();
        copy_tree(&self.data(), copy.path());
        copy
    }

    /// Puts a copy of its data in the place of what there is. It must not run.
    pub(crate) fn put_back(&self, copy: &tempfile::TempDir) {
        self.empty();
        copy_tree(copy.path(), &self.data());
    }

    fn data(&self) -> PathBuf {
        self.services.folder().join("own")
    }

    pub(crate) async fn start_again(&mut self) {
        let (client, peer) = (&self.client, &self.peer);
        let spec = ProcessSpec::new("etcd-own", locate::etcd().unwrap())
            .args(["--name=own", "--heartbeat-interval=50", "--election-timeout=250"])
            .args([
                format!("--data-dir={}", self.data().display()),
                format!("--listen-client-urls={client}"),
                format!("--advertise-client-urls={client}"),
                format!("--listen-peer-urls={peer}"),
                format!("--initial-advertise-peer-urls={peer}"),
                format!("--initial-cluster=own={peer}"),
            ])
            .env(
                "ETCD_UNSUPPORTED_ARCH",
                if cfg!(target_arch = "aarch64") {
                    "arm64"
                } else {
                    ""
                },
            );
        self.process = Some(self.services.spawn(spec).await.unwrap());
        for _ in 0..600 {
            if answers(client).await {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("etcd does not answer: {}", self.process.as_ref().unwrap().tail());
    }
}

pub(crate) fn copy_tree(from: &Path, to: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::create_dir_all(to).unwrap();
    // etcd refuses to read data that others may read.
    std::fs::set_permissions(to, std::fs::Permissions::from_mode(0o700)).unwrap();
    for item in std::fs::read_dir(from).unwrap() {
        let item = item.unwrap();
        let target = to.join(item.file_name());
        if item.path().is_dir() {
            copy_tree(&item.path(), &target);
        } else {
            std::fs::copy(item.path(), &target).unwrap();
        }
    }
}

/// What every answer of a store says about it.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) id: u64,
    pub(crate) revision: i64,
}

/// What the store at this address says about itself now.
pub(crate) async fn cluster_of(endpoint: &str) -> Cluster {
    let mut client = etcd_client::Client::connect([endpoint], None).await.unwrap();
    let answer = client.get("any", None).await.unwrap();
    let header = answer.header().unwrap();
    Cluster {
        id: header.cluster_id(),
        revision: header.revision(),
    }
}

async fn answers(endpoint: &str) -> bool {
    let Ok(mut client) = etcd_client::Client::connect([endpoint], None).await else {
        return false;
    };
    matches!(
        tokio::time::timeout(Duration::from_secs(1), client.get("any", None)).await,
        Ok(Ok(_))
    )
}

/// A store whose leases are shorter than what was asked for.
pub(crate) struct ShortLived(pub(crate) EtcdStore);

impl SessionRegistry for ShortLived {
    fn open(&self, _asked: Ttl) -> BoxFuture<'_, Result<Lease, OpenError>> {
        self.0.open(ttl())
    }

    fn renewals(&self, session: &SessionId) -> Box<dyn Renewals> {
        self.0.renewals(session)
    }

    fn close<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<(), StoreError>> {
        self.0.close(session)
    }
}

impl LockStore for ShortLived {
    fn most_keys(&self) -> usize {
        self.0.most_keys()
    }

    fn acquire<'a>(&'a self, attempt: &'a Attempt) -> BoxFuture<'a, Result<Minted, AcquireError>> {
        self.0.acquire(attempt)
    }

    fn give_up<'a>(&'a self, attempt: &'a Attempt) -> BoxFuture<'a, Result<(), StoreError>> {
        self.0.give_up(attempt)
    }

    fn release<'a>(
        &'a self,
        attempt: &'a Attempt,
        minted: Minted,
    ) -> BoxFuture<'a, Result<Release, StoreError>> {
        self.0.release(attempt, minted)
    }
}
