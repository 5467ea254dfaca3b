//! A few connections, each used by one request at a time.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio_postgres::{Client, Config, Connection, Socket};

use super::call::{Row, is_definite, rows, sort};
use super::tls::{MakeTls, Stream};
use crate::error::StoreError;

/// How many requests of one store are under way at once; more wait here.
const MOST: usize = 8;

/// Makes connections.
#[derive(Clone)]
pub(super) struct Connector {
    config: Config,
    tls: MakeTls,
    timeout: Duration,
}

pub(super) struct Pool {
    connector: Connector,
    idle: Mutex<Vec<Client>>,
    permits: Semaphore,
}

impl Connector {
    /// A connection of its own, driven in the background until it ends or the client is dropped.
    pub(super) async fn connect(&self) -> Result<Client, StoreError> {
        let (client, connection) = self.open().await?;
        tokio::spawn(connection);
        Ok(client)
    }

    /// A connection that the caller drives.
    pub(super) async fn open(&self) -> Result<(Client, Connection<Socket, Stream>), StoreError> {
        self.within(self.config.connect(self.tls.clone())).await
    }

    /// Waits for an answer, for so long.
    pub(super) async fn within<T>(
        &self,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, StoreError> {
        match tokio::time::timeout(self.timeout, answer).await {
            Ok(answer) => answer.map_err(|error| sort(&self.endpoints(), error)),
            Err(_) => Err(StoreError::TimedOut {
                endpoints: self.endpoints(),
                after: self.timeout,
            }),
        }
    }

    pub(super) fn endpoints(&self) -> String {
        let ports = self.config.get_ports();
        let hosts = self.config.get_hosts().iter().enumerate().map(|(number, host)| {
            let port = ports.get(number).or(ports.first()).unwrap_or(&5432);
            match host {
                tokio_postgres::config::Host::Tcp(name) => format!("{name}:{port}"),
                tokio_postgres::config::Host::Unix(folder) => format!("{}:{port}", folder.display()),
            }
        });
        hosts.collect::<Vec<_>>().join(", ")
    }
}

impl Pool {
    pub(super) fn new(config: Config, tls: MakeTls, timeout: Duration) -> Pool {
        Pool {
            connector: Connector { config, tls, timeout },
            idle: Mutex::new(Vec::new()),
            permits: Semaphore::new(MOST),
        }
    }

    pub(super) fn connector(&self) -> Connector {
        self.connector.clone()
    }

    pub(super) fn endpoints(&self) -> String {
        self.connector.endpoints()
    }

    /// Sends one message and waits for its answer. A connection whose answer did not come is not used again.
    pub(super) async fn ask(&self, sql: &str) -> Result<Vec<Row>, StoreError> {
        let _permit = self
            .permits
            .acquire()
            .await
            .expect("the permits are never closed");
        let client = match self.take() {
            Some(client) => client,
            None => self.connector.connect().await?,
        };
        let answer = self.connector.within(client.simple_query(sql)).await;
        if !client.is_closed() && answer.as_ref().err().is_none_or(is_definite) {
            self.idle().push(client);
        }
        answer.map(rows)
    }

    fn take(&self) -> Option<Client> {
        let mut idle = self.idle();
        idle.retain(|client| !client.is_closed());
        idle.pop()
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Client>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
