//! Seeing that a backend of PostgreSQL waits for another.

use std::net::SocketAddr;
use std::time::Duration;

use super::half::Half;
use super::holder::Holder;
use super::trouble::Trouble;
use crate::history::{Op, Waiting};
use crate::path::{Connection, Path};

/// Whose wait is awaited, and for whom.
pub(super) struct Wait<'a> {
    /// The holder whose operation waits.
    pub(super) holder: &'a Holder,
    /// What waits.
    pub(super) op: String,
    /// The path and the connections on it over which it waits.
    pub(super) waiter: (&'a Path, &'a (dyn Fn(&Connection) -> bool + Sync)),
    /// The like of whom it waits for.
    pub(super) blocker: (&'a Path, &'a (dyn Fn(&Connection) -> bool + Sync)),
    /// Whom it waits for, such as `H1` or `R`.
    pub(super) on: &'a str,
}

impl Half<'_> {
    /// Waits until PostgreSQL itself says that the one waits for the other, and records it.
    pub(super) async fn waits(&self, wait: &Wait<'_>) -> Result<(), Trouble> {
        let awaited = format!("{} waited for {}'s transaction", wait.op, wait.on);
        let asked = async {
            loop {
                match self.blocked(wait).await? {
                    None => tokio::time::sleep(Duration::from_millis(5)).await,
                    Some(pids) => return Ok::<_, Trouble>(pids),
                }
            }
        };
        let (backend, blocked_by) = wait.holder.awaits(&awaited, asked).await??;
        self.recorder.record(
            self.recorder.now(),
            Waiting {
                op: Op::new(wait.op.clone()),
                on: wait.on.to_owned(),
                backend,
                blocked_by,
            },
        );
        Ok(())
    }

    /// The two backends, if one waits for the other. PostgreSQL tells nobody when that begins, so it is asked.
    async fn blocked(&self, wait: &Wait<'_>) -> Result<Option<(u32, u32)>, Trouble> {
        let query = "SELECT w.pid, b.pid FROM pg_stat_activity w JOIN pg_stat_activity b \
                     ON b.pid = ANY (pg_blocking_pids(w.pid)) \
                     WHERE w.datname = current_database() AND w.client_port = ANY ($1) AND b.client_port = ANY ($2)";
        let rows = self
            .sql
            .query(query, &[&ports(wait.waiter), &ports(wait.blocker)])
            .await
            .map_err(Trouble::lost("PostgreSQL could not be asked who waits for whom"))?;
        Ok(rows.first().map(|row| (pid(row.get(0)), pid(row.get(1)))))
    }

    /// The backend that serves this connection of a path, if there is one.
    pub(super) async fn backend(&self, path: &Path, connection: &Connection) -> Result<Option<u32>, Trouble> {
        let number = connection.number;
        let query =
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND client_port = ANY ($1)";
        let rows = self
            .sql
            .query(query, &[&ports((path, &|one| one.number == number))])
            .await
            .map_err(Trouble::lost("PostgreSQL could not be asked for a backend"))?;
        Ok(rows.first().map(|row| pid(row.get(0))))
    }
}

fn pid(pid: i32) -> u32 {
    u32::try_from(pid).expect("a process id is positive")
}

/// The ports under which connections of a path reach PostgreSQL.
fn ports((path, which): (&Path, &(dyn Fn(&Connection) -> bool + Sync))) -> Vec<i32> {
    path.read(|log| {
        let connections = log.connections().iter().filter(|one| which(one));
        let locals = connections.filter_map(|one| one.upstream_local);
        locals.map(|local: SocketAddr| i32::from(local.port())).collect()
    })
}
