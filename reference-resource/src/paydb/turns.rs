//! Whose turn it is on a key.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use fence_core::Key;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// So many requests on one key hold a connection to the database each; more of them would only wait for each other there, and
/// leave none to the other keys.
const AT_ONCE: usize = 4;

/// How long a request waits for its turn: as long as an admission then waits for the key itself.
const PATIENCE: Duration = Duration::from_secs(2);

/// From so many keys on, those that nobody waits for are forgotten before another is added.
const MANY: usize = 1024;

/// The requests under way, by key.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns(Arc<Mutex<HashMap<Key, Weak<Semaphore>>>>);

/// A request's turn, for as long as it is kept.
#[derive(Debug)]
pub(super) struct Turn {
    _permit: OwnedSemaphorePermit,
}

impl Turn {
    /// Does this, and keeps the turn until it is done, also where nobody waits for it any more: what was asked of the database goes
    /// on when a client has left.
    pub(super) async fn during<T: Send + 'static>(self, work: impl Future<Output = T> + Send + 'static) -> T {
        let task = tokio::spawn(async move {
            let done = work.await;
            drop(self);
            done
        });
        task.await
            .unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
    }
}

impl Turns {
    /// Waits for a turn on this key; `None` when the requests before it take too long.
    pub(super) async fn take(&self, key: &Key) -> Option<Turn> {
        let waiting = tokio::time::timeout(PATIENCE, self.of(key).acquire_owned());
        let permit = waiting.await.ok()?.expect("nobody closes it");
        Some(Turn { _permit: permit })
    }

    fn of(&self, key: &Key) -> Arc<Semaphore> {
        let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turns) = keys.get(key).and_then(Weak::upgrade) {
            return turns;
        }
        if keys.len() >= MANY {
            keys.retain(|_, turns| turns.strong_count() > 0);
        }
        let turns = Arc::new(Semaphore::new(AT_ONCE));
        keys.insert(key.clone(), Arc::downgrade(&turns));
        turns
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_few_on_one_key_go_at_once_and_no_other_key_waits_for_them() {
        let (turns, one) = (Turns::default(), Key::text("acct-1").expect("a key"));
        let mut taken = Vec::new();
        for _ in 0..AT_ONCE {
            taken.push(turns.take(&one).await.expect("a turn"));
        }
        let mut next = Box::pin(turns.take(&one));
        assert!(next.as_mut().now_or_never().is_none());
        assert!(
            turns
                .take(&Key::text("acct-2").expect("a key"))
                .now_or_never()
                .flatten()
                .is_some()
        );
        taken.pop();
        assert!(next.await.is_some());
    }

    #[tokio::test]
    async fn a_turn_lasts_as_long_as_its_work_though_nobody_waits_for_it() {
        let (turns, key) = (Turns::default(), Key::text("acct-1").expect("a key"));
        let (done, waiting) = tokio::sync::oneshot::channel::<()>();
        let turn = turns.take(&key).await.expect("a turn");
        assert!(turn.during(waiting).now_or_never().is_none());
        let all = turns.of(&key);
        assert_eq!(all.available_permits(), AT_ONCE - 1);
        done.send(()).expect("the work goes on");
        let every = u32::try_from(AT_ONCE).expect("a small number");
        drop(all.acquire_many(every).await.expect("all turns"));
    }

    #[tokio::test]
    async fn keys_that_nobody_waits_for_are_forgotten() {
        let turns = Turns::default();
        let kept = turns.take(&Key::integer(0)).await;
        for number in 1..=3 * i64::try_from(MANY).expect("a small number") {
            drop(turns.take(&Key::integer(number)).await.expect("a turn"));
        }
        let known = turns.0.lock().expect("no panic").len();
        assert!(known <= MANY, "{known}");
        let same = turns.of(&Key::integer(0));
        assert_eq!(same.available_permits(), AT_ONCE - 1, "one that is taken is kept");
        drop(kept);
    }
}
