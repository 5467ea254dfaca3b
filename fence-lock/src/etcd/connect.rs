//! How a store reaches its cluster: one member at a time, and the next one once that does not answer.

use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use etcd_client::{Certificate, Client, ConnectOptions, Error, Identity, KvClient, TlsOptions};
use fence_core::TierName;

use super::EtcdStore;
use crate::error::StoreError;
use crate::tls::Tls;

/// How often a connection that something waits on is asked whether it lives, and for how long. etcd takes a ping every 5 s, and
/// none while nothing waits.
const PING_EVERY: Duration = Duration::from_secs(8);
const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// Where the store is, and how it is reached.
#[derive(Clone)]
pub struct EtcdOptions {
    pub(super) endpoints: Vec<String>,
    pub(super) prefix: String,
    pub(super) tier: TierName,
    user: Option<(String, String)>,
    tls: Option<Tls>,
}

impl EtcdOptions {
    /// The cluster of `tier` that has these client URLs, `http://` or `https://`, and the keys under `prefix`. One member is
    /// asked at a time, the first chosen by lot; when it does not answer, the next one is.
    pub fn new<E: AsRef<str>>(endpoints: &[E], prefix: &str, tier: TierName) -> EtcdOptions {
        EtcdOptions {
            endpoints: endpoints.iter().map(|url| url.as_ref().to_owned()).collect(),
            prefix: prefix.to_owned(),
            tier,
            user: None,
            tls: None,
        }
    }

    /// Authenticates. The user must be able to read and write under the prefix; its token is renewed when it runs out.
    #[must_use]
    pub fn user(mut self, name: impl Into<String>, password: impl Into<String>) -> EtcdOptions {
        self.user = Some((name.into(), password.into()));
        self
    }

    /// Uses TLS, for which every endpoint must be `https://`. Without this an `https://` endpoint is verified by the
    /// authorities that the machine trusts.
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> EtcdOptions {
        self.tls = Some(tls);
        self
    }

    /// Whether the endpoints and TLS fit together.
    pub(super) fn fits(&self) -> bool {
        let secure = |url: &String| url.starts_with("https://");
        match self.tls.is_some() {
            true => self.endpoints.iter().all(secure),
            false => self.endpoints.iter().all(secure) || !self.endpoints.iter().any(secure),
        }
    }

    fn connect_options(&self, timeout: Duration) -> ConnectOptions {
        // A member without a leader answers with an error instead of silence.
        let mut options = ConnectOptions::new()
            .with_connect_timeout(timeout)
            .with_keep_alive(PING_EVERY, PING_TIMEOUT)
            .with_keep_alive_while_idle(false)
            .with_require_leader(true);
        if let Some((name, password)) = &self.user {
            options = options.with_user(name, password);
        }
        if self.endpoints.iter().any(|url| url.starts_with("https://")) {
            options = options.with_tls(tls_options(&self.tls.clone().unwrap_or_default()));
        }
        options
    }
}

impl fmt::Debug for EtcdOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdOptions")
            .field("endpoints", &self.endpoints)
            .field("prefix", &self.prefix)
            .field("tier", &self.tier)
            .field("user", &self.user.as_ref().map(|(name, _)| name))
            .field("tls", &self.tls)
            .finish()
    }
}

/// The members of a cluster, and the client of the one that is asked now.
pub(super) struct Members {
    endpoints: Vec<String>,
    options: ConnectOptions,
    timeout: Duration,
    /// Which member is asked: its number, modulo their count.
    turn: AtomicUsize,
    /// The client, and the turn that it was made in.
    client: RwLock<(Client, usize)>,
    /// How often a connection was lost.
    losses: AtomicU64,
}

impl Members {
    /// Makes a client. Without a user nothing is sent yet.
    pub(super) async fn connect(options: &EtcdOptions, timeout: Duration) -> Result<Members, Error> {
        let connect_options = options.connect_options(timeout);
        let count = options.endpoints.len();
        let first = usize::from(uuid::Uuid::new_v4().as_bytes()[0]) % count.max(1);
        let (client, turn) = any(&options.endpoints, &connect_options, timeout, first).await?;
        Ok(Members {
            endpoints: options.endpoints.clone(),
            options: connect_options,
            timeout,
            turn: AtomicUsize::new(turn),
            client: RwLock::new((client, turn)),
            losses: AtomicU64::new(0),
        })
    }

    pub(super) fn endpoints(&self) -> &[String] {
        &self.endpoints
    }

    pub(super) fn options(&self) -> &ConnectOptions {
        &self.options
    }

    pub(super) fn count(&self) -> usize {
        self.endpoints.len()
    }

    pub(super) fn names(&self) -> String {
        self.endpoints.join(", ")
    }

    pub(super) fn turn(&self) -> usize {
        self.turn.load(Ordering::SeqCst)
    }

    /// The member of this turn did not answer: the next one is asked from here on.
    pub(super) fn suspect(&self, turn: usize) {
        self.losses.fetch_add(1, Ordering::SeqCst);
        // Of several requests that failed with one member, one moves on.
        let _ = self
            .turn
            .compare_exchange(turn, turn.wrapping_add(1), Ordering::SeqCst, Ordering::SeqCst);
    }

    /// What is wanted of the client of the member whose turn it is; nothing where that is not made yet.
    fn known<T>(&self, wanted: impl Fn(&Client) -> T) -> Option<T> {
        let known = self.client.read().unwrap_or_else(PoisonError::into_inner);
        let (client, made_in) = &*known;
        (*made_in == self.turn()).then(|| wanted(client))
    }
}

impl EtcdStore {
    /// The client of the member whose turn it is, made anew where the turn has moved.
    pub(super) async fn client_in_turn(&self) -> Result<Client, StoreError> {
        self.in_turn(Client::clone).await
    }

    /// Its part for keys, which is cheaper to clone.
    pub(super) async fn keys_in_turn(&self) -> Result<KvClient, StoreError> {
        self.in_turn(Client::kv_client).await
    }

    async fn in_turn<T>(&self, wanted: impl Fn(&Client) -> T) -> Result<T, StoreError> {
        let members = &self.inner.members;
        if let Some(wanted) = members.known(&wanted) {
            return Ok(wanted);
        }
        let client = self.new_client().await?;
        let wanted = wanted(&client);
        let mut known = members.client.write().unwrap_or_else(PoisonError::into_inner);
        *known = (client, members.turn());
        Ok(wanted)
    }

    /// A client with connections of its own.
    pub(super) async fn new_client(&self) -> Result<Client, StoreError> {
        let members = &self.inner.members;
        let turn = members.turn();
        let (client, found) = any(&members.endpoints, &members.options, members.timeout, turn)
            .await
            .map_err(|error| self.sort(error))?;
        if found != turn {
            let _ = members
                .turn
                .compare_exchange(turn, found, Ordering::SeqCst, Ordering::SeqCst);
        }
        Ok(client)
    }

    /// How often a connection to the cluster was lost, or a member did not answer: for logs.
    pub fn losses(&self) -> u64 {
        self.inner.members.losses.load(Ordering::SeqCst)
    }
}

/// A client of the first member from `turn` on that can be connected to, and that member's turn.
async fn any(
    endpoints: &[String],
    options: &ConnectOptions,
    timeout: Duration,
    turn: usize,
) -> Result<(Client, usize), Error> {
    let mut failed = Error::InvalidArgs("no endpoint".to_owned());
    for turn in turn..turn + endpoints.len() {
        let endpoint = &endpoints[turn % endpoints.len()];
        // With a user this authenticates, which a member may leave unanswered.
        let connecting = Client::connect([endpoint], Some(options.clone()));
        match tokio::time::timeout(timeout, connecting).await {
            Ok(Ok(client)) => return Ok((client, turn)),
            Ok(Err(error)) => failed = error,
            Err(_) => failed = Error::EndpointError(format!("{endpoint} did not answer within {timeout:?}")),
        }
    }
    Err(failed)
}

fn tls_options(tls: &Tls) -> TlsOptions {
    let mut options = match &tls.roots {
        Some(pem) => TlsOptions::new().ca_certificate(Certificate::from_pem(pem)),
        None => TlsOptions::new().with_native_roots(),
    };
    if let Some((certificate, key)) = &tls.identity {
        options = options.identity(Identity::from_pem(certificate, key));
    }
    match &tls.server_name {
        Some(name) => options.domain_name(name),
        None => options,
    }
}
