use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use fence_core::{Key, Ttl};
use reqwest::Url;
use tokio_postgres::Config;

use super::exit::EXIT_CODES;

/// Does one of paydb's jobs under a lock.
#[derive(Debug, Parser)]
#[command(name = "paydb-worker", version, after_help = EXIT_CODES)]
pub struct WorkerOptions {
    #[command(subcommand)]
    pub(super) job: Job,
}

#[derive(Debug, Subcommand)]
pub(super) enum Job {
    /// Transfers money once for a reference, through paydb
    Account(AccountJob),
    /// Settles a batch, straight in paydb's database
    Settlement(SettlementJob),
    /// Tells a provider of an order's state; the provider checks no token, so that nothing refuses a late one
    Webhook(WebhookJob),
    /// Builds a day's report; built twice at once it is only built twice
    Report(ReportJob),
}

/// Where the lock is.
#[derive(Debug, Args)]
pub struct LockOptions {
    /// The lock store's endpoints, such as http://127.0.0.1:2379, joined by commas
    #[arg(long, value_name = "URL", value_delimiter = ',', required = true)]
    pub etcd: Vec<String>,
    /// The prefix of the lock store's keys
    #[arg(long, default_value = "fence")]
    pub prefix: String,
    /// How long the lock outlives its last renewal, such as 2s
    #[arg(long, default_value = "10s")]
    pub ttl: Ttl,
}

/// *Refund order-7 once*: reads the account's transfers, and makes those whose reference is not among them.
#[derive(Debug, Args)]
pub struct AccountJob {
    /// The lock, of class paydb.account in tier entity.
    #[command(flatten)]
    pub lock: LockOptions,
    /// paydb's address, such as http://127.0.0.1:8080
    #[arg(long, value_name = "URL")]
    pub resource: Url,
    /// The account that pays
    #[arg(long, value_name = "ID")]
    pub account: Key,
    /// The account that is paid
    #[arg(long, value_name = "ID")]
    pub to: String,
    /// How much, in minor units
    #[arg(long)]
    pub amount: i64,
    /// What for, such as order-7
    #[arg(long)]
    pub reference: String,
    /// Pay in so many parts, each a transfer of the whole amount with a reference of its own, such as `order-7 part 2`
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=9999))]
    pub writes: u32,
    /// Send the parts one after the other without waiting for the answers, each on a connection of its own
    #[arg(long, conflicts_with = "journal")]
    pub at_once: bool,
    /// Let paydb make the transfer later, and keep the lock until it is made or refused
    #[arg(long, conflicts_with_all = ["at_once", "journal"])]
    pub later: bool,
    /// Put token, grant and transfer into this file before each is sent, and take it away once it is answered for good; when
    /// it is there at the start, take no lock and present that transfer under its old grant
    #[arg(long, value_name = "FILE", conflicts_with = "writes")]
    pub journal: Option<PathBuf>,
    /// Do not raise the mark before reading. A mistake: an older holder's write that comes between is rightly accepted, and
    /// lost to this worker, which has not read it. Here to be shown, not to be used
    #[arg(long)]
    pub read_first: bool,
    /// Speak HTTP/2 to paydb, from the first byte on
    #[arg(long)]
    pub http2: bool,
}

/// Claims a batch and settles it.
#[derive(Debug, Args)]
pub struct SettlementJob {
    /// The lock, of class paydb.settlement in tier coord.
    #[command(flatten)]
    pub lock: LockOptions,
    /// paydb's database, such as postgres://user:password@127.0.0.1/paydb
    #[arg(long, value_name = "URL", env = "DATABASE_URL", hide_env_values = true)]
    pub database_url: Config,
    /// The batch
    #[arg(long, value_name = "ID")]
    pub batch: Key,
}

/// Tells a provider of an order's state.
#[derive(Debug, Args)]
pub struct WebhookJob {
    /// The lock, of class paydb.webhook in tier entity.
    #[command(flatten)]
    pub lock: LockOptions,
    /// Where the provider listens
    #[arg(long, value_name = "URL")]
    pub provider: Url,
    /// The order
    #[arg(long, value_name = "ID")]
    pub order: Key,
    /// Its state, such as refunded
    #[arg(long)]
    pub state: String,
    /// How often the state has changed: the provider drops what is older than it has seen
    #[arg(long, value_name = "N")]
    pub version: u64,
}

/// Builds a day's report of what accounts have sent.
#[derive(Debug, Args)]
pub struct ReportJob {
    /// The lock, of class paydb.report in tier entity.
    #[command(flatten)]
    pub lock: LockOptions,
    /// paydb's address, such as http://127.0.0.1:8080
    #[arg(long, value_name = "URL")]
    pub resource: Url,
    /// The day, such as 2026-11-02
    #[arg(long, value_name = "DAY")]
    pub day: Key,
    /// The accounts, joined by commas
    #[arg(long, value_name = "ID", value_delimiter = ',', required = true)]
    pub accounts: Vec<Key>,
    /// The report's file, which is replaced whole
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
}
