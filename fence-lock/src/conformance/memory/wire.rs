//! The way between a client and the store in memory, with the faults of a real one.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{oneshot, watch};

use crate::conformance::bench::BenchError;
use crate::error::StoreError;

/// How long something that a case waits for may take to arrive.
const PATIENCE: Duration = Duration::from_secs(20);

/// One client's way to the store: a connection at a time.
pub(super) struct MemoryWire {
    connection: Mutex<Arc<Connection>>,
    /// Every connection there was.
    all: Mutex<Vec<Arc<Connection>>>,
}

struct Connection {
    requests_pass: watch::Sender<bool>,
    answers_pass: watch::Sender<bool>,
    cut: watch::Sender<bool>,
    requests_held: watch::Sender<usize>,
    answers_held: watch::Sender<usize>,
}

impl Connection {
    fn new() -> Arc<Connection> {
        Arc::new(Connection {
            requests_pass: watch::Sender::new(true),
            answers_pass: watch::Sender::new(true),
            cut: watch::Sender::new(false),
            requests_held: watch::Sender::new(0),
            answers_held: watch::Sender::new(0),
        })
    }
}

impl MemoryWire {
    pub(super) fn new() -> MemoryWire {
        let first = Connection::new();
        MemoryWire {
            connection: Mutex::new(Arc::clone(&first)),
            all: Mutex::new(vec![first]),
        }
    }

    /// Carries a request to the store and its answer back. Once on its way it arrives, whoever still waits for it.
    pub(super) async fn carry<T: Send + 'static>(
        &self,
        request: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let connection = self.now();
        let mut cut = connection.cut.subscribe();
        let (answer, answered) = oneshot::channel();
        tokio::spawn(async move {
            let held = pass(&connection.requests_pass, &connection.requests_held).await;
            let outcome = request();
            drop(held);
            let held = pass(&connection.answers_pass, &connection.answers_held).await;
            let _ = answer.send(outcome);
            drop(held);
        });
        tokio::select! {
            biased;
            _ = cut.wait_for(|cut| *cut) => Err(lost()),
            outcome = answered => outcome.map_err(|_| lost()),
        }
    }

    pub(super) fn hold_requests(&self) {
        self.now().requests_pass.send_replace(false);
    }

    pub(super) async fn holds_a_request(&self) -> Result<(), BenchError> {
        reaches(&self.now().requests_held, |held| held > 0).await
    }

    pub(super) fn hold_answers(&self) {
        self.now().answers_pass.send_replace(false);
    }

    pub(super) async fn holds_an_answer(&self) -> Result<(), BenchError> {
        reaches(&self.now().answers_held, |held| held > 0).await
    }

    /// What is asked from now on goes over a new connection.
    pub(super) fn cut(&self) {
        let next = Connection::new();
        self.all
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Arc::clone(&next));
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        connection.cut.send_replace(true);
        *connection = next;
    }

    pub(super) async fn let_go(&self) -> Result<(), BenchError> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for connection in &all {
            connection.requests_pass.send_replace(true);
            connection.answers_pass.send_replace(true);
        }
        for connection in &all {
            reaches(&connection.requests_held, |held| held == 0).await?;
            reaches(&connection.answers_held, |held| held == 0).await?;
        }
        Ok(())
    }

    fn now(&self) -> Arc<Connection> {
        Arc::clone(&self.connection.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Counts as held until it is dropped.
struct Held<'a>(&'a watch::Sender<usize>);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|held| *held -= 1);
    }
}

/// Lies held until it may pass.
async fn pass<'a>(may: &watch::Sender<bool>, held: &'a watch::Sender<usize>) -> Option<Held<'a>> {
    let mut may = may.subscribe();
    if *may.borrow() {
        return None;
    }
    held.send_modify(|held| *held += 1);
    let held = Held(held);
    // An error means that the connection is gone, and with it whoever held.
    let _ = may.wait_for(|may| *may).await;
    Some(held)
}

async fn reaches(count: &watch::Sender<usize>, enough: fn(usize) -> bool) -> Result<(), BenchError> {
    let mut count = count.subscribe();
    let reached = tokio::time::timeout(PATIENCE, count.wait_for(|count| enough(*count))).await;
    match reached {
        Ok(Ok(_)) => Ok(()),
        _ => Err("nothing came to lie on the wire".into()),
    }
}

fn lost() -> StoreError {
    StoreError::Unreachable {
        endpoints: "memory".to_owned(),
        source: "the connection was lost".into(),
    }
}
