//! Things of which one at a time is so.

use crate::history::At;

/// The earliest end of what has a turn, and of what has another turn than that.
pub(super) struct Turns {
    first: (At, u32),
    other: At,
}

impl Turns {
    pub(super) fn none() -> Turns {
        let never = At::from_nanos(u64::MAX);
        Turns {
            first: (never, u32::MAX),
            other: never,
        }
    }

    pub(super) fn note(&mut self, turn: u32, end: At) {
        if turn == self.first.1 {
            self.first.0 = self.first.0.min(end);
        } else if end < self.first.0 {
            (self.other, self.first) = (self.first.0, (end, turn));
        } else {
            self.other = self.other.min(end);
        }
    }

    /// The earliest end of what has another turn than this.
    pub(super) fn other_than(&self, turn: u32) -> At {
        if turn == self.first.1 {
            self.other
        } else {
            self.first.0
        }
    }
}
