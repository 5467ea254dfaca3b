//! Why a half did not come to its end.

use std::error::Error;
use std::future::Future;
use std::time::Duration;

use crate::reaper::Ended;
use crate::run::RunError;
use crate::stopper::StopError;

/// The half is over before its end. What had happened by then is still judged: a violation counts, and nothing else does.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    /// Something that was awaited did not come.
    #[error("not seen within {} s: {awaited}", within.as_secs())]
    Overrun {
        /// What was awaited.
        awaited: String,
        /// For how long.
        within: Duration,
    },
    /// A process ended before it did what was awaited.
    #[error("{who} ended with {ended} before {awaited}; its last words: {tail}")]
    Ended {
        /// The process.
        who: String,
        /// How it ended.
        ended: Ended,
        /// What was awaited.
        awaited: String,
        /// The end of its standard error.
        tail: String,
    },
    /// A holder whose write was late went on after its answer, so that what it does has no end to read back after.
    #[error("{who} did not end within {} s after its write was answered", within.as_secs())]
    Lingers {
        /// The holder.
        who: String,
        /// For how long it was waited for.
        within: Duration,
    },
    /// A process was not seen stopped, so that nothing that follows would mean anything.
    #[error("{who} did not stop")]
    Stop {
        /// The process.
        who: String,
        /// Why not.
        source: StopError,
    },
    /// A step of the scenario could not be taken.
    #[error("{what}")]
    Step {
        /// What could not be done.
        what: String,
        /// Why not.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The probes could not all be asked.
    #[error("the probes could not all be asked")]
    Probes(#[source] RunError),
    /// What is declared does not fit the target: the run cannot go on.
    #[error(transparent)]
    Declared(RunError),
    /// A part of the kit or a service failed: the run cannot go on.
    #[error("{what}")]
    Lost {
        /// What was being done.
        what: String,
        /// Why it failed.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl Trouble {
    /// For `map_err`: a step could not be taken.
    pub(crate) fn step<E: Into<Box<dyn Error + Send + Sync>>>(what: &str) -> impl FnOnce(E) -> Trouble {
        let what = what.to_owned();
        move |source| Trouble::Step {
            what,
            source: source.into(),
        }
    }

    /// For `map_err`: a part of the kit or a service failed.
    pub(crate) fn lost<E: Into<Box<dyn Error + Send + Sync>>>(what: &str) -> impl FnOnce(E) -> Trouble {
        let what = what.to_owned();
        move |source| Trouble::Lost {
            what,
            source: source.into(),
        }
    }
}

/// Waits for something, but not for ever.
pub(crate) async fn within<T>(
    limit: Duration,
    awaited: &str,
    future: impl Future<Output = T>,
) -> Result<T, Trouble> {
    tokio::time::timeout(limit, future)
        .await
        .map_err(|_| Trouble::Overrun {
            awaited: awaited.to_owned(),
            within: limit,
        })
}
