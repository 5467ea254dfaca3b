//! A lock store in memory. For tests only: its history is lost with the process.

mod state;
mod wire;

use std::sync::Arc;

use fence_core::{BootInstant, ClassName, GrantId, Key, Ttl};
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use super::bench::{Bench, BenchError, Place, Wire};
use crate::clock::{BootClock, Clock};
use crate::error::{AcquireError, OpenError, RenewError, StoreError};
use crate::store::{Attempt, Lease, LockStore, Minted, Release, Renewals, SessionId, SessionRegistry};
use state::{Asked, Looked, State};
use wire::MemoryWire;

/// A lock store in memory, for tests. Its clock is injected, so that leases end when a test says so.
///
/// A clone is the same client; [`MemoryStore::client`] makes another one of the same store.
#[derive(Clone)]
pub struct MemoryStore {
    core: Arc<Core>,
    wire: Arc<MemoryWire>,
}

/// What all clients of one store reach.
pub(super) struct Core {
    state: std::sync::Mutex<State>,
    /// How many holds, places and leases have ended: a waiter looks again when it moves.
    ends: watch::Sender<u64>,
    clock: Arc<dyn Clock>,
}

impl MemoryStore {
    /// The most keys that one attempt may ask for.
    pub const MOST_KEYS: usize = 64;

    /// A new store, in epoch 1, whose leases are counted on `clock`. It must be used on a tokio runtime.
    pub fn new(clock: impl Clock) -> MemoryStore {
        MemoryStore {
            core: Arc::new(Core {
                state: std::sync::Mutex::new(State::default()),
                ends: watch::Sender::new(0),
                clock: Arc::new(clock),
            }),
            wire: Arc::new(MemoryWire::new()),
        }
    }

    /// Another client of the same store, with connections of its own.
    #[must_use]
    pub fn client(&self) -> MemoryStore {
        MemoryStore {
            core: Arc::clone(&self.core),
            wire: Arc::new(MemoryWire::new()),
        }
    }

    /// Sends one request and waits for its answer. What was sent lands also when nobody waits any more.
    async fn ask<T: Send + 'static>(
        &self,
        request: impl FnOnce(&mut State, BootInstant) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let core = Arc::clone(&self.core);
        self.wire.carry(move || core.change(request)).await
    }

    async fn acquire_in_turn(&self, attempt: &Attempt) -> Result<Minted, AcquireError> {
        let (asked_for, most) = (attempt.keys().count(), self.most_keys());
        if asked_for > most {
            return Err(AcquireError::TooManyKeys {
                asked: asked_for,
                most,
            });
        }
        let mut ends = self.core.ends.subscribe();
        loop {
            ends.mark_unchanged();
            let asked = Asked::of(attempt);
            attempt.sending();
            let looked = self
                .ask(move |state, now| state.grant_or_queue(&asked, now))
                .await;
            if looked.is_ok() {
                attempt.answered();
            }
            match looked? {
                Looked::Granted(minted) => return self.confirm(attempt, minted).await,
                Looked::Queued { until } => {
                    tokio::select! {
                        _ = ends.changed() => {}
                        () = self.core.clock.sleep_until(until) => {}
                    }
                }
                Looked::SessionOver => return Err(AcquireError::SessionOver),
                Looked::GivenUp => return Err(AcquireError::GivenUp),
            }
        }
    }

    /// A grant can be gone before its answer is here.
    async fn confirm(&self, attempt: &Attempt, minted: Minted) -> Result<Minted, AcquireError> {
        let asked = Asked::of(attempt);
        let held = self.ask(move |state, _| state.holds(&asked, minted)).await?;
        if held {
            Ok(minted)
        } else {
            Err(AcquireError::NotConfirmed)
        }
    }
}

impl Core {
    /// One step of the store.
    fn change<T>(&self, request: impl FnOnce(&mut State, BootInstant) -> T) -> T {
        let now = self.clock.now();
        let (answer, ends) = {
            let mut state = self
                .state
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            state.end_lapsed(now);
            (request(&mut state, now), state.ends())
        };
        self.ends
            .send_if_modified(|known| std::mem::replace(known, ends) != ends);
        answer
    }
}

impl SessionRegistry for MemoryStore {
    fn open(&self, ttl: Ttl) -> BoxFuture<'_, Result<Lease, OpenError>> {
        Box::pin(async move {
            let name = uuid::Uuid::new_v4().simple().to_string();
            let session = SessionId::new(name).expect("32 digits name a session");
            let opened = session.clone();
            self.ask(move |state, now| state.open(opened, ttl, now))
                .await
                .map_err(OpenError::Store)?;
            Ok(Lease { session, ttl })
        })
    }

    fn renewals(&self, session: &SessionId) -> Box<dyn Renewals> {
        Box::new(MemoryRenewals {
            store: self.clone(),
            session: session.clone(),
        })
    }

    fn close<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<(), StoreError>> {
        let session = session.clone();
        Box::pin(self.ask(move |state, _| state.close(&session)))
    }
}

impl LockStore for MemoryStore {
    fn most_keys(&self) -> usize {
        MemoryStore::MOST_KEYS
    }

    fn acquire<'a>(&'a self, attempt: &'a Attempt) -> BoxFuture<'a, Result<Minted, AcquireError>> {
        Box::pin(self.acquire_in_turn(attempt))
    }

    fn give_up<'a>(&'a self, attempt: &'a Attempt) -> BoxFuture<'a, Result<(), StoreError>> {
        let (asked, may_land) = (Asked::of(attempt), attempt.may_land());
        Box::pin(self.ask(move |state, _| state.give_up(&asked, may_land)))
    }

    fn release<'a>(
        &'a self,
        attempt: &'a Attempt,
        minted: Minted,
    ) -> BoxFuture<'a, Result<Release, StoreError>> {
        let asked = Asked::of(attempt);
        Box::pin(self.ask(move |state, _| state.release(&asked, minted)))
    }
}

struct MemoryRenewals {
    store: MemoryStore,
    session: SessionId,
}

impl Renewals for MemoryRenewals {
    fn renew(&mut self) -> BoxFuture<'_, Result<Ttl, RenewError>> {
        let session = self.session.clone();
        Box::pin(async move {
            self.store
                .ask(move |state, now| state.renew(&session, now))
                .await
                .map_err(RenewError::Failed)?
                .ok_or(RenewError::Gone)
        })
    }
}

/// The bench of [`MemoryStore`], on the real clock. A bench of one's own does the same for a real store.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryBench;

impl MemoryBench {
    /// The bench.
    pub fn new() -> MemoryBench {
        MemoryBench
    }
}

impl Bench for MemoryBench {
    fn place(&self) -> BoxFuture<'_, Result<Box<dyn Place>, BenchError>> {
        let place: Box<dyn Place> = Box::new(MemoryStore::new(BootClock));
        Box::pin(std::future::ready(Ok(place)))
    }
}

impl Place for MemoryStore {
    fn client(&self) -> BoxFuture<'_, Result<Arc<dyn LockStore>, BenchError>> {
        let client: Arc<dyn LockStore> = Arc::new(MemoryStore::client(self));
        Box::pin(std::future::ready(Ok(client)))
    }

    fn wire(&self) -> BoxFuture<'_, Result<Box<dyn Wire>, BenchError>> {
        let wire: Box<dyn Wire> = Box::new(MemoryStore::client(self));
        Box::pin(std::future::ready(Ok(wire)))
    }

    fn holder<'a>(
        &'a self,
        class: &'a ClassName,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Option<GrantId>, BenchError>> {
        let holder = self.core.change(|state, _| state.holder(class, key));
        Box::pin(std::future::ready(Ok(holder)))
    }

    fn waiters<'a>(&'a self, class: &'a ClassName, key: &'a Key) -> BoxFuture<'a, Result<usize, BenchError>> {
        let waiters = self.core.change(|state, _| state.waiters(class, key));
        Box::pin(std::future::ready(Ok(waiters)))
    }
}

impl Wire for MemoryStore {
    fn client(&self) -> Arc<dyn LockStore> {
        Arc::new(self.clone())
    }

    fn hold_requests(&self) {
        self.wire.hold_requests();
    }

    fn holds_a_request(&self) -> BoxFuture<'_, Result<(), BenchError>> {
        Box::pin(self.wire.holds_a_request())
    }

    fn hold_answers(&self) {
        self.wire.hold_answers();
    }

    fn holds_an_answer(&self) -> BoxFuture<'_, Result<(), BenchError>> {
        Box::pin(self.wire.holds_an_answer())
    }

    fn cut(&self) {
        self.wire.cut();
    }

    fn let_go(&self) -> BoxFuture<'_, Result<(), BenchError>> {
        Box::pin(self.wire.let_go())
    }
}

impl std::fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}
