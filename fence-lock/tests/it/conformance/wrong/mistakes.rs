//! The mistakes. Each is one that a real lock store has made.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fence_core::{Epoch, GrantId, Revision, Token};
use fence_lock::{AcquireError, Attempt, Keys, Lease, LockStore, Minted, Release, SessionId, StoreError};

use super::shell::WrongStore;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mistake {
    /// The token is what a read shows before the grant, not what the grant makes.
    TokenFromARead,
    /// Each token is smaller than the one before.
    TokensFall,
    /// A release frees whoever holds the key.
    ReleaseByName,
    /// Giving up takes back what is there, and does nothing about what is on its way.
    GivenUpLands,
    /// A waiter that has waited for a TTL frees the lock by name, as lapsed, and takes it.
    BreaksStaleLocks,
    /// A waiter whose lease lapsed goes on under a new one, and tells nobody.
    WaiterOpensANewLease,
    /// A session's end leaves its holds where they are.
    LossKeepsHolds,
    /// A waiter asks again and again, and so stands last each time.
    QueuesAnew,
    /// Several keys are taken one after the other.
    KeyByKey,
    /// The grant is handed out by its answer alone.
    UnconfirmedGrant,
}

/// A grant of the good store.
#[derive(Clone)]
struct Real {
    attempt: Arc<Attempt>,
    minted: Minted,
}

/// What all clients of one wrong store share.
pub(super) struct Shared {
    mistake: Option<Mistake>,
    /// What was really granted, by the grant id of the attempt that was told otherwise.
    real: Mutex<HashMap<GrantId, Vec<Real>>>,
    /// Who holds each set of keys.
    holders: Mutex<HashMap<Keys, Real>>,
    last: Mutex<u64>,
}

impl Shared {
    pub(super) fn new(mistake: Option<Mistake>) -> Shared {
        Shared {
            mistake,
            real: Mutex::default(),
            holders: Mutex::default(),
            last: Mutex::new(0),
        }
    }
}

impl Real {
    fn of(attempt: Arc<Attempt>, minted: Minted) -> Real {
        Real { attempt, minted }
    }
}

fn token(number: u64) -> Minted {
    let revision = Revision::new(number).unwrap();
    Minted {
        token: Token::mint(Epoch::FIRST, revision),
    }
}

fn copy(attempt: &Attempt) -> Arc<Attempt> {
    under(attempt, attempt.session().clone(), attempt.keys().clone())
}

fn under(attempt: &Attempt, session: SessionId, keys: Keys) -> Arc<Attempt> {
    let (class, grant_id) = (attempt.class().clone(), attempt.grant_id().clone());
    Arc::new(Attempt::new(session, class, keys, grant_id))
}

impl WrongStore {
    fn makes(&self, mistake: Mistake) -> bool {
        self.shared.mistake == Some(mistake)
    }

    pub(super) fn opened(&self, lease: &Lease) {
        if self.makes(Mistake::LossKeepsHolds) {
            // Kept alive by the store, whatever becomes of the session.
            let mut renewals = self.good.renewals(&lease.session);
            let every = lease.ttl.as_duration() / 3;
            tokio::spawn(async move {
                while renewals.renew().await.is_ok() {
                    tokio::time::sleep(every).await;
                }
            });
        }
    }

    pub(super) async fn close_wrongly(&self, session: &SessionId) -> Result<(), StoreError> {
        if self.makes(Mistake::LossKeepsHolds) {
            return Ok(());
        }
        self.good.close(session).await
    }

    pub(super) async fn acquire_wrongly(&self, attempt: &Attempt) -> Result<Minted, AcquireError> {
        match self.shared.mistake {
            Some(Mistake::TokenFromARead) => {
                let read = *self.shared.last.lock().unwrap() + 1;
                let minted = self.acquire_really(attempt).await?;
                *self.shared.last.lock().unwrap() = read;
                self.keep(attempt, vec![Real::of(copy(attempt), minted)]);
                Ok(token(read))
            }
            Some(Mistake::TokensFall) => {
                let minted = self.acquire_really(attempt).await?;
                let (_, revision) = minted.token.split().unwrap();
                self.keep(attempt, vec![Real::of(copy(attempt), minted)]);
                Ok(token(Revision::MAX.as_u64() - revision.as_u64()))
            }
            Some(Mistake::BreaksStaleLocks) => self.acquire_by_breaking(attempt).await,
            Some(Mistake::WaiterOpensANewLease) => match self.acquire_really(attempt).await {
                Err(AcquireError::SessionOver | AcquireError::NotConfirmed) => {
                    let lease = self.good.open(fence_core::Ttl::MAX).await.unwrap();
                    let again = under(attempt, lease.session, attempt.keys().clone());
                    let minted = self.good.acquire(&again).await?;
                    self.keep(attempt, vec![Real::of(again, minted)]);
                    Ok(minted)
                }
                outcome => outcome,
            },
            Some(Mistake::QueuesAnew) => self.acquire_by_asking_again(attempt).await,
            Some(Mistake::KeyByKey) if attempt.keys().count() <= self.most_keys() => {
                let mut real = Vec::new();
                for key in attempt.keys() {
                    let one = under(attempt, attempt.session().clone(), Keys::from(key.clone()));
                    attempt.sending();
                    let minted = self.good.acquire(&one).await?;
                    real.push(Real::of(one, minted));
                }
                attempt.answered();
                let last = real[real.len() - 1].minted;
                self.keep(attempt, real);
                Ok(last)
            }
            Some(Mistake::UnconfirmedGrant) => match self.acquire_really(attempt).await {
                // The good store looks once more; this one had the answer.
                Err(AcquireError::NotConfirmed) => Ok(token(Revision::MAX.as_u64())),
                outcome => outcome,
            },
            _ => self.acquire_really(attempt).await,
        }
    }

    pub(super) async fn give_up_wrongly(&self, attempt: &Attempt) -> Result<(), StoreError> {
        if self.makes(Mistake::GivenUpLands) {
            // As if nothing were on its way.
            return self.good.give_up(&copy(attempt)).await;
        }
        self.good.give_up(attempt).await
    }

    pub(super) async fn release_wrongly(
        &self,
        attempt: &Attempt,
        minted: Minted,
    ) -> Result<Release, StoreError> {
        if self.makes(Mistake::ReleaseByName) {
            let holder = self.shared.holders.lock().unwrap().remove(attempt.keys());
            return match holder {
                Some(real) => self.good.release(&real.attempt, real.minted).await,
                None => Ok(Release::NotHeld),
            };
        }
        let real = self.shared.real.lock().unwrap().get(attempt.grant_id()).cloned();
        let Some(real) = real else {
            return self.good.release(attempt, minted).await;
        };
        let mut outcome = Release::Released;
        for real in real {
            if self.good.release(&real.attempt, real.minted).await? == Release::NotHeld {
                outcome = Release::NotHeld;
            }
        }
        Ok(outcome)
    }

    async fn acquire_really(&self, attempt: &Attempt) -> Result<Minted, AcquireError> {
        let minted = self.good.acquire(attempt).await?;
        let holder = Real::of(copy(attempt), minted);
        self.shared
            .holders
            .lock()
            .unwrap()
            .insert(attempt.keys().clone(), holder);
        Ok(minted)
    }

    async fn acquire_by_breaking(&self, attempt: &Attempt) -> Result<Minted, AcquireError> {
        const STALE: Duration = Duration::from_millis(1900);
        loop {
            match tokio::time::timeout(STALE, self.acquire_really(attempt)).await {
                Ok(outcome) => return outcome,
                Err(_) => {
                    let holder = self.shared.holders.lock().unwrap().remove(attempt.keys());
                    if let Some(real) = holder {
                        let _ = self.good.release(&real.attempt, real.minted).await?;
                    }
                }
            }
        }
    }

    async fn acquire_by_asking_again(&self, attempt: &Attempt) -> Result<Minted, AcquireError> {
        const AGAIN: Duration = Duration::from_millis(30);
        loop {
            match tokio::time::timeout(AGAIN, self.good.acquire(attempt)).await {
                Ok(outcome) => return outcome,
                Err(_) => self.good.give_up(&copy(attempt)).await?,
            }
        }
    }

    fn keep(&self, attempt: &Attempt, real: Vec<Real>) {
        let mut all = self.shared.real.lock().unwrap();
        all.insert(attempt.grant_id().clone(), real);
    }
}
