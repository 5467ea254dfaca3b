//! A clock that a test moves.

use std::sync::Arc;
use std::time::Duration;

use fence_core::BootInstant;
use fence_lock::{BootClock, Clock};
use futures_util::future::BoxFuture;
use tokio::sync::watch;

/// Stands still until it is moved.
#[derive(Clone)]
pub(crate) struct ManualClock {
    reading: Arc<watch::Sender<BootInstant>>,
}

impl ManualClock {
    pub(crate) fn new() -> ManualClock {
        let start = BootInstant::from_nanos(0).after(Duration::from_secs(24 * 3600));
        ManualClock {
            reading: Arc::new(watch::Sender::new(start)),
        }
    }

    pub(crate) fn forward(&self, by: Duration) {
        self.reading.send_modify(|reading| *reading = reading.after(by));
    }

    pub(crate) fn back(&self, by: Duration) {
        self.reading.send_modify(|reading| {
            *reading = BootInstant::from_nanos(reading.as_nanos() - u64::try_from(by.as_nanos()).unwrap());
        });
    }
}

impl Clock for ManualClock {
    fn now(&self) -> BootInstant {
        *self.reading.borrow()
    }

    fn sleep_until(&self, at: BootInstant) -> BoxFuture<'static, ()> {
        let mut reading = self.reading.subscribe();
        Box::pin(async move {
            let _ = reading.wait_for(|reading| *reading >= at).await;
        })
    }
}

/// Runs at another speed than the store's.
#[derive(Clone, Copy)]
pub(crate) struct SkewedClock {
    origin: BootInstant,
    thousandths: u32,
}

impl SkewedClock {
    /// At so many thousandths of the real speed, at least 1.
    pub(crate) fn at(thousandths: u32) -> SkewedClock {
        SkewedClock {
            origin: BootClock.now(),
            thousandths,
        }
    }
}

impl Clock for SkewedClock {
    fn now(&self) -> BootInstant {
        let real = self.origin.until(BootClock.now());
        self.origin.after(real * self.thousandths / 1000)
    }

    fn sleep_until(&self, at: BootInstant) -> BoxFuture<'static, ()> {
        let real = self.origin.until(at) * 1000 / self.thousandths;
        // Rounded down twice, it must not come back early.
        BootClock.sleep_until(self.origin.after(real + Duration::from_micros(1)))
    }
}

/// The real one's reading.
pub(crate) fn now() -> BootInstant {
    BootClock.now()
}
