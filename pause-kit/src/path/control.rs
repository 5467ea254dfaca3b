//! The state that a path's tasks, its controls and its readers share.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::close::CloseRule;
use super::state::State;

/// One path's state, with a version that rises at every change.
pub(crate) struct Shared {
    state: Mutex<State>,
    version: watch::Sender<u64>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn new(upstream: SocketAddr, close_rule: CloseRule, window: usize) -> Self {
        Self {
            state: Mutex::new(State::new(upstream, close_rule, window)),
            version: watch::Sender::new(0),
        }
    }

    /// Looks at the state. A caller's function that panicked under the lock left it whole, since it only reads.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.lock())
    }

    /// Changes the state and wakes everyone who waits for it.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.lock());
        self.version.send_modify(|version| *version += 1);
        result
    }

    /// Changes what nobody waits for.
    pub(crate) fn change_quietly<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.lock())
    }

    /// Looks at the state now and after every change, until the look yields something.
    pub(crate) async fn wait<T>(&self, mut look: impl FnMut(&State) -> Option<T>) -> T {
        let mut changes = self.version.subscribe();
        loop {
            changes.borrow_and_update();
            if let Some(found) = self.read(&mut look) {
                return found;
            }
            changes.changed().await.expect("the sender lives in self");
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
