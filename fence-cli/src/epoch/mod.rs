//! `fence epoch`: the epochs of a lock store.

use std::num::NonZeroU16;

use clap::{Args, Subcommand};
use fence_core::{Epoch, TierName};
use fence_lock::{ConnectError, EtcdStore, InitError};

use crate::exit::{Ending, Failure};
use crate::say;

/// At the end of `fence epoch --help`.
const HELP: &str = "\
A token is an epoch and a revision of the store. When a store loses history, by a restore or an emptied folder, its revisions
come again: begin an epoch above every earlier one before the holders come back. Where the old record came back too, first
delete it: etcdctl del PREFIX/epoch";

#[derive(Debug, Subcommand)]
#[command(after_help = HELP)]
pub(crate) enum EpochCommand {
    /// Write the epoch record of a lock store that has none. Without a record it grants nothing
    Init(InitArguments),
}

/// Which store, and which epoch.
#[derive(Debug, Args)]
pub(crate) struct InitArguments {
    /// A client URL of the store's etcd cluster, such as http://127.0.0.1:2379; repeat it for more
    #[arg(long, value_name = "URL", required = true, value_parser = endpoint)]
    etcd: Vec<String>,
    /// The prefix under which the store keeps its keys
    #[arg(long, value_name = "PREFIX", default_value = "fence")]
    prefix: String,
    /// The tier that the store serves
    #[arg(long, value_name = "TIER")]
    tier: TierName,
    /// The epoch, 1 to 32767; above every epoch that any store of this system ever granted in
    #[arg(long, value_name = "N", default_value = "1", value_parser = epoch)]
    epoch: Epoch,
    /// Why the epoch begins, for those who read the record later
    #[arg(long, value_name = "TEXT", default_value = "a new lock store")]
    reason: String,
}

/// Runs one of the subcommands.
pub(crate) fn run(command: &EpochCommand) -> Result<Ending, Failure> {
    let EpochCommand::Init(arguments) = command;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::service)?;
    runtime.block_on(init(arguments))
}

async fn init(arguments: &InitArguments) -> Result<Ending, Failure> {
    let connecting = EtcdStore::connect(&arguments.etcd, &arguments.prefix, arguments.tier.clone());
    let store = connecting.await.map_err(|error| match error {
        ConnectError::Store(_) => Failure::service(error),
        _ => Failure::usage(error),
    })?;
    let begun = store.init(arguments.epoch, &arguments.reason).await;
    let record = begun.map_err(|error| match error {
        InitError::Store(_) => Failure::service(error),
        InitError::Exists { .. } | InitError::Reason { .. } => Failure::usage(error),
    })?;
    let begun = format!(
        "epoch {} of tier {} begins in cluster {}; register it with every resource: SELECT fence.register_epoch('{}', {})",
        record.epoch, record.tier, record.cluster_id, record.tier, record.epoch
    );
    if let Err(failure) = say::answer(&format!("{begun}\n")) {
        // It cannot be asked for again: the record stands.
        say::remark(&begun);
        return Err(failure);
    }
    Ok(Ending::Done)
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

fn epoch(text: &str) -> Result<Epoch, String> {
    let number: u16 = text
        .parse()
        .map_err(|_| "an epoch is a number, 1 to 32767".to_owned())?;
    Epoch::new(number).map_err(|error| error.to_string())
}
