//! Wake-ups by NOTIFY, on one connection for all waiters of a store.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fence_core::GrantId;
use tokio::sync::Notify;
use tokio_postgres::{AsyncMessage, Client, Connection, Socket};

use super::pool::Connector;
use super::tls::Stream;
use crate::error::StoreError;

pub(super) struct Listener {
    connector: Connector,
    channel: String,
    waiters: Arc<Waiters>,
    /// The connection that listens, while it does.
    listening: tokio::sync::Mutex<Option<Client>>,
}

/// Who wants to be woken, by grant id.
#[derive(Default)]
struct Waiters(Mutex<HashMap<String, Arc<Notify>>>);

/// One waiter, until it is dropped.
pub(super) struct Woken<'a> {
    listener: &'a Listener,
    grant_id: String,
    notify: Arc<Notify>,
}

impl Listener {
    pub(super) fn new(connector: Connector) -> Listener {
        Listener {
            connector,
            channel: format!("fence_lock_{}", uuid::Uuid::new_v4().simple()),
            waiters: Arc::default(),
            listening: tokio::sync::Mutex::new(None),
        }
    }

    /// The channel that wakes this store's waiters.
    pub(super) fn channel(&self) -> &str {
        &self.channel
    }

    /// A waiter that is woken from now on, once somebody listens.
    pub(super) fn expect(&self, grant_id: &GrantId) -> Woken<'_> {
        let notify = Arc::new(Notify::new());
        let grant_id = grant_id.as_str().to_owned();
        self.waiters.all().insert(grant_id.clone(), Arc::clone(&notify));
        Woken {
            listener: self,
            grant_id,
            notify,
        }
    }

    /// Listens, unless somebody does already. Whether it began just now.
    async fn listen(&self) -> Result<bool, StoreError> {
        let mut listening = self.listening.lock().await;
        if listening.as_ref().is_some_and(|client| !client.is_closed()) {
            return Ok(false);
        }
        let (client, connection) = self.connector.open().await?;
        tokio::spawn(pass_on(connection, Arc::clone(&self.waiters)));
        // The channel's name is lower case letters, digits and underscores.
        let listen = format!("LISTEN {}", self.channel);
        self.connector.within(client.simple_query(&listen)).await?;
        *listening = Some(client);
        Ok(true)
    }
}

impl Waiters {
    fn all(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Notify>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self, grant_id: &str) {
        if let Some(notify) = self.all().get(grant_id) {
            notify.notify_one();
        }
    }

    fn wake_all(&self) {
        for notify in self.all().values() {
            notify.notify_one();
        }
    }
}

impl Woken<'_> {
    /// Makes sure that somebody listens. Whether what was freed until now may have gone unheard.
    pub(super) async fn listen(&mut self) -> bool {
        self.listener.listen().await.unwrap_or(false)
    }

    /// Waits until this waiter is woken, for so long at most.
    pub(super) async fn wait(&mut self, at_most: Duration) {
        let _ = tokio::time::timeout(at_most, self.notify.notified()).await;
    }
}

impl Drop for Woken<'_> {
    fn drop(&mut self) {
        self.listener.waiters.all().remove(&self.grant_id);
    }
}

/// Passes notifications on until the connection ends; then everybody looks for themselves.
async fn pass_on(mut connection: Connection<Socket, Stream>, waiters: Arc<Waiters>) {
    while let Some(Ok(message)) = std::future::poll_fn(|cx| connection.poll_message(cx)).await {
        if let AsyncMessage::Notification(notification) = message {
            waiters.wake(notification.payload());
        }
    }
    waiters.wake_all();
}
