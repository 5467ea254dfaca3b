//! Applying what the ledger lacks.

use ::sqlx::{Executor as _, PgConnection};

use crate::ledger::{self, InstallError};
use crate::migrate::Migration;

/// Applies the files of [`MIGRATIONS`](crate::MIGRATIONS) that the database's ledger lacks or has otherwise, and all that
/// come after them, in order, and returns their names. Installers take turns by an advisory lock of the session, so use a
/// direct connection, not a transaction pooler.
///
/// The role must own the database or be allowed to create in it; superuser rights are not needed.
///
/// # Errors
///
/// [`InstallError`] when a file fails, the database's guard is newer, or the connection is lost. What was applied before it
/// stays.
pub async fn install(connection: &mut PgConnection) -> Result<Vec<&'static str>, InstallError> {
    connection
        .execute(ledger::LOCK)
        .await
        .map_err(InstallError::ledger)?;
    let applied = apply(connection).await;
    let unlocked = connection.execute(ledger::UNLOCK).await;
    let applied = applied?;
    unlocked.map_err(InstallError::ledger)?;
    Ok(applied)
}

/// What [`install`] would apply now, in order.
///
/// # Errors
///
/// [`InstallError`] when the ledger cannot be read, or the database's guard is newer.
pub async fn pending(connection: &mut PgConnection) -> Result<&'static [Migration], InstallError> {
    let exists: bool = ::sqlx::query_scalar(ledger::EXISTS)
        .fetch_one(&mut *connection)
        .await
        .map_err(InstallError::ledger)?;
    if !exists {
        return ledger::pending(&[]);
    }
    let rows: Vec<(String, Option<String>)> = ::sqlx::query_as(ledger::ROWS)
        .fetch_all(&mut *connection)
        .await
        .map_err(InstallError::ledger)?;
    ledger::pending(&rows)
}

async fn apply(connection: &mut PgConnection) -> Result<Vec<&'static str>, InstallError> {
    let mut applied = Vec::new();
    for migration in pending(connection).await? {
        if let Err(error) = ::sqlx::raw_sql(migration.sql).execute(&mut *connection).await {
            // The file's own transaction is still open, and failed.
            let rolled_back = connection.execute("ROLLBACK").await;
            drop(rolled_back);
            return Err(InstallError::Migration {
                name: migration.name,
                source: Box::new(error),
            });
        }
        ::sqlx::query(ledger::RECORD)
            .bind(migration.name)
            .bind(migration.sha256())
            .execute(&mut *connection)
            .await
            .map_err(InstallError::ledger)?;
        applied.push(migration.name);
    }
    Ok(applied)
}
