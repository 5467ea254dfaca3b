//! Witnesses of the lock store: databases with the guard.

use std::error::Error;

use clap::Args;
use fence_core::{Epoch, TierName};
use fence_lock::{Claim, EpochRecord, StoreMemory, Witness, WitnessError};
use futures_util::future::BoxFuture;
use sqlx::Row as _;
use sqlx::postgres::PgConnection;
use tokio::sync::Mutex;

use crate::exit::Failure;
use crate::pg;

/// The witnesses that a command asks.
#[derive(Debug, Args)]
pub(super) struct WitnessArguments {
    /// A database with the guard that remembers the store, as postgresql://USER@HOST/NAME; repeat it for more, and name all
    #[arg(long, value_name = "URL")]
    witness: Vec<String>,
}

impl WitnessArguments {
    pub(super) fn is_empty(&self) -> bool {
        self.witness.is_empty()
    }

    /// Connects to each.
    pub(super) async fn open(&self) -> Result<Vec<Database>, Failure> {
        let mut witnesses = Vec::new();
        for url in &self.witness {
            let (connection, place) = pg::connect(url, "fence epoch").await?;
            witnesses.push(Database {
                url: url.clone(),
                place,
                connection: Mutex::new(Some(connection)),
            });
        }
        Ok(witnesses)
    }
}

/// A database that is a witness. A connection that fails is made again for the next question.
pub(super) struct Database {
    url: String,
    place: String,
    connection: Mutex<Option<PgConnection>>,
}

/// An answer of the database in which something is not as `fence epoch` wrote it.
#[derive(Debug, thiserror::Error)]
#[error("it remembers {what} that cannot be read")]
struct Unreadable {
    what: &'static str,
    #[source]
    source: Box<dyn Error + Send + Sync>,
}

/// The refusal of a database, with what its server said about it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Words(String);

pub(super) fn all(witnesses: &[Database]) -> Vec<&dyn Witness> {
    witnesses.iter().map(|witness| witness as &dyn Witness).collect()
}

/// What is left to do with the record: every resource takes its tokens once it has registered the epoch.
pub(super) fn register_with_the_rest(record: &EpochRecord, registered: usize) -> String {
    let call = format!("SELECT fence.register_epoch('{}', {})", record.tier, record.epoch);
    match registered {
        0 => format!("register it with every resource: {call}"),
        1 => format!("the witness has registered it; every other resource: {call}"),
        many => format!("{many} witnesses have registered it; every other resource: {call}"),
    }
}

impl Database {
    /// Asks one question, on the connection there is or a new one.
    async fn ask(
        &self,
        sql: &'static str,
        texts: &[Option<String>],
    ) -> Result<Vec<sqlx::postgres::PgRow>, WitnessError> {
        let mut connection = self.connection.lock().await;
        let mut taken = match connection.take() {
            Some(taken) => taken,
            None => {
                let (made, _) = pg::connect(&self.url, "fence epoch")
                    .await
                    .map_err(|failure| self.error(Words(failure.words())))?;
                made
            }
        };
        let mut query = sqlx::query(sql);
        for text in texts {
            query = query.bind(text.clone());
        }
        match query.fetch_all(&mut taken).await {
            Ok(rows) => {
                *connection = Some(taken);
                Ok(rows)
            }
            Err(error) => {
                if error.as_database_error().is_some() {
                    *connection = Some(taken);
                }
                Err(self.error(Words(pg::ServerError::failure(error).words())))
            }
        }
    }

    async fn truth(&self, sql: &'static str, texts: &[Option<String>]) -> Result<bool, WitnessError> {
        let rows = self.ask(sql, texts).await?;
        let row = rows
            .first()
            .ok_or_else(|| self.error(Words("it gave no answer".to_owned())))?;
        row.try_get(0).map_err(|error| self.error(error))
    }

    fn error(&self, source: impl Into<Box<dyn Error + Send + Sync>>) -> WitnessError {
        WitnessError {
            witness: self.place.clone(),
            source: source.into(),
        }
    }

    fn unreadable(
        &self,
        what: &'static str,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> WitnessError {
        let source = source.into();
        self.error(Unreadable { what, source })
    }
}

impl Witness for Database {
    fn name(&self) -> String {
        self.place.clone()
    }

    fn known(&self) -> BoxFuture<'_, Result<Vec<(TierName, Epoch)>, WitnessError>> {
        Box::pin(async {
            self.ask("SELECT fence.require_witness()", &[]).await?;
            let rows = self
                .ask("SELECT tier, epoch FROM fence.known_epochs()", &[])
                .await?;
            let mut known = Vec::new();
            for row in rows {
                let tier: String = row.try_get(0).map_err(|error| self.error(error))?;
                let epoch: i32 = row.try_get(1).map_err(|error| self.error(error))?;
                let tier = TierName::new(tier).map_err(|error| self.unreadable("a tier", error))?;
                let epoch = Epoch::new(u16::try_from(epoch).unwrap_or(0))
                    .map_err(|error| self.unreadable("an epoch", error))?;
                known.push((tier, epoch));
            }
            Ok(known)
        })
    }

    fn register<'a>(
        &'a self,
        tier: &'a TierName,
        epoch: Epoch,
    ) -> BoxFuture<'a, Result<Claim, WitnessError>> {
        Box::pin(async move {
            let texts = [Some(tier.to_string()), Some(epoch.to_string())];
            let claimed = self.truth("SELECT fence.claim_epoch($1, $2::integer)", &texts);
            Ok(if claimed.await? {
                Claim::Registered
            } else {
                Claim::Taken
            })
        })
    }

    fn memory<'a>(&'a self, tier: &'a TierName) -> BoxFuture<'a, Result<Option<StoreMemory>, WitnessError>> {
        Box::pin(async move {
            let tier = [Some(tier.to_string())];
            let rows = self.ask("SELECT fence.recall_store($1)", &tier).await?;
            let text: Option<String> = match rows.first() {
                Some(row) => row.try_get(0).map_err(|error| self.error(error))?,
                None => None,
            };
            text.map(|text| text.parse())
                .transpose()
                .map_err(|error: fence_lock::StoreMemoryError| self.unreadable("a store", error))
        })
    }

    fn remember<'a>(
        &'a self,
        tier: &'a TierName,
        before: Option<&'a StoreMemory>,
        now: &'a StoreMemory,
    ) -> BoxFuture<'a, Result<bool, WitnessError>> {
        Box::pin(async move {
            let texts = [
                Some(tier.to_string()),
                before.map(ToString::to_string),
                Some(now.to_string()),
            ];
            self.truth("SELECT fence.remember_store($1, $2, $3)", &texts)
                .await
        })
    }
}
