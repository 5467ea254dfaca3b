//! The connection to a lock store.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fence_core::TierName;
use fence_lock::{
    ConnectError, EtcdOptions, EtcdStore, LockState, LockStore, PostgresConnectError, PostgresStore, Tls,
};

use super::place::{Files, Named, Place};
use crate::exit::Failure;
use crate::say;

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
    "the epochs of a store in PostgreSQL are begun there: the first by SELECT fence_lock.init('TIER', EPOCH, 'REASON'), a higher one by SELECT fence_lock.advance(EPOCH, 'REASON'); SELECT * FROM fence_lock.epoch shows them"
)]
struct NotEtcd;

/// The variable that holds the password of the user to be to etcd.
const PASSWORD: &str = "ETCD_PASSWORD";

impl Place {
    /// The tier that the store serves.
    pub(crate) fn tier(&self) -> &TierName {
        &self.tier
    }

    /// Connects, and warns of versions of etcd that no lock should be trusted to.
    pub(crate) async fn open(&self) -> Result<Store, Failure> {
        match &self.named {
            Named::Etcd { endpoints, user } => {
                let store = self.on_etcd(endpoints, user.as_deref()).await?;
                Ok(Store::Etcd(store))
            }
            Named::Postgres { url } => Ok(Store::Postgres(self.on_postgres(url).await?)),
        }
    }

    /// Connects to the store on etcd; where it is in PostgreSQL, that is wrong usage.
    pub(super) async fn etcd(&self) -> Result<EtcdStore, Failure> {
        match &self.named {
            Named::Etcd { endpoints, user } => self.on_etcd(endpoints, user.as_deref()).await,
            Named::Postgres { .. } => Err(Failure::usage(NotEtcd)),
        }
    }

    async fn on_etcd(&self, endpoints: &[String], user: Option<&str>) -> Result<EtcdStore, Failure> {
        let mut options = EtcdOptions::new(endpoints, &self.prefix, self.tier.clone());
        if let Some(name) = user {
            let password = std::env::var(PASSWORD).map_err(|_| {
                Failure::usage(format!(
                    "to be user {name} to etcd needs the password in the variable {PASSWORD}"
                ))
            })?;
            options = options.user(name, password);
        }
        if let Some(tls) = self.files.read()? {
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

    async fn on_postgres(&self, url: &str) -> Result<PostgresStore, Failure> {
        let tier = self.tier.clone();
        let opened = match self.files.read()? {
            Some(tls) => PostgresStore::connect_with(url, tier, &tls, None).await,
            None => PostgresStore::connect(url, tier).await,
        };
        opened.map_err(|error| match error {
            PostgresConnectError::Store(_) => Failure::service(error),
            _ => Failure::usage(error),
        })
    }
}

impl Files {
    fn read(&self) -> Result<Option<Tls>, Failure> {
        if self.ca.is_none() && self.certificate.is_none() {
            return Ok(None);
        }
        let mut tls = Tls::new();
        if let Some(file) = &self.ca {
            tls = tls.ca_certificate(read(file)?);
        }
        if let Some((certificate, key)) = &self.certificate {
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

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(file).map_err(|source| {
        Failure::usage(UnreadableFile {
            file: file.to_owned(),
            source,
        })
    })
}
