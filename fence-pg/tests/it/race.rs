//! Many tasks over few keys.

use std::collections::BTreeMap;
use std::sync::Arc;

use fence_core::Effect;
use fence_pg::sqlx::Isolation;
use fence_pg::{GuardError, Refused};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use sqlx::PgPool;
use tokio::sync::Barrier;

use crate::support::{Database, claim};

const TASKS: i64 = 8;
const ROUNDS: i64 = 12;
const KEYS: i64 = 3;
const SEED: u64 = 20;

/// What one write of a task came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Came {
    Applied,
    Stale,
    TryAgain,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_ledger_is_exactly_what_was_applied_in_token_order() {
    let database = Database::guarded().await;
    database
        .run(
            "CREATE TABLE balance (account text PRIMARY KEY, total bigint NOT NULL);
             INSERT INTO balance SELECT 'acct-' || n, 0 FROM generate_series(0, 2) n;
             SELECT fence.protect('balance', 'paydb.account', 'account');
             ALTER TABLE transfer ADD token bigint",
        )
        .await;
    let barrier = Arc::new(Barrier::new(usize::try_from(TASKS).unwrap()));
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| tokio::spawn(run(database.pool.clone(), task, barrier.clone())))
        .collect();
    let mut applied: BTreeMap<String, i64> = BTreeMap::new();
    let mut counts: BTreeMap<Came, i64> = BTreeMap::new();
    for task in tasks {
        for (account, amount, came) in task.await.unwrap() {
            *counts.entry(came).or_default() += 1;
            if came == Came::Applied {
                *applied.entry(account).or_default() += amount;
            }
        }
    }
    assert!(
        counts[&Came::Applied] > 0 && counts[&Came::Stale] > 0,
        "seed {SEED}: {counts:?}"
    );
    for (account, sum) in applied {
        let total = format!("SELECT total FROM balance WHERE account = '{account}'");
        assert_eq!(database.number(&total).await, sum, "seed {SEED}, {account}");
        let ledger = format!("SELECT sum(amount)::bigint FROM transfer WHERE from_account = '{account}'");
        assert_eq!(database.number(&ledger).await, sum, "seed {SEED}, {account}");
    }
    // In the order of their ids, which is that of their commits while the key was held, tokens never fall.
    let falls = "SELECT count(*) FROM (
                     SELECT token < lag(token) OVER (PARTITION BY from_account ORDER BY id) AS fell FROM transfer) t
                 WHERE fell";
    assert_eq!(database.number(falls).await, 0, "seed {SEED}");
}

async fn run(pool: PgPool, task: i64, barrier: Arc<Barrier>) -> Vec<(String, i64, Came)> {
    let mut rng = ChaCha8Rng::seed_from_u64(SEED + task.unsigned_abs());
    let mut done = Vec::new();
    barrier.wait().await;
    for round in 0..ROUNDS {
        let account = format!("acct-{}", rng.random_range(0..KEYS));
        let amount = rng.random_range(1..1000);
        // Each task has grants of its own; the later the round, the larger.
        let revision = round * TASKS + rng.random_range(0..2) * TASKS * 2 + task + 1;
        let isolation = [
            Isolation::ReadCommitted,
            Isolation::RepeatableRead,
            Isolation::Serializable,
        ][rng.random_range(0..3)];
        let came = match write(&pool, isolation, &account, amount, revision).await {
            Ok(()) => Came::Applied,
            Err(GuardError::Refused(Refused::Claim(fence_core::Refusal::Stale { .. }))) => Came::Stale,
            Err(GuardError::Retryable { .. } | GuardError::Blocked { .. }) => Came::TryAgain,
            Err(error) => panic!("seed {SEED}, task {task}, round {round}: {error:?}"),
        };
        done.push((account, amount, came));
    }
    done
}

/// Reads the balance and writes it back with the amount added: two holders at once would lose one of the writes.
async fn write(
    pool: &PgPool,
    isolation: Isolation,
    account: &str,
    amount: i64,
    revision: i64,
) -> Result<(), GuardError> {
    let claim = claim(account, revision);
    let mut guarded = fence_pg::sqlx::begin_at(pool, isolation, &claim).await?;
    let total: i64 = sqlx::query_scalar("SELECT total FROM balance WHERE account = $1")
        .bind(account)
        .fetch_one(guarded.connection())
        .await
        .map_err(fence_pg::sqlx::sort)?;
    sqlx::query("UPDATE balance SET total = $2 WHERE account = $1")
        .bind(account)
        .bind(total + amount)
        .execute(guarded.connection())
        .await
        .map_err(fence_pg::sqlx::sort)?;
    sqlx::query("INSERT INTO transfer (from_account, amount, token) VALUES ($1, $2, $3)")
        .bind(account)
        .bind(amount)
        .bind(claim.token.as_i64())
        .execute(guarded.connection())
        .await
        .map_err(fence_pg::sqlx::sort)?;
    drop(guarded.commit(Effect::Applied).await?);
    Ok(())
}
