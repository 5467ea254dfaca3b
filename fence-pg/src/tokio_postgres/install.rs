//! Applying what the ledger lacks.

use ::tokio_postgres::Client;

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
pub async fn install(client: &Client) -> Result<Vec<&'static str>, InstallError> {
    client
        .batch_execute(ledger::LOCK)
        .await
        .map_err(InstallError::ledger)?;
    let applied = apply(client).await;
    let unlocked = client.batch_execute(ledger::UNLOCK).await;
    let applied = applied?;
    unlocked.map_err(InstallError::ledger)?;
    Ok(applied)
}

/// What [`install`] would apply now, in order.
///
/// # Errors
///
/// [`InstallError`] when the ledger cannot be read, or the database's guard is newer.
pub async fn pending(client: &Client) -> Result<&'static [Migration], InstallError> {
    let exists = client
        .query_one(ledger::EXISTS, &[])
        .await
        .map_err(InstallError::ledger)?;
    if !exists.get::<_, bool>(0) {
        return ledger::pending(&[]);
    }
    let rows = client
        .query(ledger::ROWS, &[])
        .await
        .map_err(InstallError::ledger)?;
    let rows: Vec<(String, Option<String>)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    ledger::pending(&rows)
}

async fn apply(client: &Client) -> Result<Vec<&'static str>, InstallError> {
    let mut applied = Vec::new();
    for migration in pending(client).await? {
        if let Err(error) = client.batch_execute(migration.sql).await {
            // The file's own transaction is still open, and failed.
            let rolled_back = client.batch_execute("ROLLBACK").await;
            drop(rolled_back);
            return Err(InstallError::Migration {
                name: migration.name,
                source: Box::new(error),
            });
        }
        client
            .execute(ledger::RECORD, &[&migration.name, &migration.sha256()])
            .await
            .map_err(InstallError::ledger)?;
        applied.push(migration.name);
    }
    Ok(applied)
}
