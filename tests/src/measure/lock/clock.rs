//! The boot-time clock, keeping the reading that a thread was last given.

use std::cell::Cell;

use fence_core::BootInstant;
use fence_lock::{BootClock, Clock};
use futures_util::future::BoxFuture;

thread_local! {
    static LAST: Cell<u64> = const { Cell::new(0) };
}

/// [`BootClock`], whose last reading on this thread can be asked for: that is the stamp of a token's own read.
#[derive(Clone, Copy)]
pub(super) struct NotingClock;

impl NotingClock {
    /// The last reading that this thread was given.
    pub(super) fn last() -> BootInstant {
        BootInstant::from_nanos(LAST.get())
    }
}

impl Clock for NotingClock {
    fn now(&self) -> BootInstant {
        let now = BootClock.now();
        LAST.set(now.as_nanos());
        now
    }

    fn sleep_until(&self, at: BootInstant) -> BoxFuture<'static, ()> {
        BootClock.sleep_until(at)
    }
}
