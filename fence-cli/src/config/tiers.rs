//! Where the lock store of a tier is. No secret stands in the file: it names the variable or the file that holds one.

use std::num::NonZeroU16;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::check::{At, Fault, joined};
use super::manifest::Manifest;

/// A tier: a lock store of its own.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tier {
    /// What the tier is for, in a few words for the reader.
    #[serde(rename = "about")]
    _about: String,
    /// The client URLs of its etcd cluster.
    #[serde(default)]
    pub(crate) etcd: Vec<String>,
    /// The prefix of its keys in etcd.
    pub(crate) prefix: Option<String>,
    /// The user to be to etcd.
    pub(crate) etcd_user: Option<String>,
    /// In place of etcd: the variable that holds the URL of the database with the store.
    pub(crate) lock_database_variable: Option<String>,
    /// The authorities to verify the store by; like the two below a file of PEM, absolute once it is read.
    pub(crate) tls_ca: Option<PathBuf>,
    /// The certificate to present to the store.
    pub(crate) tls_cert: Option<PathBuf>,
    /// The certificate's key.
    pub(crate) tls_key: Option<PathBuf>,
}

impl Tier {
    /// Takes paths as seen from the file's folder.
    pub(super) fn anchor(&mut self, folder: &Path) {
        for file in [&mut self.tls_ca, &mut self.tls_cert, &mut self.tls_key] {
            *file = file.as_ref().map(|file| folder.join(file));
        }
    }
}

/// The first fault in what is said of tiers, and of each class's tier.
pub(super) fn check(manifest: &Manifest, root: &At) -> Result<(), Fault> {
    for (name, tier) in &manifest.tiers {
        store(tier, &root.key("tiers").key(name.as_str()))?;
    }
    for (name, class) in &manifest.classes {
        if !manifest.tiers.contains_key(&class.tier) {
            let declared = joined(manifest.tiers.keys());
            let at = root.key("classes").key(name.as_str()).key("tier");
            return at.fault(format!(
                "tier \"{}\" is not declared; there are {declared}",
                class.tier
            ));
        }
    }
    Ok(())
}

fn store(tier: &Tier, at: &At) -> Result<(), Fault> {
    for (index, url) in tier.etcd.iter().enumerate() {
        if let Err(form) = endpoint(url) {
            return at.key("etcd").index(index).fault(form);
        }
    }
    if let Some(variable) = &tier.lock_database_variable {
        let at = at.key("lock_database_variable");
        let letters = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if variable.is_empty() || !variable.bytes().all(letters) || variable.as_bytes()[0].is_ascii_digit() {
            return at.fault(
                "lock_database_variable is the name of a variable, such as LOCK_DATABASE_URL; put the URL into that, where no \
                 password gets into a file that is shared",
            );
        }
        if !tier.etcd.is_empty() || tier.etcd_user.is_some() || tier.prefix.is_some() {
            return at.fault(
                "a tier has one store: say etcd, with prefix and etcd_user, or lock_database_variable",
            );
        }
    }
    match (&tier.tls_cert, &tier.tls_key) {
        (Some(_), None) => at
            .key("tls_cert")
            .fault("a certificate has a key: say tls_key as well"),
        (None, Some(_)) => at
            .key("tls_key")
            .fault("a key is of a certificate: say tls_cert as well"),
        _ => Ok(()),
    }
}

/// A client URL of etcd.
pub(crate) fn endpoint(text: &str) -> Result<String, String> {
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
