//! A good store in a shell that makes one mistake, and the bench of it.

use std::sync::Arc;

use fence_core::{ClassName, GrantId, Key, Ttl};
use fence_lock::conformance::{Bench, BenchError, MemoryBench, Place, Wire};
use fence_lock::{
    AcquireError, Attempt, Lease, LockStore, Minted, OpenError, Release, Renewals, SessionId,
    SessionRegistry, StoreError,
};
use futures_util::future::BoxFuture;

use super::mistakes::{Mistake, Shared};

/// The store in memory, with a mistake or, to test the shell, without one.
pub(super) struct WrongBench(pub(super) Option<Mistake>);

struct WrongPlace {
    place: Box<dyn Place>,
    shared: Arc<Shared>,
}

struct WrongWire {
    wire: Box<dyn Wire>,
    shared: Arc<Shared>,
}

pub(super) struct WrongStore {
    pub(super) good: Arc<dyn LockStore>,
    pub(super) shared: Arc<Shared>,
}

impl Bench for WrongBench {
    fn place(&self) -> BoxFuture<'_, Result<Box<dyn Place>, BenchError>> {
        Box::pin(async {
            let place = MemoryBench::new().place().await?;
            let shared = Arc::new(Shared::new(self.0));
            let place: Box<dyn Place> = Box::new(WrongPlace { place, shared });
            Ok(place)
        })
    }
}

fn wrong(good: Arc<dyn LockStore>, shared: &Arc<Shared>) -> Arc<dyn LockStore> {
    let shared = Arc::clone(shared);
    Arc::new(WrongStore { good, shared })
}

impl Place for WrongPlace {
    fn client(&self) -> BoxFuture<'_, Result<Arc<dyn LockStore>, BenchError>> {
        Box::pin(async { Ok(wrong(self.place.client().await?, &self.shared)) })
    }

    fn wire(&self) -> BoxFuture<'_, Result<Box<dyn Wire>, BenchError>> {
        Box::pin(async {
            let (wire, shared) = (self.place.wire().await?, Arc::clone(&self.shared));
            let wire: Box<dyn Wire> = Box::new(WrongWire { wire, shared });
            Ok(wire)
        })
    }

    fn holder<'a>(
        &'a self,
        class: &'a ClassName,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Option<GrantId>, BenchError>> {
        self.place.holder(class, key)
    }

    fn waiters<'a>(&'a self, class: &'a ClassName, key: &'a Key) -> BoxFuture<'a, Result<usize, BenchError>> {
        self.place.waiters(class, key)
    }
}

impl Wire for WrongWire {
    fn client(&self) -> Arc<dyn LockStore> {
        wrong(self.wire.client(), &self.shared)
    }

    fn hold_requests(&self) {
        self.wire.hold_requests();
    }

    fn holds_a_request(&self) -> BoxFuture<'_, Result<(), BenchError>> {
        self.wire.holds_a_request()
    }

    fn hold_answers(&self) {
        self.wire.hold_answers();
    }

    fn holds_an_answer(&self) -> BoxFuture<'_, Result<(), BenchError>> {
        self.wire.holds_an_answer()
    }

    fn cut(&self) {
        self.wire.cut();
    }

    fn let_go(&self) -> BoxFuture<'_, Result<(), BenchError>> {
        self.wire.let_go()
    }
}

impl SessionRegistry for WrongStore {
    fn open(&self, ttl: Ttl) -> BoxFuture<'_, Result<Lease, OpenError>> {
        Box::pin(async move {
            let lease = self.good.open(ttl).await?;
            self.opened(&lease);
            Ok(lease)
        })
    }

    fn renewals(&self, session: &SessionId) -> Box<dyn Renewals> {
        self.good.renewals(session)
    }

    fn close<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.close_wrongly(session))
    }
}

impl LockStore for WrongStore {
    fn most_keys(&self) -> usize {
        self.good.most_keys()
    }

    fn acquire<'a>(&'a self, attempt: &'a Attempt) -> BoxFuture<'a, Result<Minted, AcquireError>> {
        Box::pin(self.acquire_wrongly(attempt))
    }

    fn give_up<'a>(&'a self, attempt: &'a Attempt) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.give_up_wrongly(attempt))
    }

    fn release<'a>(
        &'a self,
        attempt: &'a Attempt,
        minted: Minted,
    ) -> BoxFuture<'a, Result<Release, StoreError>> {
        Box::pin(self.release_wrongly(attempt, minted))
    }
}
