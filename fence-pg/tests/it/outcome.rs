//! What a commit may claim.

use fence_core::{Claim, Effect, Token};
use fence_pg::tokio_postgres::begin_column;
use fence_pg::{Bounds, ColumnGuard, GuardError};
use sqlx::postgres::PgPoolOptions;
use sqlx::{Connection as _, Executor as _};
use tokio_postgres::NoTls;

use crate::cut::{Cut, CutAtCommit};
use crate::support::{Database, claim};

const INSERT: &str = "INSERT INTO transfer (from_account, amount) VALUES ('acct-1', 5)";

async fn written(database: &Database) -> i64 {
    database.number("SELECT count(*) FROM transfer").await
}

#[tokio::test]
async fn a_commit_after_a_failed_statement_is_not_taken_for_one() {
    let database = Database::guarded().await;
    let mut guarded = fence_pg::sqlx::begin(&database.pool, &claim("acct-1", 34))
        .await
        .unwrap();
    guarded.connection().execute(INSERT).await.unwrap();
    guarded.connection().execute("SELECT 1/0").await.unwrap_err();
    match guarded.commit(Effect::Applied).await {
        Err(GuardError::Database { sqlstate, .. }) => assert_eq!(sqlstate.as_deref(), Some("25P02")),
        other => panic!("committed a failed transaction: {other:?}"),
    }
    assert_eq!(written(&database).await, 0);
}

#[tokio::test]
async fn a_transaction_ended_inside_is_unknown_whichever_way_it_ended() {
    let database = Database::guarded().await;
    for (inside, rows) in [
        ("COMMIT", 1),
        ("ROLLBACK", 1),
        ("COMMIT; BEGIN", 2),
        ("ROLLBACK; BEGIN; SELECT pg_current_xact_id()", 2),
    ] {
        let mut guarded = fence_pg::sqlx::begin(&database.pool, &claim("acct-1", 34))
            .await
            .unwrap();
        guarded.connection().execute(INSERT).await.unwrap();
        sqlx::raw_sql(inside).execute(guarded.connection()).await.unwrap();
        let ended = guarded.commit(Effect::Applied).await;
        assert!(
            matches!(ended, Err(GuardError::Unknown { .. })),
            "{inside}: {ended:?}"
        );
        assert_eq!(written(&database).await, rows, "{inside}");
    }
}

#[tokio::test]
async fn what_a_savepoint_undoes_leaves_the_admission() {
    let database = Database::guarded().await;
    let mut guarded = fence_pg::sqlx::begin(&database.pool, &claim("acct-1", 34))
        .await
        .unwrap();
    let mut savepoint = guarded.connection().begin().await.unwrap();
    savepoint.execute(INSERT).await.unwrap();
    savepoint.rollback().await.unwrap();
    let receipt = guarded
        .commit(Effect::NoWrite("too little money".into()))
        .await
        .unwrap();
    assert_eq!(receipt.effect(), &Effect::NoWrite("too little money".into()));
    assert_eq!(written(&database).await, 0);
    let mark = database.number("SELECT token FROM fence.high_water").await;
    assert_eq!(mark, claim("acct-1", 34).token.as_i64());
}

#[tokio::test]
async fn an_answer_to_commit_that_is_lost_is_unknown_and_the_same_claim_finds_out() {
    for (cut, landed) in [(Cut::Before, 0), (Cut::After, 1)] {
        let database = Database::guarded().await;
        let way = CutAtCommit::open(cut).await;
        let pool = PgPoolOptions::new().connect(&way.url(&database)).await.unwrap();
        let mut guarded = fence_pg::sqlx::begin(&pool, &claim("acct-1", 34)).await.unwrap();
        guarded.connection().execute(INSERT).await.unwrap();
        let lost = guarded.commit(Effect::Applied).await;
        assert!(
            matches!(lost, Err(GuardError::Unknown { .. })),
            "{cut:?}: {lost:?}"
        );

        // The same holder comes again: an equal token is not stale, and it reads what became of its write.
        let mut again = fence_pg::sqlx::begin(&pool, &claim("acct-1", 34)).await.unwrap();
        let found: i64 = sqlx::query_scalar("SELECT count(*) FROM transfer")
            .fetch_one(again.connection())
            .await
            .unwrap();
        assert_eq!(found, landed, "{cut:?}");
        drop(again.commit(Effect::Replayed).await.unwrap());
    }
}

#[tokio::test]
async fn the_column_guards_lost_answer_is_unknown_and_the_same_write_may_be_presented_again() {
    for (cut, landed) in [(Cut::Before, 0), (Cut::After, 34)] {
        let database = Database::guarded().await;
        database
            .run(
                "CREATE TABLE account (id bigint PRIMARY KEY, fence bigint NOT NULL DEFAULT 0);
                 SELECT fence.protect_column('account', 'paydb.balance', 'id', 'fence');
                 INSERT INTO account VALUES (1, 0)",
            )
            .await;
        let way = CutAtCommit::open(cut).await;
        let guard = ColumnGuard::new("account", "id", "fence").unwrap();
        let claim = Claim {
            token: Token::new(34).unwrap(),
            ..claim("1", 1)
        };
        let attempt = async || {
            let (mut client, connection) = tokio_postgres::connect(&way.url(&database), NoTls).await.unwrap();
            tokio::spawn(connection);
            let mut transaction = begin_column(&mut client, &guard, &claim, Bounds::default())
                .await
                .unwrap();
            transaction.update("", "", &[]).await.unwrap();
            transaction.commit(Effect::Applied).await
        };
        let lost = attempt().await;
        assert!(
            matches!(lost, Err(GuardError::Unknown { .. })),
            "{cut:?}: {lost:?}"
        );
        assert_eq!(
            database.number("SELECT fence FROM account").await,
            landed,
            "{cut:?}"
        );
        drop(attempt().await.unwrap());
        assert_eq!(database.number("SELECT fence FROM account").await, 34);
    }
}

#[tokio::test]
async fn a_connection_lost_before_commit_is_unavailable_and_nothing_landed() {
    let database = Database::guarded().await;
    let mut guarded = fence_pg::sqlx::begin(&database.pool, &claim("acct-1", 34))
        .await
        .unwrap();
    guarded.connection().execute(INSERT).await.unwrap();
    let pid: i32 = sqlx::query_scalar("SELECT pg_backend_pid()")
        .fetch_one(guarded.connection())
        .await
        .unwrap();
    let ended = database
        .client()
        .await
        .query_one("SELECT pg_terminate_backend($1, 5000)", &[&pid])
        .await
        .unwrap();
    assert!(ended.get::<_, bool>(0));
    let lost = guarded.commit(Effect::Applied).await;
    assert!(matches!(lost, Err(GuardError::Unavailable { .. })), "{lost:?}");
    assert_eq!(written(&database).await, 0);

    // No server at all.
    let nowhere = PgPoolOptions::new()
        .acquire_timeout(std::time::Duration::from_millis(300))
        .connect_lazy("postgres://nobody@127.0.0.1:1/none")
        .unwrap();
    let unreachable = fence_pg::sqlx::begin(&nowhere, &claim("acct-1", 34)).await;
    assert!(
        matches!(unreachable, Err(GuardError::Unavailable { .. })),
        "{unreachable:?}"
    );
}

#[tokio::test]
async fn a_completed_request_is_answered_again_without_an_admission() {
    let database = Database::guarded().await;
    drop(
        fence_pg::sqlx::raise_mark(&database.pool, &claim("acct-1", 35))
            .await
            .unwrap(),
    );
    let fenced = claim("acct-1", 34);
    let mut opened = fence_pg::sqlx::open(&database.pool, &fenced).await.unwrap();
    sqlx::query("SELECT 1")
        .execute(opened.connection())
        .await
        .unwrap();
    let receipt = opened.replay().await.unwrap();
    assert_eq!((receipt.claim(), receipt.effect()), (&fenced, &Effect::Replayed));
    // Not completed before: it is fenced like any other.
    let opened = fence_pg::sqlx::open(&database.pool, &fenced).await.unwrap();
    crate::support::refused(opened.admit().await);
}

#[tokio::test]
async fn a_pooled_connection_carries_nothing_over_to_its_next_user() {
    let database = Database::guarded().await;
    let pool = crate::support::pool(&database.url, 1);
    let guarded = fence_pg::sqlx::begin(&pool, &claim("acct-1", 34)).await.unwrap();
    drop(guarded.commit(Effect::Applied).await.unwrap());
    let unguarded = pool.execute(INSERT).await.unwrap_err();
    assert_eq!(unguarded.as_database_error().unwrap().code().unwrap(), "ZF002");
    // Given up in the middle.
    let mut guarded = fence_pg::sqlx::begin(&pool, &claim("acct-1", 34)).await.unwrap();
    guarded.connection().execute(INSERT).await.unwrap();
    drop(guarded);
    let unguarded = pool.execute(INSERT).await.unwrap_err();
    assert_eq!(unguarded.as_database_error().unwrap().code().unwrap(), "ZF002");
    assert_eq!(written(&database).await, 0);
}
