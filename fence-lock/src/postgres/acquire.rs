//! One attempt: asking until it is its turn, and the two ways out.

use std::time::Duration;

use fence_core::{Revision, TierName, Token};

use super::call::{Row, is_definite, one};
use super::{PostgresStore, Waiting, sql};
use crate::error::{AcquireError, SealReason, StoreError};
use crate::store::{Attempt, LockStore, Minted, Release};

/// The longest that a waiter trusts its wake-up: a connection that died without saying so must not make it wait for ever.
const AT_MOST: Duration = Duration::from_secs(5);

/// How much later than the lease ahead a waiter asks again, so that it has lapsed by then.
const AFTER: Duration = Duration::from_millis(10);

/// The pause after a request without an answer.
const PAUSE: Duration = Duration::from_millis(100);

/// The pause after an answer that somebody else's transaction was in the way of.
const BUSY: Duration = Duration::from_millis(20);

/// How an attempt stands after it was asked for.
enum Looked {
    Granted(Minted),
    /// In the queue; the first lease ahead expires after this.
    Queued(Duration),
}

impl PostgresStore {
    pub(super) async fn acquire_in_turn(&self, attempt: &Attempt) -> Result<Minted, AcquireError> {
        let (asked, most) = (attempt.keys().count(), self.most_keys());
        if asked > most {
            return Err(AcquireError::TooManyKeys { asked, most });
        }
        let mut woken = match &self.inner.waiting {
            Waiting::Listen(listener) => Some(listener.expect(attempt.grant_id())),
            Waiting::Poll(_) => None,
        };
        let mut queued = false;
        loop {
            let retry = match self.look(attempt).await {
                Ok(Looked::Granted(minted)) => return self.confirm(attempt, minted).await,
                Ok(Looked::Queued(retry)) => retry,
                Err(AcquireError::Store(StoreError::Busy { .. })) => {
                    tokio::time::sleep(BUSY).await;
                    continue;
                }
                // In the queue a store that does not answer is asked again: the session ends the waiting at its deadline.
                Err(AcquireError::Store(error)) if queued && !is_definite(&error) => PAUSE,
                Err(error) => return Err(error),
            };
            match (&self.inner.waiting, &mut woken) {
                (Waiting::Listen(_), Some(woken)) => {
                    // What was freed before the listening began woke nobody: it is looked for once more.
                    let listens_anew = woken.listen().await;
                    if !listens_anew {
                        woken.wait((retry + AFTER).min(AT_MOST)).await;
                    }
                }
                (Waiting::Poll(interval), _) => tokio::time::sleep((retry + AFTER).min(*interval)).await,
                (Waiting::Listen(_), None) => unreachable!("whoever listens expects to be woken"),
            }
            queued = true;
        }
    }

    async fn look(&self, attempt: &Attempt) -> Result<Looked, AcquireError> {
        let channel = match &self.inner.waiting {
            Waiting::Listen(listener) => Some(listener.channel()),
            Waiting::Poll(_) => None,
        };
        attempt.sending();
        let answer = self
            .inner
            .pool
            .ask(&sql::acquire(attempt, &self.inner.tier, channel))
            .await;
        if answer.as_ref().err().is_none_or(is_definite) {
            attempt.answered();
        }
        let row = answer.and_then(one)?;
        match row.text(0) {
            Some("granted") => Ok(Looked::Granted(Minted {
                token: Token::new(row.number(1)?).map_err(|_| row.unreadable(1))?,
            })),
            Some("queued") => Ok(Looked::Queued(Duration::from_millis(
                row.text(2).and_then(|text| text.parse().ok()).unwrap_or(0),
            ))),
            Some("session over") => Err(AcquireError::SessionOver),
            Some("given up") => Err(AcquireError::GivenUp),
            Some("not initialised") => Err(AcquireError::NotInitialised {
                tier: self.inner.tier.clone(),
            }),
            Some("other store" | "other tier") => Err(AcquireError::Sealed(self.seal(&row)?)),
            Some("went back") => Err(AcquireError::Store(StoreError::Regressed {
                seen: revision(&row, 3)?,
                answered: revision(&row, 4)?,
            })),
            _ => Err(AcquireError::Store(row.unreadable(0))),
        }
    }

    fn seal(&self, row: &Row) -> Result<SealReason, StoreError> {
        if row.text(0) == Some("other tier") {
            return Ok(SealReason::OtherTier {
                recorded: row.read(3, TierName::new)?,
                asked: self.inner.tier.clone(),
            });
        }
        let text = |column| row.read(column, Ok::<_, StoreError>);
        Ok(SealReason::OtherCluster {
            recorded: text(3)?,
            found: text(4)?,
        })
    }

    /// A grant can be gone before its answer is here. Only one that is there, of a session that lives, is handed out.
    async fn confirm(&self, attempt: &Attempt, minted: Minted) -> Result<Minted, AcquireError> {
        let answer = self.inner.pool.ask(&sql::confirm(attempt, minted)).await;
        if answer.and_then(one)?.truth(0)? {
            Ok(minted)
        } else {
            Err(AcquireError::NotConfirmed)
        }
    }

    pub(super) async fn release_grant(
        &self,
        attempt: &Attempt,
        minted: Minted,
    ) -> Result<Release, StoreError> {
        let answer = self.inner.pool.ask(&sql::release(attempt, minted)).await;
        Ok(if answer.and_then(one)?.truth(0)? {
            Release::Released
        } else {
            Release::NotHeld
        })
    }

    pub(super) async fn give_up_attempt(&self, attempt: &Attempt) -> Result<(), StoreError> {
        self.inner.pool.ask(&sql::give_up(attempt)).await.map(|_| ())
    }
}

/// The lower part of a token, which the sequence counts.
fn revision(row: &Row, column: usize) -> Result<u64, StoreError> {
    let token = Token::new(row.number(column)?).map_err(|_| row.unreadable(column))?;
    Ok(token
        .split()
        .map_or(0, |(_, revision): (_, Revision)| revision.as_u64()))
}
