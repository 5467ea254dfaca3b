//! The database's schema: the guard's, and paydb's own on top of it.

use fence_pg::InstallError;
use sqlx::{Connection as _, Executor as _, PgConnection, PgPool};

/// paydb's own files, in order.
const FILES: [(&str, &str); 4] = [
    ("0001_accounts.sql", include_str!("../../sql/0001_accounts.sql")),
    ("0002_completed_requests.sql", fence_pg::COMPLETED_TABLE_SQL),
    (
        "0003_settlement.sql",
        include_str!("../../sql/0003_settlement.sql"),
    ),
    ("0004_jobs.sql", include_str!("../../sql/0004_jobs.sql")),
];

/// Why the schema cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// The guard could not be installed. The source says why; most often the role does not own the database.
    #[error("the guard cannot be installed")]
    Guard(#[source] InstallError),
    /// One of paydb's own files failed, and left nothing behind.
    #[error("{file} cannot be applied")]
    File {
        /// The file.
        file: &'static str,
        /// Why.
        #[source]
        source: sqlx::Error,
    },
    /// The database did not answer.
    #[error("the database cannot be looked at")]
    Look(#[source] sqlx::Error),
}

/// Brings the schema up to date. A guard that is there is left as it is, whatever its version: upgrading it is for whoever
/// owns the database. Replicas that start together take turns.
pub(super) async fn prepare(pool: &PgPool) -> Result<(), SchemaError> {
    // A connection of its own: closing it frees the turn, whatever happens here.
    let mut connection = pool.acquire().await.map_err(SchemaError::Look)?.detach();
    let prepared = prepare_on(&mut connection).await;
    let closed = connection.close().await;
    prepared?;
    closed.map_err(SchemaError::Look)
}

async fn prepare_on(connection: &mut PgConnection) -> Result<(), SchemaError> {
    // Two replicas may start on a slow machine: the wait for a turn is not bounded by the pool's lock_timeout.
    for statement in ["SET lock_timeout = 0", "SELECT pg_advisory_lock(7812340911)"] {
        connection.execute(statement).await.map_err(SchemaError::Look)?;
    }
    if !look(connection, "SELECT to_regnamespace('fence') IS NOT NULL").await? {
        fence_pg::sqlx::install(connection)
            .await
            .map_err(SchemaError::Guard)?;
    }
    let ledger = "CREATE TABLE IF NOT EXISTS paydb_migration
        (name text PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT clock_timestamp())";
    connection.execute(ledger).await.map_err(SchemaError::Look)?;
    for (file, sql) in FILES {
        apply(connection, file, sql)
            .await
            .map_err(|source| SchemaError::File { file, source })?;
    }
    Ok(())
}

/// Applies a file once, together with its line in the ledger.
async fn apply(connection: &mut PgConnection, file: &str, sql: &'static str) -> sqlx::Result<()> {
    let mut transaction = connection.begin().await?;
    let noted = sqlx::query("INSERT INTO paydb_migration (name) VALUES ($1) ON CONFLICT DO NOTHING")
        .bind(file)
        .execute(&mut *transaction)
        .await?;
    if noted.rows_affected() == 1 {
        sqlx::raw_sql(sql).execute(&mut *transaction).await?;
    }
    transaction.commit().await
}

async fn look(connection: &mut PgConnection, question: &'static str) -> Result<bool, SchemaError> {
    sqlx::query_scalar(question)
        .fetch_one(connection)
        .await
        .map_err(SchemaError::Look)
}
