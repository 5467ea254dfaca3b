//! A database of its own for each test, and what the tests say about errors.

use fence_core::{Claim, ClassName, GrantId, Key, Token};
use fence_pg::{GuardError, Refused};
use pause_kit::services::{DatabaseUrl, for_tests};
use sqlx::postgres::{PgPool, PgPoolOptions};
use tokio_postgres::{Client, NoTls};

use crate::owners;

/// The class of a tier that most tests use, and its tier. Epoch 1 is registered.
pub(crate) const CLASS: &str = "paydb.account";
/// A class that takes another issuer's tokens.
pub(crate) const OPEN: &str = "paydb.open";

/// A database of one test, and connections to it as its owner, who is no superuser.
pub(crate) struct Database {
    pub(crate) url: DatabaseUrl,
    pub(crate) pool: PgPool,
}

impl Database {
    /// Without anything in it.
    pub(crate) async fn bare() -> Database {
        let url = for_tests().await.fresh_database().await;
        owners::look(&url).await;
        let pool = pool(&url, 8);
        Database { url, pool }
    }

    /// With the guard, both classes, epoch 1, and a protected table `transfer`.
    pub(crate) async fn guarded() -> Database {
        let database = Database::bare().await;
        fence_pg::sqlx::install(&mut database.pool.acquire().await.unwrap())
            .await
            .unwrap();
        database
            .run(&format!(
                "SELECT fence.declare('{CLASS}', 'entity');
                 SELECT fence.declare('{OPEN}');
                 SELECT fence.register_epoch('entity', 1);
                 CREATE TABLE transfer (
                     id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
                     from_account text NOT NULL,
                     amount bigint NOT NULL
                 );
                 SELECT fence.protect('transfer', '{CLASS}', 'from_account');"
            ))
            .await;
        database
    }

    /// A connection as the owner.
    pub(crate) async fn client(&self) -> Client {
        client(&self.url).await
    }

    /// A connection as a superuser, for what no owner can set up.
    pub(crate) async fn superuser(&self) -> Client {
        owners::note("superuser");
        let postgres = for_tests().await.postgres();
        client(&postgres.superuser_url_of(self.url.database())).await
    }

    /// Runs statements as the owner, each in its own transaction unless they say otherwise.
    pub(crate) async fn run(&self, sql: &str) {
        self.client().await.batch_execute(sql).await.unwrap();
    }

    /// One number, read by the owner.
    pub(crate) async fn number(&self, sql: &str) -> i64 {
        self.client().await.query_one(sql, &[]).await.unwrap().get(0)
    }

    /// One text, read by the owner.
    pub(crate) async fn text(&self, sql: &str) -> String {
        self.client().await.query_one(sql, &[]).await.unwrap().get(0)
    }
}

pub(crate) fn pool(url: &DatabaseUrl, connections: u32) -> PgPool {
    PgPoolOptions::new()
        .max_connections(connections)
        .connect_lazy(url.as_str())
        .unwrap()
}

pub(crate) async fn client(url: &DatabaseUrl) -> Client {
    let (client, connection) = tokio_postgres::connect(url.as_str(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// A token of epoch 1.
pub(crate) fn token(revision: i64) -> Token {
    Token::new((1 << 48) + revision).unwrap()
}

/// A claim of [`CLASS`] with a token of epoch 1; each revision is another grant.
pub(crate) fn claim(key: &str, revision: i64) -> Claim {
    Claim {
        class: ClassName::new(CLASS).unwrap(),
        key: Key::text(key).unwrap(),
        token: token(revision),
        grant_id: Some(GrantId::new(format!("g{revision}")).unwrap()),
    }
}

/// The same claim as SQL: `fence.admit(...)`.
pub(crate) fn admit(key: &str, revision: i64) -> String {
    format!(
        "SELECT fence.admit('{CLASS}', '{key}', {}, 'g{revision}');",
        token(revision)
    )
}

/// The SQLSTATE of a statement that must fail.
pub(crate) async fn code(client: &Client, sql: &str) -> String {
    failure(client, sql).await.code().code().to_owned()
}

/// The server's error for a statement that must fail.
pub(crate) async fn failure(client: &Client, sql: &str) -> tokio_postgres::error::DbError {
    match client.batch_execute(sql).await {
        Ok(()) => panic!("not refused: {sql}"),
        Err(error) => error.as_db_error().expect("the server answered").clone(),
    }
}

/// The refusal of a guarded write that must be refused.
pub(crate) fn refused<T: std::fmt::Debug>(result: Result<T, GuardError>) -> Refused {
    match result {
        Err(GuardError::Refused(refused)) => refused,
        other => panic!("not refused: {other:?}"),
    }
}

/// Returns once so many sessions of the test's database wait for a lock, and fails when that takes longer than any guard
/// would let them wait.
pub(crate) async fn wait_for_lock_waiters(database: &Database, number: i64) {
    let client = database.client().await;
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let began = std::time::Instant::now();
    while client.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) < number {
        let waited = began.elapsed();
        assert!(
            waited < std::time::Duration::from_secs(20),
            "nobody waits for a lock after {waited:?}"
        );
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}
