//! One holder of one lock: reads its token and writes with it, over and over, until it may not.

use std::time::Duration;

use fence_core::{BootInstant, Claim, Effect, Ttl};
use fence_lock::{Clock as _, Session, SessionConfig};
use fence_pg::GuardError;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use tokio_postgres::{Client, NoTls};

use super::clock::NotingClock;
use super::{class, etcd, key};
use crate::measure::Failure;

/// What one hold came to.
#[derive(Default)]
struct Told {
    reads: u64,
    /// Reads that gave a token though their own stamp was not before the deadline.
    late_reads: u64,
    /// The stamp of the last read that gave a token, in nanoseconds.
    latest: u64,
    applied: u64,
    /// Writes that were begun after the deadline, by what became of them.
    late_refused: u64,
    late_applied: u64,
    late_unknown: u64,
}

/// Arguments: etcd, the database, the key's number, the seed.
pub(super) async fn run(arguments: &[String]) -> Result<(), Failure> {
    let [address, database, number, seed] = arguments else {
        return Err("a holder takes etcd, a database, a number and a seed".into());
    };
    let (number, seed): (usize, u64) = (number.parse()?, seed.parse()?);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let store = etcd(address).await?;
    for turn in 0_u64.. {
        let config = SessionConfig::new(Ttl::MIN).clock(NotingClock);
        let session = Session::open_with(store.clone(), config).await?;
        // A session that ends while it waits is followed by another.
        if let Ok(hold) = session.acquire(&class()?, &key(number)?).await {
            let mut client = connect(database).await?;
            let told = work(&session, &hold, &mut client, turn, &mut rng).await?;
            println!(
                "over {turn} {} {} {} {} {} {} {}",
                told.reads,
                told.late_reads,
                told.latest,
                told.applied,
                told.late_refused,
                told.late_applied,
                told.late_unknown
            );
            let _ = hold.release().await;
        }
        let _ = session.close().await;
    }
    Ok(())
}

async fn work(
    session: &Session,
    hold: &fence_lock::Hold,
    client: &mut Client,
    turn: u64,
    rng: &mut ChaCha8Rng,
) -> Result<Told, Failure> {
    let mut told = Told::default();
    let mut raised = false;
    loop {
        let before = session.deadline();
        // Nothing is awaited between the read and the look at its stamp.
        let read = hold.claim();
        let at = NotingClock::last();
        let Ok(claim) = read else { return Ok(told) };
        let deadline = session.deadline();
        told.reads += 1;
        told.latest = told.latest.max(at.as_nanos());
        told.late_reads += u64::from(at >= deadline || (before == deadline && at >= before));
        if !raised {
            match fence_pg::tokio_postgres::raise_mark(client, &claim).await {
                Ok(_) => raised = true,
                Err(_) => return Ok(told),
            }
            println!("granted {turn}");
        }
        // The gap that no holder can close: a token that was read in time is used whenever its process runs.
        tokio::time::sleep(Duration::from_micros(rng.random_range(0..3000))).await;
        if !write(&mut told, client, &claim, deadline).await {
            return Ok(told);
        }
        tokio::time::sleep(Duration::from_micros(rng.random_range(0..2000))).await;
    }
}

/// Whether the holder may go on.
async fn write(told: &mut Told, client: &mut Client, claim: &Claim, deadline: BootInstant) -> bool {
    let late = NotingClock.now() >= deadline;
    let outcome = guarded(client, claim).await;
    let count = match (late, &outcome) {
        (false, Ok(())) => &mut told.applied,
        (true, Ok(())) => &mut told.late_applied,
        (true, Err(GuardError::Refused(_))) => &mut told.late_refused,
        (true, Err(_)) => &mut told.late_unknown,
        (false, Err(_)) => return false,
    };
    *count += 1;
    outcome.is_ok()
}

/// One guarded write. The row's number is drawn under the mark's lock, so that the numbers of one key are its commit order.
async fn guarded(client: &mut Client, claim: &Claim) -> Result<(), GuardError> {
    let guarded = fence_pg::tokio_postgres::begin(client, claim).await?;
    let insert = "INSERT INTO written (key, token) VALUES ($1, $2)";
    let written = guarded
        .client()
        .execute(insert, &[&claim.key.as_str(), &claim.token.as_i64()])
        .await;
    written.map_err(fence_pg::tokio_postgres::sort)?;
    guarded.commit(Effect::Applied).await.map(drop)
}

/// Raises the mark and writes. A holder that was stopped inside its transaction is in the way for as long as the guard lets it be.
pub(super) async fn successor_writes(client: &mut Client, claim: &Claim) -> Result<(), Failure> {
    loop {
        match fence_pg::tokio_postgres::raise_mark(client, claim).await {
            Ok(_) => break,
            Err(GuardError::Blocked { .. } | GuardError::Retryable { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(guarded(client, claim).await?)
}

pub(super) async fn connect(database: &str) -> Result<Client, Failure> {
    let (client, connection) = tokio_postgres::connect(database, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}
