//! Writers with old tokens and new ones on few keys, at every isolation level, under both guards.

mod audit;
mod guarded;
mod judge;
mod store;
mod writer;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use futures_util::future::join_all;
use pause_kit::commit_order::CommitOrder;
use pause_kit::reaper::ReaperCommand;
use pause_kit::services::{Postgres, Services, ServicesConfig};
use tokio::sync::{Semaphore, watch};
use tokio_postgres::{Client, NoTls};

use super::run::root;
use super::{Failure, Figure};
use audit::Audit;
use judge::{Findings, LEDGER, ORDER, REAL_TIME, SPURIOUS, judge};
use store::{Resource, Store};
use writer::{STALE_OF_THREE, Storm, Writer};

/// Writers that hold what they write, and as many that do not any more.
const WRITERS: u64 = 4;
/// Guarded writes in all, and how many of them must have begun after a newer grant's write had been acknowledged.
const WRITES: u64 = 100_000;
const LATE: usize = 20_000;
/// Those of the twin without its guard.
const DEFEATED_WRITES: u64 = 10_000;

pub(crate) fn storm() -> Result<Figure, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(run())
}

async fn run() -> Result<Figure, Failure> {
    let seed = seed()?;
    println!("seed {seed}");
    let config = ServicesConfig {
        reaper: ReaperCommand::find()?,
        postgres: true,
        etcd: Vec::new(),
    };
    let services = Services::start(config).await?;
    let postgres = services.postgres().ok_or("no PostgreSQL")?;
    let began = Instant::now();
    let guarded = half(postgres, "guarded", seed, WRITES).await?;
    let took = began.elapsed().as_secs();
    let defeated = half(postgres, "defeated", seed, DEFEATED_WRITES).await?;
    let retried: usize = guarded.retried.values().sum();
    let broken = guarded.broken.len();
    let caught = defeated.times(ORDER) > 0 && defeated.times(REAL_TIME) > 0 && defeated.late_applied > 0;
    let exercised = guarded.late >= LATE && guarded.retried.keys().any(|(_, code)| code == "40001");
    Ok(Figure {
        line: format!(
            "seed {seed}, PostgreSQL {}: {WRITES} guarded writes by {} writers, {} applied and {} refused as stale, {} of them \
             begun after a newer acknowledged write, {} of those applied, {} rightful refused as stale, {} sums wrong, {broken} \
             rules broken, {retried} transactions tried again and one at most {} times, {took} s; without the guard {} of {} late writes applied",
            postgres.version(),
            2 * WRITERS,
            guarded.applied,
            guarded.stale,
            guarded.late,
            guarded.late_applied,
            guarded.times(SPURIOUS),
            guarded.times(LEDGER),
            guarded.most_retried,
            defeated.late_applied,
            defeated.late,
        ),
        reached: broken == 0 && guarded.late_applied == 0 && exercised && caught,
    })
}

/// The number after `--seed`, or one of this moment.
fn seed() -> Result<u64, Failure> {
    let mut arguments = std::env::args()
        .skip_while(|argument| argument != "--seed")
        .skip(1);
    match arguments.next() {
        Some(seed) => Ok(seed.parse().map_err(|_| format!("--seed {seed} is no number"))?),
        None => Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs()),
    }
}

/// One storm in a database of its own, `defeated` with a guard that admits everything.
async fn half(postgres: &Postgres, name: &str, seed: u64, writes: u64) -> Result<Findings, Failure> {
    let defeated = name == "defeated";
    let database = postgres.create_database(name, name).await?;
    let owner = connect(database.as_str()).await?;
    install(&owner).await?;
    owner.batch_execute(guarded::TABLES).await?;
    if defeated {
        let sql = "reference-resource/defeat/admit_everything.sql";
        owner
            .batch_execute(&std::fs::read_to_string(root().join(sql))?)
            .await?;
    }
    let server = postgres.superuser_url_of(name).as_str().parse()?;
    let mut audit = Audit::new(CommitOrder::start(&server, name).await?);

    let storm = Storm {
        store: Store::new(),
        seed,
        moments: AtomicU64::new(1),
        step: Semaphore::new(0),
        fresher: defeated,
    };
    let stale = writes * STALE_OF_THREE / (3 + STALE_OF_THREE) / WRITERS;
    let mut writers = Vec::new();
    for number in 0..2 * WRITERS {
        let writer = Writer::new(&storm, connect(database.as_str()).await?, number);
        writers.push(async move {
            match number < WRITERS {
                true => writer.rightful(writes / WRITERS - stale).await,
                false => writer.stale(stale).await,
            }
        });
    }
    let (over, mut ended) = watch::channel(false);
    let storming = async {
        let made = join_all(writers).await;
        over.send_replace(true);
        made
    };
    let auditing = async {
        // Now and then, so that little of the log has to be kept; and once more when all is written.
        while !*ended.borrow() {
            let _ = tokio::time::timeout(AUDIT_EVERY, ended.changed()).await;
            audit.read().await?;
        }
        Ok::<_, Failure>(audit)
    };
    let (made, audit) = tokio::join!(storming, auditing);
    let attempts: Vec<_> = made.into_iter().flatten().collect();
    let committed = audit?.committed();
    let findings = judge(&attempts, &committed, &sums(&owner).await?);
    show(name, &storm, &findings);
    Ok(findings)
}

const AUDIT_EVERY: std::time::Duration = std::time::Duration::from_secs(1);

fn show(name: &str, storm: &Storm, findings: &Findings) {
    println!(
        "{name}: {} grants, {} writes applied, {} refused as stale, {} late and {} of those applied",
        storm.store.takeovers(),
        findings.applied,
        findings.stale,
        findings.late,
        findings.late_applied
    );
    for ((level, code), times) in &findings.retried {
        println!("{name}: {level}: {times} transactions tried again after {code}");
    }
    for (rule, (times, example)) in &findings.broken {
        println!("{name}: {rule}: broken {times} times, for one {example}");
    }
}

async fn connect(url: &str) -> Result<Client, Failure> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// The guard, as somebody without Rust installs it.
async fn install(owner: &Client) -> Result<(), Failure> {
    let folder = root().join(Path::new("fence-pg/sql"));
    let mut files = Vec::new();
    for file in std::fs::read_dir(&folder)? {
        files.push(file?.path());
    }
    files.sort();
    for file in files {
        owner.batch_execute(&std::fs::read_to_string(&file)?).await?;
    }
    Ok(())
}

/// The sums that stand, which an account's entries must add up to as well.
async fn sums(owner: &Client) -> Result<HashMap<Resource, i64>, Failure> {
    let found = "SELECT right(b.account, 1)::bigint, b.total, coalesce(sum(e.amount), 0)::bigint
                 FROM balance b LEFT JOIN entry e USING (account) GROUP BY b.account
                 UNION ALL SELECT 8 + id, total, total FROM batch";
    let mut sums = HashMap::new();
    for row in owner.query(found, &[]).await? {
        let (number, total, entries): (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
        if total == entries {
            sums.insert(Resource(usize::try_from(number)?), total);
        }
    }
    Ok(sums)
}
