//! Collects events while a half runs.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::event::Event;
use super::file::History;
use super::observed::At;
use super::run::Run;

/// Collects the events of one half, from any thread, in any order.
#[derive(Debug)]
pub struct Recorder {
    began: Instant,
    events: Mutex<Vec<(At, Event)>>,
}

impl Recorder {
    /// Starts the run's clock.
    pub fn start() -> Recorder {
        Recorder {
            began: Instant::now(),
            events: Mutex::new(Vec::new()),
        }
    }

    /// Now, on the run's clock.
    pub fn now(&self) -> At {
        self.at(Instant::now())
    }

    /// An instant that was taken elsewhere, on the run's clock; an earlier one than the start is the start.
    pub fn at(&self, instant: Instant) -> At {
        let nanos = instant.saturating_duration_since(self.began).as_nanos();
        At::from_nanos(u64::try_from(nanos).expect("a run is shorter than 584 years"))
    }

    /// Records what happened at `at`.
    pub fn record(&self, at: At, event: impl Into<Event>) {
        self.events().push((at, event.into()));
    }

    /// The history of all that was recorded, in the order of time.
    pub fn into_history(self, run: Run) -> History {
        let events = self.events.into_inner().unwrap_or_else(PoisonError::into_inner);
        History::new(run, events)
    }

    // A panic elsewhere cannot leave a half-pushed event, so a poisoned lock still holds a good list.
    fn events(&self) -> MutexGuard<'_, Vec<(At, Event)>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
