//! Where a lock store is, once arguments and file are put together.

use std::path::PathBuf;

use fence_core::{ClassName, TierName};

use crate::config::{ConfigError, Manifest, Step, Tier, joined};
use crate::exit::Failure;

/// One tier's lock store, not connected to yet.
#[derive(Debug)]
pub(crate) struct Place {
    pub(super) tier: TierName,
    pub(super) named: Named,
    /// Of the keys in etcd.
    pub(super) prefix: String,
    pub(super) files: Files,
}

/// The store's address, and who asks.
#[derive(Debug)]
pub(super) enum Named {
    Etcd {
        endpoints: Vec<String>,
        user: Option<String>,
    },
    Postgres {
        url: String,
    },
}

/// The files of TLS.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) ca: Option<PathBuf>,
    /// With its key.
    pub(super) certificate: Option<(PathBuf, PathBuf)>,
}

/// Arguments and file do not say which store.
#[derive(Debug, thiserror::Error)]
pub(super) enum PlaceError {
    /// The arguments leave it out, and there is no file.
    #[error(
        "the arguments do not say which lock store: name it with --tier and --etcd or --lock-database, or in fence.toml"
    )]
    NotSaid { source: Box<ConfigError> },
    /// One address for several tiers.
    #[error("--etcd and --lock-database name the store of one tier: say --tier as well")]
    ManyTiers,
    #[error(
        "class {class} is not declared in {}; there are {known}: correct the name, declare it there, or name its lock store with --tier and --etcd",
        file.display()
    )]
    UnknownClass {
        class: ClassName,
        file: PathBuf,
        known: String,
    },
    #[error(
        "tier {tier} is not declared in {}; there are {known}: correct the name, declare it there, or name its lock store with --etcd",
        file.display()
    )]
    UnknownTier {
        tier: TierName,
        file: PathBuf,
        known: String,
    },
    #[error(
        "the lock store of tier {tier} is in the database whose URL stands in the variable {variable}, which is not set or empty: set it to postgresql://USER@HOST/NAME, and PGPASSWORD to the user's password"
    )]
    NoVariable { tier: TierName, variable: String },
}

impl PlaceError {
    pub(super) fn unknown_class(manifest: &Manifest, class: &ClassName) -> PlaceError {
        PlaceError::UnknownClass {
            class: class.clone(),
            file: manifest.place(&[]).0.to_owned(),
            known: joined(manifest.classes.keys()),
        }
    }
}

impl Files {
    /// The file's in the place of those that are not named.
    pub(super) fn or(self, tier: &Tier) -> Files {
        Files {
            ca: self.ca.or_else(|| tier.tls_ca.clone()),
            certificate: self
                .certificate
                .or_else(|| tier.tls_cert.clone().zip(tier.tls_key.clone())),
        }
    }
}

/// The tier's table.
pub(super) fn tier<'m>(manifest: &'m Manifest, name: &TierName) -> Result<&'m Tier, Failure> {
    manifest.tiers.get(name).ok_or_else(|| {
        Failure::usage(PlaceError::UnknownTier {
            tier: name.clone(),
            file: manifest.place(&[]).0.to_owned(),
            known: joined(manifest.tiers.keys()),
        })
    })
}

/// The store that the tier's table names, with this user in the place of its own.
pub(super) fn named(
    manifest: &Manifest,
    name: &TierName,
    tier: &Tier,
    user: Option<&String>,
) -> Result<Named, Failure> {
    if let Some(variable) = &tier.lock_database_variable {
        let url = std::env::var(variable).ok().filter(|url| !url.is_empty());
        let url = url.ok_or_else(|| {
            Failure::usage(PlaceError::NoVariable {
                tier: name.clone(),
                variable: variable.clone(),
            })
        })?;
        return Ok(Named::Postgres { url });
    }
    if tier.etcd.is_empty() {
        let at = ["tiers", name.as_str()].map(|key| Step::Key(key.to_owned()));
        return Err(Failure::usage(manifest.fault(
            &at,
            "the tier does not say where its lock store is: add etcd = [\"http://127.0.0.1:2379\"] or \
             lock_database_variable = \"LOCK_DATABASE_URL\" to it, or name the store with --etcd or --lock-database",
        )));
    }
    Ok(Named::Etcd {
        endpoints: tier.etcd.clone(),
        user: user.or(tier.etcd_user.as_ref()).cloned(),
    })
}
