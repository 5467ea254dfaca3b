//! What the lock stores are measured with: services, worker processes, and the size of a trial.

mod clock;
pub(super) mod deadline;
mod holder;
mod judge;
mod keeper;
pub(super) mod renewal;
mod revisions;
mod rival;
mod rows;
pub(super) mod speed;
mod stages;
pub(super) mod storm;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use fence_core::{ClassName, Epoch, Key, TierName};
use fence_lock::{EtcdStore, LockStore, PostgresStore};
use pause_kit::reaper::ReaperCommand;
use pause_kit::services::{ProcessSpec, Services, ServicesConfig};

use super::Failure;

/// The word that makes the measuring program one holder of a lock.
const HOLDER: &str = "lock-holder";

/// The word that makes it one process of the storm.
const KEEPER: &str = "lock-keeper";

/// Runs one of the processes that a measurement starts, when the arguments ask for one.
pub(super) fn process() -> Option<std::process::ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (word, rest) = arguments.split_first()?;
    let ended = match word.as_str() {
        HOLDER => block_on(holder::run(rest)),
        KEEPER => block_on(keeper::run(rest)),
        _ => return None,
    };
    Some(match ended {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{word}: {}", chain(error.as_ref()));
            std::process::ExitCode::FAILURE
        }
    })
}

/// This very program, as one of those processes.
fn this_program(word: &str, name: &str) -> Result<ProcessSpec, Failure> {
    Ok(ProcessSpec::new(name, std::env::current_exe()?).args([word]))
}

fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?
        .block_on(work)
}

/// The number after `--trial`, where a measurement is only tried out: it then reaches nothing.
fn trial() -> Result<Option<usize>, Failure> {
    let number = |name: &str| -> Result<Option<usize>, Failure> {
        let mut arguments = std::env::args().skip_while(|argument| argument != name).skip(1);
        match arguments.next() {
            Some(text) => Ok(Some(
                text.parse().map_err(|_| format!("{name} {text} is no number"))?,
            )),
            None => Ok(None),
        }
    };
    number("--trial")
}

/// The number after `--seed`, or one that the clock gives; printed.
fn seed() -> Result<u64, Failure> {
    let mut arguments = std::env::args()
        .skip_while(|argument| argument != "--seed")
        .skip(1);
    let seed = match arguments.next() {
        Some(text) => text.parse().map_err(|_| format!("--seed {text} is no number"))?,
        None => SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs(),
    };
    println!("seed {seed}");
    Ok(seed)
}

async fn services(postgres: bool, etcd: &[&str]) -> Result<Services, Failure> {
    let config = ServicesConfig {
        reaper: ReaperCommand::find()?,
        postgres,
        etcd: etcd.iter().map(|name| (*name).to_owned()).collect(),
    };
    Ok(Services::start(config).await?)
}

fn tier() -> Result<TierName, Failure> {
    Ok(TierName::new("entity")?)
}

fn class() -> Result<ClassName, Failure> {
    Ok(ClassName::new("shop.order")?)
}

fn key(number: usize) -> Result<Key, Failure> {
    Ok(Key::text(format!("order-{number}"))?)
}

/// The store at an address, etcd's or a database's.
async fn open(address: &str) -> Result<Arc<dyn LockStore>, Failure> {
    if address.starts_with("postgres") {
        Ok(Arc::new(PostgresStore::connect(address, tier()?).await?))
    } else {
        Ok(Arc::new(etcd(address).await?))
    }
}

async fn etcd(address: &str) -> Result<EtcdStore, Failure> {
    Ok(EtcdStore::connect(&[address], "fence", tier()?).await?)
}

/// The store on etcd, in epoch 1.
async fn new_etcd(address: &str) -> Result<EtcdStore, Failure> {
    let store = etcd(address).await?;
    store.init(Epoch::FIRST, "a measurement").await?;
    Ok(store)
}

/// The store on PostgreSQL, in epoch 1.
async fn new_postgres(address: &str) -> Result<PostgresStore, Failure> {
    let store = PostgresStore::connect(address, tier()?).await?;
    store.install().await?;
    store.init(Epoch::FIRST, "a measurement").await?;
    Ok(store)
}

/// The sum of one of etcd's counters over the lines that have all these labels.
async fn counted(endpoint: &str, name: &str, labels: &[&str]) -> Result<f64, Failure> {
    let text = reqwest::get(format!("{endpoint}/metrics")).await?.text().await?;
    let of = |line: &str| -> Option<f64> {
        let wanted = line.starts_with(name) && labels.iter().all(|label| line.contains(label));
        wanted.then(|| line.rsplit(' ').next()?.parse().ok()).flatten()
    };
    Ok(text.lines().filter_map(of).sum())
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text.push_str(&format!(": {source}"));
        next = source.source();
    }
    text
}
