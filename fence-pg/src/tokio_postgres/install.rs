//! Applying what the ledger lacks.

use ::tokio_postgres::{Client, Error};

use crate::ledger::{self, InstallError};

/// Applies the files of [`MIGRATIONS`](crate::MIGRATIONS) that the database's ledger lacks, in order, and returns their
/// names. Installers take turns by an advisory lock of the session, so use a direct connection, not a transaction pooler.
///
/// The role must own the database or be allowed to create in it; superuser rights are not needed.
///
/// # Errors
///
/// [`InstallError`] when a file fails or the connection is lost. What was applied before it stays.
pub async fn install(client: &Client) -> Result<Vec<&'static str>, InstallError> {
    client
        .batch_execute(ledger::LOCK)
        .await
        .map_err(InstallError::ledger)?;
    let applied = apply_missing(client).await;
    let unlocked = client.batch_execute(ledger::UNLOCK).await;
    let applied = applied?;
    unlocked.map_err(InstallError::ledger)?;
    Ok(applied)
}

async fn apply_missing(client: &Client) -> Result<Vec<&'static str>, InstallError> {
    let applied_before = names(client).await.map_err(InstallError::ledger)?;
    let mut applied = Vec::new();
    for migration in ledger::missing(&applied_before) {
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
            .execute(ledger::RECORD, &[&migration.name])
            .await
            .map_err(InstallError::ledger)?;
        applied.push(migration.name);
    }
    Ok(applied)
}

async fn names(client: &Client) -> Result<Vec<String>, Error> {
    let exists: bool = client.query_one(ledger::EXISTS, &[]).await?.get(0);
    if !exists {
        return Ok(Vec::new());
    }
    let rows = client.query(ledger::NAMES, &[]).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}
