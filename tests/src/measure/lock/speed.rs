//! How fast locks are, beside etcd's own mutex on the same three members.

use std::time::Duration;

use fence_core::Ttl;
use fence_lock::Session;
use pause_kit::services::locate;

use super::rival::{On, Rival};
use super::stages::{Cluster, in_line, reads, singly, steadily, together};
use super::{block_on, new_etcd, new_postgres, seed, services, trial};
use crate::measure::pg_cost::estimate::{Estimate, median};
use crate::measure::{Failure, Figure};

/// Pairs of each comparison.
const PAIRS: usize = 60;

/// Locks in one measurement of a pair.
const LOCKS: u32 = 20;

/// Keys that are taken at once.
const TOGETHER: u32 = 60;

/// Bars, and those that are reached.
#[derive(Default)]
struct Tally {
    bars: usize,
    reached: usize,
}

impl Tally {
    fn bar(&mut self, what: &str, found: &str, bar: &str, reached: bool) {
        let answer = if reached { "reached" } else { "short" };
        println!("{what}: {found}, bar {bar}: {answer}");
        self.bars += 1;
        self.reached += usize::from(reached);
    }
}

pub(crate) fn lock_speed() -> Result<Figure, Failure> {
    // On a worker, as a server's requests are, and not on the thread that started them.
    let measured = block_on(async { tokio::spawn(run()).await? });
    measured.map_err(|error| super::chain(error.as_ref()).into())
}

async fn run() -> Result<Figure, Failure> {
    let (pairs, seed) = (trial()?.unwrap_or(PAIRS), seed()?);
    let services = services(false, &[]).await?;
    let cluster = Cluster::start(&services).await?;
    // Both ask one member, the same.
    let endpoint = &cluster.endpoints[0];
    let store = new_etcd(endpoint).await?;
    let session = Session::open(store.clone(), Ttl::default()).await?;
    let mut tally = Tally::default();

    beside_the_mutex(&session, endpoint, pairs, seed, &mut tally).await?;
    many_at_once(&session, pairs.div_ceil(6), seed, &mut tally).await?;

    let waited = steadily(&session, 500, Duration::from_secs(pairs.div_ceil(3) as u64)).await?;
    let p99 = waited[waited.len() * 99 / 100];
    let found = format!(
        "p50 {:?}, p99 {p99:?} of {} grants",
        waited[waited.len() / 2],
        waited.len()
    );
    tally.bar(
        "acquire at 500 grants/s",
        &found,
        "p99 at most 50 ms",
        p99 <= Duration::from_millis(50),
    );

    beside_postgresql(&services, &session, pairs.div_ceil(2), seed).await?;

    let (mut slower, mut more) = (Vec::new(), Vec::new());
    for _ in 0..pairs.div_ceil(20) {
        let few = in_line(&store, &session, endpoint, 10, 200).await?;
        let many = in_line(&store, &session, endpoint, 1000, 200).await?;
        println!("hand-over with 10 waiters {few:?}, with 1,000 {many:?}");
        slower.push(many.each.as_secs_f64() / few.each.as_secs_f64());
        more.push(many.messages / few.messages);
    }
    let (slower, more) = (median(slower), median(more));
    tally.bar(
        "hand-over with 1,000 waiters beside 10",
        &format!("{slower:.2}"),
        "at most 1.5",
        slower <= 1.5,
    );
    tally.bar(
        "messages for it, likewise",
        &format!("{more:.2}"),
        "at most 1.1",
        more <= 1.1,
    );

    let read = reads(&session).await?;
    tally.bar(
        "reading the token",
        &format!("{read:.0} ns"),
        "under 100 ns",
        read < 100.0,
    );
    session.close().await?;
    Ok(Figure {
        line: format!(
            "{} of {} bars reached, {pairs} pairs, three members of etcd",
            tally.reached, tally.bars
        ),
        reached: tally.reached == tally.bars && pairs >= PAIRS,
    })
}

/// The same locks by this project and by etcd's own client, turn about.
async fn beside_the_mutex(
    session: &Session,
    endpoint: &str,
    pairs: usize,
    seed: u64,
    tally: &mut Tally,
) -> Result<(), Failure> {
    let mut rival = Rival::start(endpoint)?;
    // Connections, and what is compiled or cached once.
    singly(session, LOCKS).await?;
    rival.take(On::Shared, LOCKS).await?;
    rival.take(On::Each, 2).await?;
    let (mut to_shared, mut to_each) = (Vec::new(), Vec::new());
    for pair in 0..pairs {
        let (ours, shared);
        if pair % 2 == 0 {
            ours = singly(session, LOCKS).await?;
            shared = rival.take(On::Shared, LOCKS).await?;
        } else {
            shared = rival.take(On::Shared, LOCKS).await?;
            ours = singly(session, LOCKS).await?;
        }
        let each = rival.take(On::Each, LOCKS).await?;
        to_shared.push(ours.as_secs_f64() / shared.as_secs_f64());
        to_each.push(each.as_secs_f64() / ours.as_secs_f64());
    }
    let to_shared = Estimate::of(&to_shared, seed);
    tally.bar(
        "acquire and release, by the time of etcd's mutex on a shared session",
        &to_shared.to_string(),
        "at most 1.05",
        to_shared.most() <= 1.05,
    );
    let to_each = Estimate::of(&to_each, seed);
    tally.bar(
        "etcd's mutex on a session for each lock, by that time",
        &to_each.to_string(),
        "at least 1.8",
        to_each.least() >= 1.8,
    );
    Ok(())
}

async fn many_at_once(session: &Session, pairs: usize, seed: u64, tally: &mut Tally) -> Result<(), Failure> {
    let mut cheaper = Vec::new();
    for _ in 0..pairs {
        let one_by_one = singly(session, TOGETHER).await?;
        let at_once = together(session, TOGETHER).await?;
        cheaper.push(one_by_one.as_secs_f64() / at_once.as_secs_f64());
    }
    let cheaper = Estimate::of(&cheaper, seed);
    tally.bar(
        "60 keys one by one, by the time of one acquisition",
        &cheaper.to_string(),
        "at least 15",
        cheaper.least() >= 15.0,
    );
    Ok(())
}

/// Published, and no bar: a store on PostgreSQL that waits for the disk, as etcd's members do.
async fn beside_postgresql(
    services: &pause_kit::services::Services,
    on_etcd: &Session,
    pairs: usize,
    seed: u64,
) -> Result<(), Failure> {
    let server = services
        .start_postgres_with(&locate::postgres()?, &["fsync=on"])
        .await?;
    let database = server.create_database("speed", "speed_owner").await?;
    let on_postgres = Session::open(new_postgres(database.as_str()).await?, Ttl::default()).await?;
    singly(&on_postgres, LOCKS).await?;
    let (mut ratios, mut etcd, mut postgres) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..pairs {
        let times = (singly(on_etcd, LOCKS).await?, singly(&on_postgres, LOCKS).await?);
        let each = |time: Duration| time.as_secs_f64() * 1000.0 / f64::from(LOCKS);
        etcd.push(each(times.0));
        postgres.push(each(times.1));
        ratios.push(times.1.as_secs_f64() / times.0.as_secs_f64());
    }
    println!(
        "acquire and release: etcd {:.2} ms, PostgreSQL {:.2} ms, PostgreSQL by etcd {}",
        median(etcd),
        median(postgres),
        Estimate::of(&ratios, seed)
    );
    on_postgres.close().await?;
    Ok(())
}
