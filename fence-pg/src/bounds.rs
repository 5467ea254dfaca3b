//! How long a guarded transaction may wait and stand idle.

use std::time::Duration;

use crate::isolation::Isolation;

/// The text that [`Bounds::default`] sends, alone after `BEGIN; `, in one simple query.
pub const BOUNDS_SQL: &str = "SET LOCAL lock_timeout = '2000ms'; \
    SET LOCAL idle_in_transaction_session_timeout = '5000ms'; \
    SELECT set_config('synchronous_commit', 'local', true) WHERE current_setting('synchronous_commit') = 'off'; \
    SELECT pg_current_xact_id()::text";

/// The bounds of a guarded transaction: 2 s of waiting for a lock, 5 s of standing idle (then the server ends the
/// connection) unless made stricter. An acknowledged commit is always on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    lock_wait: Duration,
    idle: Duration,
    isolation: Option<Isolation>,
}

impl Bounds {
    /// Stricter bounds, in whole milliseconds: `lock_wait` 1 ms to 2 s, `idle` 1 ms to 5 s.
    ///
    /// # Errors
    ///
    /// [`BoundsError`] outside those ranges: a holder that stopped would delay its successor by more than the guard promises.
    pub fn new(lock_wait: Duration, idle: Duration) -> Result<Bounds, BoundsError> {
        let most = Bounds::default();
        let least = Duration::from_millis(1);
        if (least..=most.lock_wait).contains(&lock_wait) && (least..=most.idle).contains(&idle) {
            Ok(Bounds {
                lock_wait,
                idle,
                isolation: None,
            })
        } else {
            Err(BoundsError { lock_wait, idle })
        }
    }

    /// The same bounds at an isolation level, instead of the session's own.
    pub fn at(self, isolation: Isolation) -> Bounds {
        Bounds {
            isolation: Some(isolation),
            ..self
        }
    }

    /// BEGIN alone.
    pub(crate) fn begin(self) -> &'static str {
        self.isolation.map_or("BEGIN", Isolation::begin_sql)
    }

    #[cfg(feature = "tokio-postgres")]
    pub(crate) fn begin_sql(self) -> String {
        format!("{}; {}", self.begin(), self.set_sql())
    }

    /// What follows BEGIN.
    pub(crate) fn set_sql(self) -> String {
        let own = |default: &str, milliseconds: u128, sql: String| {
            sql.replace(default, &format!("'{milliseconds}ms'"))
        };
        let sql = own("'2000ms'", self.lock_wait.as_millis(), BOUNDS_SQL.to_owned());
        own("'5000ms'", self.idle.as_millis(), sql)
    }
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            lock_wait: Duration::from_secs(2),
            idle: Duration::from_secs(5),
            isolation: None,
        }
    }
}

/// Bounds that are none. Choose `lock_wait` from 1 ms to 2 s, `idle` from 1 ms to 5 s.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("bounds are 1 ms to 2 s of lock wait and 1 ms to 5 s idle, got {lock_wait:?} and {idle:?}")]
pub struct BoundsError {
    /// The lock wait offered.
    pub lock_wait: Duration,
    /// The idle time offered.
    pub idle: Duration,
}
