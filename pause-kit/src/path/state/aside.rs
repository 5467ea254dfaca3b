//! What the path itself says on a connection, and hears.

use std::time::Instant;

use super::State;
use crate::path::log::{ConnectionNumber, Direction, Mark};

impl State {
    /// Puts bytes before what has not been handed on yet, so that they go first, also past a hold.
    pub(crate) fn insert(&mut self, number: ConnectionNumber, direction: Direction, bytes: &[u8]) {
        let at = Instant::now();
        let gone = {
            let flow = self.log.connections[number.index()].flow(direction);
            flow.forwarded().max(self.control(number, direction).taken)
        };
        let flow = self.connection_mut(number).flow_mut(direction);
        flow.bytes.splice(gone..gone, bytes.iter().copied());
        let later = flow.received.partition_point(|mark| mark.end <= gone);
        for mark in &mut flow.received[later..] {
            mark.end += bytes.len();
        }
        let end = gone + bytes.len();
        flow.received.insert(later, Mark { end, at });
        for replaced in flow.replaced.iter_mut().filter(|one| one.offset >= gone) {
            replaced.offset += bytes.len();
        }
        let control = self.control_mut(number, direction);
        control.decided = control.decided.max(gone) + bytes.len();
        for (_, limit) in control.limits.iter_mut().filter(|(_, limit)| *limit >= gone) {
            *limit += bytes.len();
        }
        for (.., from) in control.finders.iter_mut().filter(|(.., from)| *from >= gone) {
            *from += bytes.len();
        }
        self.controls[number.index()].wake.all();
    }

    /// Keeps for good what has come and was not handed on.
    pub(crate) fn discard(&mut self, number: ConnectionNumber, direction: Direction) {
        let at = Instant::now();
        let flow = self.connection_mut(number).flow_mut(direction);
        let end = flow.bytes.len();
        flow.forwarded.push(Mark { end, at });
        let control = self.control_mut(number, direction);
        control.taken = end;
        control.decided = end;
        for (_, limit) in &mut control.limits {
            *limit = end.max(*limit);
        }
        self.controls[number.index()].wake.all();
    }
}
