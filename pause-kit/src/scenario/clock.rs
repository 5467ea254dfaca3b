//! One clock in two forms.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Relates nanoseconds on CLOCK_MONOTONIC, as the reaper reports them, to [`Instant`]s, which are the same clock on Linux.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunClock {
    instant: Instant,
    nanos: u64,
}

impl RunClock {
    /// Reads the clock in both forms.
    pub(crate) fn read() -> RunClock {
        let instant = Instant::now();
        let now = clock_gettime(ClockId::Monotonic);
        let nanos = u64::try_from(now.tv_sec).unwrap_or_default() * 1_000_000_000
            + u64::try_from(now.tv_nsec).unwrap_or_default();
        RunClock { instant, nanos }
    }

    /// The instant of a reading in nanoseconds.
    pub(crate) fn instant(&self, nanos: u64) -> Instant {
        if nanos >= self.nanos {
            self.instant + Duration::from_nanos(nanos - self.nanos)
        } else {
            self.instant
                .checked_sub(Duration::from_nanos(self.nanos - nanos))
                .unwrap_or(self.instant)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_lies_between_the_instants_around_it() {
        let clock = RunClock::read();
        let before = Instant::now();
        let now = clock_gettime(ClockId::Monotonic);
        let after = Instant::now();
        let nanos = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
        let instant = clock.instant(nanos);
        // The two forms are read one after the other, so they may differ by what lies between the readings.
        let slack = Duration::from_millis(50);
        assert!(before - slack <= instant && instant <= after + slack);
    }
}
