//! What the search asks for.

use std::hash::Hash;

use crate::history::At;

/// When an operation took place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) began: At,
    /// `None`: it may take effect at any time after its beginning.
    pub(crate) ended: Option<At>,
    /// It may also have had no effect.
    pub(crate) optional: bool,
}

/// What the operations are done to, known by their numbers in the order of their beginnings.
pub(crate) trait Subject {
    type State: Copy + Eq + Hash;

    fn first(&self) -> Self::State;

    /// What the operation makes of this state. `None` when its answer does not fit.
    fn after(&self, state: Self::State, number: usize) -> Option<Self::State>;

    /// 128 bits of a state, which must not be those of another.
    fn fingerprint(&self, state: Self::State) -> u128;

    /// Learns that an operation is done, or is not done any more.
    fn note(&mut self, _number: usize, _done: bool) {}

    /// Whether something that is left can never fit any more.
    fn is_hopeless(&self, _state: Self::State) -> bool {
        false
    }

    /// Whether, with this operation next, all that is left might still fit.
    fn may_come_next(&self, _state: Self::State, _number: usize) -> bool {
        true
    }

    /// Operations of one kind make the same of every state, as far as anything else can tell.
    fn kind(&self, _number: usize) -> Option<u32> {
        None
    }

    /// The one thing that is so while this operation takes effect, where it says or makes one: no other of these may be so then.
    fn turn(&self, _number: usize) -> Option<u32> {
        None
    }

    /// Until when, at least, what this operation makes so stays so.
    fn lasts_until(&self, _number: usize) -> At {
        At::from_nanos(0)
    }
}
