//! Which store a command is for.

use std::num::NonZeroU16;

use clap::Args;
use fence_core::TierName;
use fence_lock::{ConnectError, EtcdStore};

use crate::exit::Failure;

/// The store that a command is for.
#[derive(Debug, Args)]
pub(super) struct StoreArguments {
    /// A client URL of the store's etcd cluster, such as http://127.0.0.1:2379; repeat it for more
    #[arg(long, value_name = "URL", required = true, value_parser = endpoint)]
    etcd: Vec<String>,
    /// The prefix under which the store keeps its keys
    #[arg(long, value_name = "PREFIX", default_value = "fence")]
    prefix: String,
    /// The tier that the store serves
    #[arg(long, value_name = "TIER")]
    pub(super) tier: TierName,
}

impl StoreArguments {
    /// Connects, also to a store that is sealed or was never initialised.
    pub(super) async fn open(&self) -> Result<EtcdStore, Failure> {
        let connecting = EtcdStore::connect(&self.etcd, &self.prefix, self.tier.clone());
        connecting.await.map_err(|error| match error {
            ConnectError::Store(_) => Failure::service(error),
            _ => Failure::usage(error),
        })
    }
}

fn endpoint(text: &str) -> Result<String, String> {
    let wrong = || "a client URL is http://HOST:PORT, such as http://127.0.0.1:2379".to_owned();
    let address = text
        .strip_prefix("http://")
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
