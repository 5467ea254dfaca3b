//! Deadline arithmetic: until when a holder may believe that it holds.
//!
//! Times are readings of a clock that keeps running while the machine is suspended (`CLOCK_BOOTTIME` on Linux). This crate
//! reads no clock; the caller passes what it read.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A reading of the boot-time clock, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BootInstant(u64);

impl BootInstant {
    /// A reading of so many nanoseconds.
    pub const fn from_nanos(nanos: u64) -> BootInstant {
        BootInstant(nanos)
    }

    /// The reading in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// This instant and `duration` more, or the last instant there is.
    pub fn after(self, duration: Duration) -> BootInstant {
        BootInstant(
            self.0
                .saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)),
        )
    }

    /// How long until `later`; zero when it is not later.
    pub fn until(self, later: BootInstant) -> Duration {
        Duration::from_nanos(later.0.saturating_sub(self.0))
    }
}

/// The time to live of a lease, 2 s at least, 1 h at most; 10 s by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ttl(Duration);

impl Ttl {
    /// The shortest time to live.
    pub const MIN: Ttl = Ttl(Duration::from_secs(2));
    /// The longest time to live.
    pub const MAX: Ttl = Ttl(Duration::from_secs(3600));

    /// A time to live.
    ///
    /// # Errors
    ///
    /// [`TtlError`] below 2 s or above 1 h.
    pub fn new(duration: Duration) -> Result<Ttl, TtlError> {
        if duration < Ttl::MIN.0 || duration > Ttl::MAX.0 {
            Err(TtlError { duration })
        } else {
            Ok(Ttl(duration))
        }
    }

    /// A time to live of whole seconds, 2 ..= 3600.
    ///
    /// # Errors
    ///
    /// [`TtlError`] outside that range.
    pub fn from_secs(seconds: u64) -> Result<Ttl, TtlError> {
        Ttl::new(Duration::from_secs(seconds))
    }

    /// As a duration.
    pub const fn as_duration(self) -> Duration {
        self.0
    }

    /// What the holder gives away of the lease at its end, for its own timers and the store's clock:
    /// max(250 ms, TTL / 10).
    pub fn margin(self) -> Duration {
        Duration::from_millis(250).max(self.0 / 10)
    }

    /// How long a keepalive may stay unanswered before it has failed: TTL / 3.
    pub fn keepalive_timeout(self) -> Duration {
        self.0 / 3
    }

    /// The deadline of a lease whose last answered keepalive was sent at `sent`.
    pub fn deadline(self, sent: BootInstant) -> BootInstant {
        sent.after(self.0 - self.margin())
    }
}

impl Default for Ttl {
    fn default() -> Ttl {
        Ttl(Duration::from_secs(10))
    }
}

/// A duration that is no time to live. Choose one between 2 s and 1 h.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a TTL is 2 s to 3600 s, got {duration:?}")]
pub struct TtlError {
    /// The duration offered.
    pub duration: Duration,
}

/// Text form: whole seconds or milliseconds, `10s` or `2500ms`.
impl std::str::FromStr for Ttl {
    type Err = ParseTtlError;

    fn from_str(text: &str) -> Result<Ttl, ParseTtlError> {
        let form = || ParseTtlError::Form {
            text: text.chars().take(40).collect(),
        };
        let (digits, unit): (&str, fn(u64) -> Duration) = if let Some(digits) = text.strip_suffix("ms") {
            (digits, Duration::from_millis)
        } else if let Some(digits) = text.strip_suffix('s') {
            (digits, Duration::from_secs)
        } else {
            return Err(form());
        };
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(form());
        }
        let number = digits.parse().map_err(|_| form())?;
        Ok(Ttl::new(unit(number))?)
    }
}

/// A text that is no time to live.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseTtlError {
    /// Not digits and a unit. Write `10s` or `2500ms`.
    #[error("a TTL is written like 10s or 2500ms, got {text:?}")]
    Form {
        /// The text, cut at 40 characters.
        text: String,
    },
    /// Outside the range.
    #[error(transparent)]
    Range(#[from] TtlError),
}

impl std::fmt::Display for Ttl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.subsec_nanos() {
            0 => write!(f, "{}s", self.0.as_secs()),
            _ => write!(f, "{}ms", self.0.as_millis()),
        }
    }
}

impl Serialize for Ttl {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Ttl {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Ttl, D::Error> {
        crate::text::deserialize(deserializer, "a TTL as a string such as \"10s\"")
    }
}

/// Where a hold stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum Phase {
    /// Renewed in time: work may start.
    Live,
    /// A keepalive has failed: no new work starts, what runs may end.
    Draining,
    /// The deadline has passed, or the store said that the lease is gone: the token can no longer be read. Terminal.
    Fenced,
}

/// What a holder knows about its lease, from its own keepalives alone.
///
/// It is a state machine without a clock: the caller reports what happened and when, and asks with the present reading. The
/// phase is worked out from the deadline at every question, so that a holder that slept through its timers still gets the
/// right answer at its first look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseView {
    deadline: BootInstant,
    failed: bool,
    gone: bool,
}

impl LeaseView {
    /// A lease granted with `ttl` in answer to a request that was sent at `sent`.
    pub fn granted(sent: BootInstant, ttl: Ttl) -> LeaseView {
        LeaseView {
            deadline: ttl.deadline(sent),
            failed: false,
            gone: false,
        }
    }

    /// A keepalive sent at `sent` was answered at `now`, with the time to live that is left. A renewal that is heard of
    /// after the deadline comes too late: the hold stays fenced. One heard of before it ends a draining that an
    /// earlier failure began.
    pub fn renewed(&mut self, now: BootInstant, sent: BootInstant, ttl: Ttl) {
        if self.phase(now) == Phase::Fenced {
            self.gone = true;
            return;
        }
        self.deadline = self.deadline.max(ttl.deadline(sent));
        self.failed = false;
    }

    /// A keepalive failed: its stream ended, or no answer came within [`Ttl::keepalive_timeout`].
    pub fn keepalive_failed(&mut self) {
        self.failed = true;
    }

    /// The store answered TTL 0, or said that the lease does not exist.
    pub fn lease_gone(&mut self) {
        self.gone = true;
    }

    /// Until when the holder may believe that it holds.
    pub fn deadline(&self) -> BootInstant {
        self.deadline
    }

    /// Where the hold stands at `now`.
    pub fn phase(&self, now: BootInstant) -> Phase {
        if self.gone || now >= self.deadline {
            Phase::Fenced
        } else if self.failed {
            Phase::Draining
        } else {
            Phase::Live
        }
    }
}
