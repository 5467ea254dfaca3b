//! Which lock store, as it is said on the command line.

use std::path::PathBuf;

use clap::Args;
use fence_core::{ClassName, TierName, Ttl};
use fence_lock::EtcdStore;

use super::place::{Files, Named, Place, PlaceError};
use crate::config::{Class, ConfigError, Manifest, endpoint};
use crate::exit::Failure;

/// Where a lock store is. What is left out is taken from the tier's table in `fence.toml`.
#[derive(Debug, Args)]
pub(crate) struct StoreArguments {
    /// The file that declares tiers and classes. It is read where the tier or its store is left out [default: fence.toml, here
    /// or above]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// A client URL of the store's etcd cluster, such as http://127.0.0.1:2379; repeat it for more [default: those of the tier
    /// in fence.toml]
    #[arg(long, value_name = "URL", value_parser = endpoint)]
    etcd: Vec<String>,
    /// The prefix under which an etcd store keeps its keys [default: that of the tier in fence.toml, or fence]
    #[arg(long, value_name = "PREFIX")]
    prefix: Option<String>,
    /// The store is in this database of PostgreSQL, not in etcd
    #[arg(long, value_name = "URL", conflicts_with = "etcd")]
    lock_database: Option<String>,
    /// The user to be to etcd; the password stands in the variable ETCD_PASSWORD
    #[arg(long, value_name = "NAME", conflicts_with = "lock_database")]
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

/// The lock store of one tier.
#[derive(Debug, Args)]
pub(crate) struct TierArguments {
    /// The tier that the store serves
    #[arg(long, value_name = "TIER")]
    tier: TierName,
    #[command(flatten)]
    store: StoreArguments,
}

impl TierArguments {
    /// The tier that the store serves.
    pub(crate) fn tier(&self) -> &TierName {
        &self.tier
    }

    /// Connects to the store on etcd; where it is in PostgreSQL, that is wrong usage.
    pub(crate) async fn etcd(&self) -> Result<EtcdStore, Failure> {
        let manifest = self.store.manifest(Some(&self.tier))?;
        self.store.place(&self.tier, manifest.as_ref())?.etcd().await
    }
}

impl StoreArguments {
    /// The store that grants a class, in the tier that is named or else the class's own, and the class's TTL where a file
    /// was read.
    pub(crate) fn of_class(
        &self,
        class: &ClassName,
        tier: Option<&TierName>,
    ) -> Result<(Place, Option<Ttl>), Failure> {
        let manifest = self.manifest(tier)?;
        let declared = match &manifest {
            Some(manifest) => Some(declared(manifest, class)?),
            None => None,
        };
        let tier = tier.or(declared.map(|class| &class.tier));
        let tier = tier.expect("a file was read, unless a tier is named");
        Ok((
            self.place(tier, manifest.as_ref())?,
            declared.map(|class| class.ttl),
        ))
    }

    /// The stores of the tier that is named, or else of these classes' tiers, or else of every tier of the file.
    pub(crate) fn of_tiers(
        &self,
        tier: Option<&TierName>,
        classes: &[ClassName],
    ) -> Result<Vec<Place>, Failure> {
        let manifest = self.manifest(tier)?;
        let mut tiers: Vec<&TierName> = tier.into_iter().collect();
        if let (None, Some(manifest)) = (tier, &manifest) {
            for class in classes {
                tiers.push(&declared(manifest, class)?.tier);
            }
            if classes.is_empty() {
                tiers.extend(manifest.tiers.keys());
            }
            tiers.sort();
            tiers.dedup();
        }
        if tiers.len() > 1 && self.named().is_some() {
            return Err(Failure::usage(PlaceError::ManyTiers));
        }
        let places = tiers.iter().map(|tier| self.place(tier, manifest.as_ref()));
        places.collect()
    }

    /// The file, where one is named, or where the arguments leave out what it says.
    fn manifest(&self, tier: Option<&TierName>) -> Result<Option<Manifest>, Failure> {
        if self.config.is_none() && tier.is_some() && self.named().is_some() {
            return Ok(None);
        }
        let manifest = Manifest::of_locks(self.config.as_deref());
        manifest.map(Some).map_err(|error| match error {
            ConfigError::NotFound { .. } => Failure::usage(PlaceError::NotSaid {
                source: Box::new(error),
            }),
            // There is a file, and what is wrong with it is the whole answer.
            ConfigError::Read { .. } | ConfigError::Line { .. } => Failure::usage(error),
        })
    }

    /// The store that the arguments themselves name.
    fn named(&self) -> Option<Named> {
        if let Some(url) = &self.lock_database {
            return Some(Named::Postgres { url: url.clone() });
        }
        (!self.etcd.is_empty()).then(|| Named::Etcd {
            endpoints: self.etcd.clone(),
            user: self.etcd_user.clone(),
        })
    }

    /// Each argument wins over the file. A user and files of TLS are the address's: where the arguments name another one, the
    /// file's do not go there.
    fn place(&self, tier: &TierName, manifest: Option<&Manifest>) -> Result<Place, Failure> {
        let declared = match manifest {
            Some(manifest) => Some(super::place::tier(manifest, tier)?),
            None => None,
        };
        let prefix = self
            .prefix
            .clone()
            .or_else(|| declared.and_then(|tier| tier.prefix.clone()));
        let said = Files {
            ca: self.tls_ca.clone(),
            certificate: self.tls_cert.clone().zip(self.tls_key.clone()),
        };
        let (named, files) = match (self.named(), manifest, declared) {
            (Some(named), ..) => (named, said),
            (None, Some(manifest), Some(declared)) => {
                let user = self.etcd_user.as_ref();
                let named = super::place::named(manifest, tier, declared, user)?;
                (named, said.or(declared))
            }
            (None, ..) => unreachable!("a file was read, unless a store is named"),
        };
        Ok(Place {
            tier: tier.clone(),
            named,
            prefix: prefix.unwrap_or_else(|| "fence".to_owned()),
            files,
        })
    }
}

fn declared<'m>(manifest: &'m Manifest, class: &ClassName) -> Result<&'m Class, Failure> {
    let declared = manifest.classes.get(class);
    declared.ok_or_else(|| Failure::usage(PlaceError::unknown_class(manifest, class)))
}
