//! Stops past the lease at random moments: no token is read after its deadline, and what is written late is refused.

use std::time::Duration;

use fence_core::Ttl;
use fence_lock::{BootClock, Clock as _, EtcdStore, Session};
use pause_kit::services::{Child, Services};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::holder::{connect, successor_writes};
use super::{HOLDER, block_on, class, key, new_etcd, seed, services, this_program, trial};
use crate::measure::{Failure, Figure};

const STOPS: usize = 1000;

/// Holders that are stopped side by side.
const LANES: usize = 20;

/// How long anything may take that must come.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the stops of one lane, or of all, came to.
#[derive(Debug, Default)]
struct Sum {
    stops: usize,
    /// Stops that met no holder in its lease: not counted.
    missed: usize,
    reads: u64,
    late_reads: u64,
    /// Reads whose stamp lies after the moment in which the successor had been granted the lock.
    reads_after_the_next_grant: u64,
    late_refused: u64,
    late_applied: u64,
    late_unknown: u64,
}

pub(crate) fn lock_deadline() -> Result<Figure, Failure> {
    block_on(run())
}

async fn run() -> Result<Figure, Failure> {
    let (stops, seed) = (trial()?.unwrap_or(STOPS), seed()?);
    let services = services(true, &["deadline"]).await?;
    let endpoint = services.etcd("deadline").ok_or("no etcd")?.endpoint();
    let store = new_etcd(&endpoint).await?;
    let database = prepared(&services).await?;
    let lanes = LANES.min(stops);
    let each = stops.div_ceil(lanes);
    let all = (0..lanes).map(|lane| {
        let lane = Lane {
            services: &services,
            store: store.clone(),
            endpoint: &endpoint,
            database: &database,
            number: lane,
            rng: ChaCha8Rng::seed_from_u64(seed.wrapping_mul(1_000_003) ^ lane as u64),
        };
        lane.run(each)
    });
    let mut sum = Sum::default();
    for lane in futures_util::future::try_join_all(all).await? {
        sum.add(&lane);
    }
    let disorder = out_of_order(&database).await?;
    println!("{sum:?}; writes out of order in the database: {disorder}");
    let held = sum.late_reads == 0
        && sum.reads_after_the_next_grant == 0
        && sum.late_applied + sum.late_unknown == 0
        && disorder == 0;
    Ok(Figure {
        line: format!(
            "{} stops past the lease, {} reads of the token, {} of them after the deadline; {} writes late all the same, {} \
             of them refused",
            sum.stops,
            sum.reads,
            sum.late_reads + sum.reads_after_the_next_grant,
            sum.late_refused + sum.late_applied + sum.late_unknown,
            sum.late_refused
        ),
        reached: held && sum.stops >= STOPS && sum.late_refused > 0,
    })
}

/// A database with the guard, and a table of what was written.
async fn prepared(services: &Services) -> Result<String, Failure> {
    let postgres = services.postgres().ok_or("no PostgreSQL")?;
    let url = postgres.create_database("deadline", "deadline_owner").await?;
    let client = connect(url.as_str()).await?;
    fence_pg::tokio_postgres::install(&client).await?;
    let tables = "SELECT fence.declare('shop.order', 'entity'); SELECT fence.register_epoch('entity', 1); \
                  CREATE TABLE written (number bigserial PRIMARY KEY, key text NOT NULL, token bigint NOT NULL)";
    client.batch_execute(tables).await?;
    Ok(url.as_str().to_owned())
}

/// How many writes of a key stand after one with a larger token.
async fn out_of_order(database: &str) -> Result<i64, Failure> {
    let count = "SELECT count(*) FROM (SELECT token AS own, max(token) OVER (PARTITION BY key ORDER BY number) AS most \
                 FROM written) w WHERE own < most";
    Ok(connect(database).await?.query_one(count, &[]).await?.get(0))
}

/// One holder and its successor, on one key.
struct Lane<'run> {
    services: &'run Services,
    store: EtcdStore,
    endpoint: &'run str,
    database: &'run str,
    number: usize,
    rng: ChaCha8Rng,
}

impl Lane<'_> {
    async fn run(mut self, stops: usize) -> Result<Sum, Failure> {
        let spec = this_program(HOLDER, &format!("holder-{}", self.number))?.args([
            self.endpoint.to_owned(),
            self.database.to_owned(),
            self.number.to_string(),
            self.rng.random::<u64>().to_string(),
        ]);
        let holder = self.services.spawn(spec).await?;
        let successor = Session::open(self.store.clone(), Ttl::from_secs(60)?).await?;
        let (mut sum, mut turn) = (Sum::default(), 0);
        while sum.stops < stops {
            if sum.missed > stops {
                return Err("most stops met no holder in its lease: the machine is too busy".into());
            }
            self.stop_once(&holder, &successor, turn, &mut sum).await?;
            turn += 1;
        }
        let _ = holder.kill().await;
        successor.close().await?;
        Ok(sum)
    }

    async fn stop_once(
        &mut self,
        holder: &Child,
        successor: &Session,
        turn: u64,
        sum: &mut Sum,
    ) -> Result<(), Failure> {
        holder.wait_line(&format!("granted {turn}"), PATIENCE).await?;
        // Any moment of a keepalive's round.
        tokio::time::sleep(Duration::from_micros(self.rng.random_range(0..1_500_000))).await;
        let stopped = holder.stop().await?;
        let over = format!("over {turn} ");
        let in_time = !std::fs::read_to_string(holder.stdout())?
            .lines()
            .any(|line| line.starts_with(&over));
        // It is granted once the lease of the stopped one has ended, and not before.
        let hold = successor
            .acquire_within(&class()?, &key(self.number)?, PATIENCE)
            .await?;
        let granted_at = BootClock.now();
        let mut client = connect(self.database).await?;
        successor_writes(&mut client, &hold.claim()?).await?;
        drop(stopped);
        let told = holder.wait_line(&over, PATIENCE).await?;
        let _ = hold.release().await?;
        let numbers: Vec<u64> = told.split(' ').map(str::parse).collect::<Result<_, _>>()?;
        let [
            reads,
            late_reads,
            latest,
            _,
            late_refused,
            late_applied,
            late_unknown,
        ] = numbers[..]
        else {
            return Err(format!("a holder said {told:?}").into());
        };
        sum.stops += usize::from(in_time);
        sum.missed += usize::from(!in_time);
        sum.reads += reads;
        sum.late_reads += late_reads;
        sum.reads_after_the_next_grant += u64::from(latest >= granted_at.as_nanos());
        sum.late_refused += late_refused;
        sum.late_applied += late_applied;
        sum.late_unknown += late_unknown;
        Ok(())
    }
}

impl Sum {
    fn add(&mut self, other: &Sum) {
        self.stops += other.stops;
        self.missed += other.missed;
        self.reads += other.reads;
        self.late_reads += other.late_reads;
        self.reads_after_the_next_grant += other.reads_after_the_next_grant;
        self.late_refused += other.late_refused;
        self.late_applied += other.late_applied;
        self.late_unknown += other.late_unknown;
    }
}
