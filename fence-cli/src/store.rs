//! Which lock store, and the connection to it.

use std::num::NonZeroU16;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use fence_core::TierName;
use fence_lock::{
    ConnectError, EtcdOptions, EtcdStore, LockState, LockStore, PostgresConnectError, PostgresStore, Tls,
};

use crate::exit::Failure;
use crate::say;

/// The lock store that a command is for.
#[derive(Debug, Args)]
pub(crate) struct StoreArguments {
    /// A client URL of the store's etcd cluster, such as http://127.0.0.1:2379; repeat it for more
    #[arg(long, value_name = "URL", required_unless_present = "lock_database", value_parser = endpoint)]
    etcd: Vec<String>,
    /// The prefix under which an etcd store keeps its keys
    #[arg(long, value_name = "PREFIX", default_value = "fence")]
    prefix: String,
    /// The store is in this database of PostgreSQL, not in etcd
    #[arg(long, value_name = "URL", conflicts_with = "etcd")]
    lock_database: Option<String>,
    /// The tier that the store serves
    #[arg(long, value_name = "TIER")]
    tier: TierName,
    /// The user to be to etcd; the password stands in the variable ETCD_PASSWORD
    #[arg(long, value_name = "NAME", requires = "etcd")]
    etcd_user: Option<String>,
    /// The authorities to verify the store by, in PEM, in place of the machine's
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<PathBuf>,
    /// The certificate to present to the store, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The certificate's key, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
}

/// A lock store.
#[derive(Clone, Debug)]
pub(crate) enum Store {
    Etcd(EtcdStore),
    Postgres(PostgresStore),
}

/// A file that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}", file.display())]
struct UnreadableFile {
    file: PathBuf,
    source: std::io::Error,
}

/// The store is in PostgreSQL, whose epochs are begun in SQL.
#[derive(Debug, thiserror::Error)]
#[error(
    "the epochs of a store in PostgreSQL are begun there: SELECT fence_lock.advance(EPOCH, 'REASON'), and seen in fence_lock.epoch"
)]
struct NotEtcd;

/// The variable that holds the password of `--etcd-user`.
const PASSWORD: &str = "ETCD_PASSWORD";

impl StoreArguments {
    /// The tier that the store serves.
    pub(crate) fn tier(&self) -> &TierName {
        &self.tier
    }

    /// Connects, and warns of versions of etcd that no lock should be trusted to.
    pub(crate) async fn open(&self) -> Result<Store, Failure> {
        match &self.lock_database {
            Some(address) => Ok(Store::Postgres(self.postgres(address).await?)),
            None => Ok(Store::Etcd(self.etcd().await?)),
        }
    }

    /// Connects to the store on etcd; without one, that is wrong usage.
    pub(crate) async fn etcd(&self) -> Result<EtcdStore, Failure> {
        if self.lock_database.is_some() {
            return Err(Failure::usage(NotEtcd));
        }
        let mut options = EtcdOptions::new(&self.etcd, &self.prefix, self.tier.clone());
        if let Some(name) = &self.etcd_user {
            let password = std::env::var(PASSWORD).map_err(|_| {
                Failure::usage(format!(
                    "--etcd-user needs the password in the variable {PASSWORD}"
                ))
            })?;
            options = options.user(name, password);
        }
        if let Some(tls) = self.tls()? {
            options = options.tls(tls);
        }
        let store = EtcdStore::connect_with(options)
            .await
            .map_err(|error| match error {
                ConnectError::Store(_) => Failure::service(error),
                _ => Failure::usage(error),
            })?;
        for member in store.member_versions().await {
            if let (Some(version), Some(warning)) = (&member.version, member.warning()) {
                say::remark(&format!(
                    "warning: etcd {version} at {} {warning}",
                    member.endpoint
                ));
            }
        }
        Ok(store)
    }

    async fn postgres(&self, address: &str) -> Result<PostgresStore, Failure> {
        let tier = self.tier.clone();
        let opened = match self.tls()? {
            Some(tls) => PostgresStore::connect_with(address, tier, &tls, None).await,
            None => PostgresStore::connect(address, tier).await,
        };
        opened.map_err(|error| match error {
            PostgresConnectError::Store(_) => Failure::service(error),
            _ => Failure::usage(error),
        })
    }

    fn tls(&self) -> Result<Option<Tls>, Failure> {
        if self.tls_ca.is_none() && self.tls_cert.is_none() {
            return Ok(None);
        }
        let mut tls = Tls::new();
        if let Some(file) = &self.tls_ca {
            tls = tls.ca_certificate(read(file)?);
        }
        if let (Some(certificate), Some(key)) = (&self.tls_cert, &self.tls_key) {
            tls = tls.identity(read(certificate)?, read(key)?);
        }
        Ok(Some(tls))
    }
}

impl Store {
    /// The store, for a session.
    pub(crate) fn locks_with(&self) -> Arc<dyn LockStore> {
        match self {
            Store::Etcd(store) => Arc::new(store.clone()),
            Store::Postgres(store) => Arc::new(store.clone()),
        }
    }

    /// Every lock that is held or waited for.
    pub(crate) async fn locks(&self) -> Result<Vec<LockState>, Failure> {
        match self {
            Store::Etcd(store) => store.locks().await.map_err(Failure::service),
            Store::Postgres(store) => store.locks().await.map_err(Failure::service),
        }
    }
}

fn read(file: &PathBuf) -> Result<Vec<u8>, Failure> {
    std::fs::read(file).map_err(|source| {
        Failure::usage(UnreadableFile {
            file: file.clone(),
            source,
        })
    })
}

fn endpoint(text: &str) -> Result<String, String> {
    let wrong =
        || "a client URL is http://HOST:PORT or https://HOST:PORT, such as http://127.0.0.1:2379".to_owned();
    let address = text
        .strip_prefix("http://")
        .or_else(|| text.strip_prefix("https://"))
        .map(|rest| rest.trim_end_matches('/'));
    let (host, port) = address
        .and_then(|address| address.rsplit_once(':'))
        .ok_or_else(wrong)?;
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-_[]:".contains(&byte);
    match port.parse::<NonZeroU16>() {
        Ok(_) if !host.is_empty() && host.bytes().all(is_host) => Ok(text.to_owned()),
        _ => Err(wrong()),
    }
}
