//! Reading the slot.

use std::time::Duration;

use tokio_postgres::{Client, Config, NoTls};
use uuid::Uuid;

use super::decode::{Change, DecodeError, Line, decode};

/// The changes that were committed to one database since this was started.
///
/// The slot is temporary and belongs to a connection that this keeps, so it goes away with it, also when the kit dies. It
/// takes one replication slot and one connection of the server.
#[derive(Debug)]
pub struct CommitOrder {
    client: Client,
    slot: String,
    changes: u64,
    commits: u64,
}

/// Why the order of commits cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CommitOrderError {
    /// The database could not be reached. Check the address, the name and the role.
    #[error("no connection for logical decoding to database {database:?}")]
    Connect {
        /// The database.
        database: String,
        /// The driver's reason.
        source: tokio_postgres::Error,
    },
    /// The slot could not be made. The server needs `wal_level=logical`, a free replication slot and the plugin
    /// `test_decoding` (in Debian part of the server's own package), and the role must be a superuser or have REPLICATION.
    #[error(
        "no logical decoding slot: the server needs wal_level=logical (it is {wal_level}), a free slot of \
         max_replication_slots and the plugin test_decoding, and the role needs REPLICATION"
    )]
    Slot {
        /// The server's setting.
        wal_level: String,
        /// The driver's reason.
        source: tokio_postgres::Error,
    },
    /// The slot could not be read. The order is incomplete: the run proves nothing.
    #[error("the logical decoding slot could not be read")]
    Read(#[source] tokio_postgres::Error),
    /// The plugin printed what is not understood. The order is incomplete: the run proves nothing.
    #[error("the logical decoding slot holds an unknown line")]
    Decode(#[from] DecodeError),
}

/// How long the server may take to make the slot: it waits for every transaction that is writing at that time.
const SLOT_WITHIN: Duration = Duration::from_secs(30);

impl CommitOrder {
    /// Starts reading what is committed to `database` from now on, over a connection as `server` describes it, whose role
    /// is a superuser or has REPLICATION. Transactions that are writing at this time delay it. Needs a tokio runtime.
    ///
    /// # Errors
    ///
    /// [`CommitOrderError::Connect`] and [`CommitOrderError::Slot`].
    pub async fn start(server: &Config, database: &str) -> Result<Self, CommitOrderError> {
        let refused = |source| CommitOrderError::Connect {
            database: database.to_owned(),
            source,
        };
        let mut config = server.clone();
        config.dbname(database).application_name("pause-kit commit order");
        let (client, connection) = config.connect(NoTls).await.map_err(refused)?;
        // It ends when the client is dropped; what it failed with, the client's own calls say too.
        tokio::spawn(connection);
        let set = format!(
            "SET synchronous_commit = local; SET statement_timeout = {}",
            SLOT_WITHIN.as_millis()
        );
        client.batch_execute(&set).await.map_err(refused)?;
        let wal_level: String = client
            .query_one("SELECT current_setting('wal_level')", &[])
            .await
            .map_err(refused)?
            .get(0);
        let slot = format!("pause_kit_{}", Uuid::new_v4().simple());
        client
            .execute(
                "SELECT pg_create_logical_replication_slot($1, 'test_decoding', true)",
                &[&slot],
            )
            .await
            .map_err(|source| CommitOrderError::Slot { wal_level, source })?;
        client
            .batch_execute("SET statement_timeout = 0")
            .await
            .map_err(refused)?;
        Ok(Self {
            client,
            slot,
            changes: 0,
            commits: 0,
        })
    }

    /// The changes that were committed since the last call, in the order of their commits. Every commit that was acknowledged
    /// before this call is among them or came earlier. A transaction that changed no row does not count.
    ///
    /// # Errors
    ///
    /// [`CommitOrderError::Read`] and [`CommitOrderError::Decode`]; after either, the order is incomplete for good.
    pub async fn read(&mut self) -> Result<Vec<Change>, CommitOrderError> {
        // The slot is read up to what has reached the disk. This commit does, and all before it in the log with it.
        let barrier = "SELECT pg_logical_emit_message(true, 'pause-kit', '')";
        self.client
            .execute(barrier, &[])
            .await
            .map_err(CommitOrderError::Read)?;
        let read = "SELECT lsn::text, data FROM pg_logical_slot_get_changes($1, NULL, NULL, 'include-xids', 'on', \
                    'skip-empty-xacts', 'on')";
        let rows = self
            .client
            .query(read, &[&self.slot])
            .await
            .map_err(CommitOrderError::Read)?;
        let mut read = Vec::new();
        let mut transaction = Vec::new();
        let mut current_xid = 0;
        for row in rows {
            match decode(row.get("data"))? {
                Line::Begin { xid } => current_xid = xid,
                Line::Message => {}
                Line::Change(change) => transaction.push(change),
                Line::Commit if transaction.is_empty() => {}
                Line::Commit => {
                    self.commits += 1;
                    let commit_lsn: String = row.get("lsn");
                    for change in transaction.drain(..) {
                        for relation in change.relations {
                            self.changes += 1;
                            read.push(Change {
                                order: self.changes,
                                commit: self.commits,
                                commit_lsn: commit_lsn.clone(),
                                xid: current_xid,
                                relation,
                                operation: change.operation,
                                columns: change.columns.clone(),
                                old_key: change.old_key.clone(),
                            });
                        }
                    }
                }
            }
        }
        Ok(read)
    }
}
