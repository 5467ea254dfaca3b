//! What the lock store grants and ends while a half runs.

use std::sync::Arc;
use std::time::Instant;

use fence_core::{ClassName, GrantId, Key, Token};
use futures_util::StreamExt;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::store::{Store, StoreError, StoreEvent};

/// A growing list of the store's events, each with the time at which the kit saw it.
#[derive(Debug)]
pub(crate) struct Grants {
    seen: watch::Receiver<Arc<Seen>>,
    task: AbortHandle,
}

#[derive(Clone, Debug, Default)]
struct Seen {
    events: Vec<(Instant, StoreEvent)>,
    failed: Option<String>,
}

/// A grant that the store reported.
#[derive(Clone, Debug)]
pub(crate) struct Granted {
    pub(crate) token: Token,
    pub(crate) grant: GrantId,
}

impl Grants {
    /// Watches from now on.
    pub(crate) async fn watch(store: &dyn Store) -> Result<Grants, StoreError> {
        let mut events = store.watch().await?;
        let (sender, seen) = watch::channel(Arc::new(Seen::default()));
        let task = tokio::spawn(async move {
            while let Some(event) = events.next().await {
                let at = Instant::now();
                sender.send_modify(|seen| {
                    let seen = Arc::make_mut(seen);
                    match event {
                        Ok(event) => seen.events.push((at, event)),
                        Err(error) => seen.failed = Some(format!("{error:?}")),
                    }
                });
            }
        });
        Ok(Grants {
            seen,
            task: task.abort_handle(),
        })
    }

    /// Waits for the grant number `number` of this lock, counted from 0.
    pub(crate) async fn granted(
        &self,
        class: &ClassName,
        key: &Key,
        number: usize,
    ) -> Result<Granted, GrantsLost> {
        self.wait(|seen| {
            seen.events
                .iter()
                .filter_map(|(_, event)| match event {
                    StoreEvent::Granted {
                        class: c,
                        key: k,
                        token,
                        grant,
                    } if c == class && k == key => Some(Granted {
                        token: *token,
                        grant: grant.clone(),
                    }),
                    _ => None,
                })
                .nth(number)
        })
        .await
    }

    /// Waits until the store has ended this grant, and returns when that was seen.
    pub(crate) async fn ended(&self, grant: &GrantId) -> Result<Instant, GrantsLost> {
        self.wait(|seen| {
            seen.events.iter().find_map(|(at, event)| match event {
                StoreEvent::Ended { grant: ended, .. } if ended == grant => Some(*at),
                _ => None,
            })
        })
        .await
    }

    /// Everything seen so far.
    pub(crate) fn events(&self) -> Vec<(Instant, StoreEvent)> {
        self.seen.borrow().events.clone()
    }

    async fn wait<T>(&self, look: impl Fn(&Seen) -> Option<T>) -> Result<T, GrantsLost> {
        let mut seen = self.seen.clone();
        loop {
            {
                let now = seen.borrow_and_update();
                if let Some(found) = look(&now) {
                    return Ok(found);
                }
                if let Some(why) = &now.failed {
                    return Err(GrantsLost { why: why.clone() });
                }
            }
            seen.changed().await.map_err(|_| GrantsLost {
                why: "the store ended the watch".to_owned(),
            })?;
        }
    }
}

impl Drop for Grants {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The store's record can no longer be followed.
#[derive(Debug, thiserror::Error)]
#[error("the lock store's grants can no longer be followed: {why}")]
pub(crate) struct GrantsLost {
    why: String,
}
