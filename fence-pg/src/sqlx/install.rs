//! Applying what the ledger lacks.

use ::sqlx::{Executor as _, PgConnection};

use crate::ledger::{self, InstallError};

/// Applies the files of [`MIGRATIONS`](crate::MIGRATIONS) that the database's ledger lacks, in order, and returns their
/// names. Installers take turns by an advisory lock of the session, so use a direct connection, not a transaction pooler.
///
/// The role must own the database or be allowed to create in it; superuser rights are not needed.
///
/// # Errors
///
/// [`InstallError`] when a file fails or the connection is lost. What was applied before it stays.
pub async fn install(connection: &mut PgConnection) -> Result<Vec<&'static str>, InstallError> {
    connection
        .execute(ledger::LOCK)
        .await
        .map_err(InstallError::ledger)?;
    let applied = apply_missing(connection).await;
    let unlocked = connection.execute(ledger::UNLOCK).await;
    let applied = applied?;
    unlocked.map_err(InstallError::ledger)?;
    Ok(applied)
}

async fn apply_missing(connection: &mut PgConnection) -> Result<Vec<&'static str>, InstallError> {
    let exists: bool = ::sqlx::query_scalar(ledger::EXISTS)
        .fetch_one(&mut *connection)
        .await
        .map_err(InstallError::ledger)?;
    let applied_before: Vec<String> = if exists {
        ::sqlx::query_scalar(ledger::NAMES)
            .fetch_all(&mut *connection)
            .await
            .map_err(InstallError::ledger)?
    } else {
        Vec::new()
    };
    let mut applied = Vec::new();
    for migration in ledger::missing(&applied_before) {
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
            .execute(&mut *connection)
            .await
            .map_err(InstallError::ledger)?;
        applied.push(migration.name);
    }
    Ok(applied)
}
