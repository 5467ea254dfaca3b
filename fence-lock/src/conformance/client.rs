//! What the cases do with a store: leases that are renewed or not, attempts, and bounded waits.

use std::sync::Arc;
use std::time::Duration;

use fence_core::{ClassName, GrantId, Key, Token, Ttl};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::bench::Place;
use super::case::Failure;
use crate::error::AcquireError;
use crate::keys::Keys;
use crate::store::{Attempt, LockStore, Minted, Release, SessionId};

/// How long a store may take for something that it must do at once. It stands for "for ever" on a busy machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// How long something is watched that must not happen.
pub(super) const WHILE: Duration = Duration::from_millis(700);

/// Fails the case unless the promise was kept.
macro_rules! promise {
    ($kept:expr, $($broken:tt)+) => {
        if !$kept {
            return Err($crate::conformance::Failure::Broken { what: format!($($broken)+) });
        }
    };
}
pub(super) use promise;

/// A failure with what was tried and every cause of the error.
pub(super) fn broken(what: &str, error: &dyn std::error::Error) -> Failure {
    let mut text = format!("{what}: {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    Failure::Broken { what: text }
}

/// Waits for something that must happen, for as long as patience lasts.
pub(super) async fn soon<T>(what: &str, happens: impl Future<Output = T>) -> Result<T, Failure> {
    timeout(PATIENCE, happens).await.map_err(|_| Failure::Broken {
        what: format!("{what} took more than {PATIENCE:?}"),
    })
}

/// A lease of the store, renewed until it is dropped if it was opened so.
pub(super) struct Member {
    pub(super) store: Arc<dyn LockStore>,
    pub(super) id: SessionId,
    pub(super) ttl: Ttl,
    renewing: Option<JoinHandle<()>>,
}

/// An attempt that was granted.
pub(super) struct Granted {
    pub(super) store: Arc<dyn LockStore>,
    pub(super) attempt: Arc<Attempt>,
    pub(super) minted: Minted,
}

/// An attempt on its way.
pub(super) struct Waiting {
    pub(super) store: Arc<dyn LockStore>,
    pub(super) attempt: Arc<Attempt>,
    task: JoinHandle<Result<Minted, AcquireError>>,
}

/// A client of its own with a lease that is renewed.
pub(super) async fn member(place: &dyn Place) -> Result<Member, Failure> {
    Member::renewed(place.client().await?, Duration::from_secs(20)).await
}

impl Member {
    /// A lease that nobody renews.
    pub(super) async fn silent(store: Arc<dyn LockStore>, ttl: Duration) -> Result<Member, Failure> {
        let asked = Ttl::new(ttl).expect("the cases ask for TTLs in range");
        let lease = soon("opening a lease", store.open(asked))
            .await?
            .map_err(|error| broken("no lease was opened", &error))?;
        promise!(
            lease.ttl >= asked,
            "a lease of {} was granted where {asked} was asked for",
            lease.ttl
        );
        Ok(Member {
            store,
            id: lease.session,
            ttl: lease.ttl,
            renewing: None,
        })
    }

    /// A lease that is renewed three times within its TTL.
    pub(super) async fn renewed(store: Arc<dyn LockStore>, ttl: Duration) -> Result<Member, Failure> {
        let mut member = Member::silent(store, ttl).await?;
        let mut renewals = member.store.renewals(&member.id);
        let every = member.ttl.as_duration() / 3;
        member.renewing = Some(tokio::spawn(async move {
            loop {
                tokio::time::sleep(every).await;
                if renewals.renew().await.is_err() {
                    return;
                }
            }
        }));
        Ok(member)
    }

    /// A fresh attempt at these keys.
    pub(super) fn attempt(&self, keys: impl Into<Keys>) -> Arc<Attempt> {
        Arc::new(Attempt::new(self.id.clone(), class(), keys, grant_id()))
    }

    /// Starts to acquire.
    pub(super) fn acquiring(&self, keys: impl Into<Keys>) -> Waiting {
        self.acquiring_as(self.attempt(keys))
    }

    /// The same for an attempt that was made before.
    pub(super) fn acquiring_as(&self, attempt: Arc<Attempt>) -> Waiting {
        let (store, trying) = (Arc::clone(&self.store), Arc::clone(&attempt));
        Waiting {
            store: Arc::clone(&self.store),
            attempt,
            task: tokio::spawn(async move { store.acquire(&trying).await }),
        }
    }

    /// Acquires what must be free.
    pub(super) async fn acquire(&self, keys: impl Into<Keys>) -> Result<Granted, Failure> {
        self.acquiring(keys).granted().await
    }

    /// Queues: returns once the store shows the attempt as the `place`th waiter for its first key.
    pub(super) async fn queue(
        &self,
        at: &dyn Place,
        keys: impl Into<Keys>,
        place: usize,
    ) -> Result<Waiting, Failure> {
        let waiting = self.acquiring(keys);
        waits(at, waiting.attempt.keys().first(), place).await?;
        Ok(waiting)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if let Some(renewing) = &self.renewing {
            renewing.abort();
        }
    }
}

impl Granted {
    pub(super) fn token(&self) -> Token {
        self.minted.token
    }

    pub(super) async fn release(&self) -> Result<Release, Failure> {
        release(&self.store, &self.attempt, self.minted).await
    }

    /// Releases what must still be held.
    pub(super) async fn free(&self) -> Result<(), Failure> {
        let release = self.release().await?;
        promise!(
            release == Release::Released,
            "a grant that nothing ended was not held any more"
        );
        Ok(())
    }
}

impl Waiting {
    /// Waits for the grant.
    pub(super) async fn granted(mut self) -> Result<Granted, Failure> {
        match self.outcome().await? {
            Ok(minted) => Ok(Granted {
                store: Arc::clone(&self.store),
                attempt: Arc::clone(&self.attempt),
                minted,
            }),
            Err(error) => Err(broken("a free lock was not granted", &error)),
        }
    }

    /// Waits for whatever comes.
    pub(super) async fn outcome(&mut self) -> Result<Result<Minted, AcquireError>, Failure> {
        soon("an acquisition", &mut self.task)
            .await?
            .map_err(|error| broken("acquire panicked", &error))
    }

    /// Whether it is over by now.
    pub(super) fn is_over(&self) -> bool {
        self.task.is_finished()
    }

    /// Drops the future and gives the attempt up, trying until that is certain.
    pub(super) async fn give_up(mut self) -> Result<(), Failure> {
        self.task.abort();
        let _ = (&mut self.task).await;
        give_up(&self.store, &self.attempt).await
    }
}

/// Gives an attempt up, trying until that is certain.
pub(super) async fn give_up(store: &Arc<dyn LockStore>, attempt: &Attempt) -> Result<(), Failure> {
    soon("giving up", async {
        while store.give_up(attempt).await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await
}

pub(super) async fn release(
    store: &Arc<dyn LockStore>,
    attempt: &Attempt,
    minted: Minted,
) -> Result<Release, Failure> {
    soon("a release", store.release(attempt, minted))
        .await?
        .map_err(|error| broken("a release failed", &error))
}

/// Waits until the store shows so many waiters for a key.
pub(super) async fn waits(place: &dyn Place, key: &Key, count: usize) -> Result<(), Failure> {
    let class = class();
    let reached = async {
        loop {
            if place.waiters(&class, key).await? == count {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    soon(&format!("a queue of {count}"), reached).await?
}

/// Waits until the store shows that nobody holds a key.
pub(super) async fn free(place: &dyn Place, key: &Key) -> Result<(), Failure> {
    let class = class();
    let reached = async {
        while place.holder(&class, key).await?.is_some() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    };
    soon("a lock that comes free", reached).await?
}

pub(super) fn class() -> ClassName {
    ClassName::new("conformance.case").expect("a class name")
}

pub(super) fn key(text: &str) -> Key {
    Key::text(text).expect("a key")
}

pub(super) fn grant_id() -> GrantId {
    GrantId::new(uuid::Uuid::new_v4().simple().to_string()).expect("32 digits are a grant id")
}

/// Ends a session's lease, from whichever client.
pub(super) async fn close(store: &Arc<dyn LockStore>, session: &SessionId) -> Result<(), Failure> {
    soon("ending a lease", store.close(session))
        .await?
        .map_err(|error| broken("a lease was not ended", &error))
}
