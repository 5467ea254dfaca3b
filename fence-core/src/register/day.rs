//! Days, and how many lie between two of them.

use std::fmt;

/// A day of the UTC calendar, as the number of days since 1970-01-01. How it is written is for whoever prints it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(i32);

impl Day {
    /// The day that lies `days` after 1970-01-01; before it, when negative.
    pub const fn from_epoch(days: i32) -> Day {
        Day(days)
    }

    /// Days since 1970-01-01.
    pub const fn since_epoch(self) -> i32 {
        self.0
    }

    /// The day that comes `days` later. The calendar's last day is followed by itself.
    pub fn plus(self, days: Days) -> Day {
        Day(self.0.saturating_add_unsigned(days.0))
    }

    /// How many days this one lies after `earlier`. `None` when it lies before it.
    pub fn days_after(self, earlier: Day) -> Option<Days> {
        let days = i64::from(self.0) - i64::from(earlier.0);
        u32::try_from(days).ok().map(Days)
    }
}

/// A number of days.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Days(u32);

impl Days {
    /// So many days.
    pub const fn new(days: u32) -> Days {
        Days(days)
    }

    /// The number.
    pub const fn number(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Days {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => f.write_str("1 day"),
            days => write!(f, "{days} days"),
        }
    }
}
