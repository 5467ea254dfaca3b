//! The lock that a job runs under.

use std::time::Duration;

use fence_core::{Claim, ClassName, Key, TierName};
use fence_lock::{EtcdStore, Hold, NotHeld, Session};

use super::exit::WorkerError;
use super::options::LockOptions;

/// A session and its one hold.
pub(super) struct Lock {
    session: Session,
    hold: Hold,
}

impl Lock {
    /// Waits for the lock, however long that takes.
    pub(super) async fn take(
        options: &LockOptions,
        tier: &str,
        class: &str,
        key: &Key,
    ) -> Result<Lock, WorkerError> {
        let tier = TierName::new(tier).expect("a tier of paydb");
        let class = ClassName::new(class).expect("a class of paydb");
        let lock_store = "the lock store";
        let store = EtcdStore::connect(&options.etcd, &options.prefix, tier)
            .await
            .map_err(|error| WorkerError::unreachable(lock_store, error))?;
        let session = Session::open(store, options.ttl)
            .await
            .map_err(|error| WorkerError::unreachable(lock_store, error))?;
        let hold = session
            .acquire(&class, key)
            .await
            .map_err(|error| WorkerError::unreachable(lock_store, error))?;
        let lock = Lock { session, hold };
        let claim = lock.claim().await?;
        println!("granted token {} grant {}", claim.token, lock.hold.grant_id());
        Ok(lock)
    }

    /// The claim for work that starts now: the last look at the deadline before it. While a keepalive is overdue no work
    /// starts, so this waits until one is answered.
    pub(super) async fn claim(&self) -> Result<Claim, WorkerError> {
        loop {
            match self.hold.claim() {
                Ok(claim) => return Ok(claim),
                Err(NotHeld::Draining) => tokio::time::sleep(Duration::from_millis(50)).await,
                Err(lost @ (NotHeld::Fenced | NotHeld::Overlong)) => return Err(WorkerError::NotHeld(lost)),
            }
        }
    }

    /// Gives the lock back, if it is still held. The job is over by now, whatever the lock store says.
    pub(super) async fn release(self) {
        match self.hold.release().await {
            Ok(release) => println!("lock: {release:?}"),
            Err(error) => println!("lock: left to lapse: {error}"),
        }
        if let Err(error) = self.session.close().await {
            println!("session: left to lapse: {error}");
        }
    }
}
