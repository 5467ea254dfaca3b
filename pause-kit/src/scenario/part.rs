//! What a scenario gives a holder to do.

use crate::target::{GateName, Variant};

/// What a scenario needs of a holder when it starts it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// Who it is, such as `H1`.
    pub(crate) name: &'static str,
    /// The replica to which its requests go.
    pub(crate) replica: usize,
    /// Where it is kept; it passes every other gate.
    pub(crate) stands_at: &'static [GateName],
    /// Of which kind it is.
    pub(crate) variant: Option<Variant>,
    /// Whether it is this one's second process.
    pub(crate) again: bool,
    /// Whether it is the child of another process, whose group and session it has left.
    pub(crate) away: bool,
    /// Whether it is the child of another process that cannot be stopped.
    pub(crate) unstoppable: bool,
}

impl Part {
    /// A holder that goes through all its gates.
    pub(crate) fn new(name: &'static str) -> Part {
        Part {
            name,
            replica: 0,
            stands_at: &[],
            variant: None,
            again: false,
            away: false,
            unstoppable: false,
        }
    }

    pub(crate) fn at(self, stands_at: &'static [GateName]) -> Part {
        Part { stands_at, ..self }
    }

    pub(crate) fn of(self, variant: Variant) -> Part {
        Part {
            variant: Some(variant),
            ..self
        }
    }

    pub(crate) fn away(self) -> Part {
        Part { away: true, ..self }
    }

    pub(crate) fn unstoppable(self) -> Part {
        Part {
            unstoppable: true,
            ..self
        }
    }

    pub(crate) fn through(self, replica: usize) -> Part {
        Part { replica, ..self }
    }

    pub(crate) fn once_more(self) -> Part {
        Part { again: true, ..self }
    }
}
