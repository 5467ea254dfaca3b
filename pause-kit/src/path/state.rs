//! What a path knows: its log, its holds and rules, and what they let through.

mod aside;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::Notify;

use super::close::CloseRule;
use super::hold::{Finder, Hold, Kept, Point, Which};
use super::log::{Close, Connection, ConnectionNumber, Direction, Log, Mark};
use super::replace::{Replacement, ReplacementHandle, apply};

pub(crate) struct State {
    pub(crate) log: Log,
    pub(crate) upstream: SocketAddr,
    pub(crate) close_rule: CloseRule,
    window: usize,
    rules: Vec<Replacement>,
    holds: Vec<HoldState>,
    /// One for each connection of the log.
    controls: Vec<ConnectionControl>,
}

struct HoldState {
    hold: Hold,
    released: Option<Instant>,
}

/// What steers a connection's pumps.
pub(crate) struct ConnectionControl {
    to_resource: FlowControl,
    to_holder: FlowControl,
    let_close: bool,
    /// Wakes the four pumps of the connection.
    pub(crate) wake: Arc<Wake>,
}

/// One wake-up for each pump, so that none takes another's.
#[derive(Default)]
pub(crate) struct Wake {
    readers: [Notify; 2],
    writers: [Notify; 2],
    cut: Notify,
}

impl Wake {
    pub(crate) fn reader(&self, direction: Direction) -> &Notify {
        &self.readers[direction as usize]
    }

    pub(crate) fn writer(&self, direction: Direction) -> &Notify {
        &self.writers[direction as usize]
    }

    pub(crate) fn cut(&self) -> &Notify {
        &self.cut
    }

    fn all(&self) {
        for notify in self.readers.iter().chain(&self.writers) {
            notify.notify_one();
        }
    }
}

#[derive(Default)]
struct FlowControl {
    /// Up to where no replacement can fire any more.
    decided: usize,
    /// Up to where the writer has taken bytes for a write that is under way.
    taken: usize,
    /// Holds in force: which one, and how many bytes it lets through.
    limits: Vec<(usize, usize)>,
    /// Holds in force that have not found their place yet, and from which byte on they look.
    finders: Vec<(usize, Finder, usize)>,
}

/// What a writer does next.
pub(crate) enum Next {
    Write(Vec<u8>),
    PassClose(Close),
    Wait,
}

/// The most bytes that one write takes.
const CHUNK: usize = 64 * 1024;

impl State {
    pub(crate) fn new(upstream: SocketAddr, close_rule: CloseRule, window: usize) -> Self {
        Self {
            log: Log::default(),
            upstream,
            close_rule,
            window,
            rules: Vec::new(),
            holds: Vec::new(),
            controls: Vec::new(),
        }
    }

    pub(crate) fn accept(&mut self, peer: SocketAddr) -> (ConnectionNumber, SocketAddr, Arc<Wake>) {
        let number = ConnectionNumber::from_index(self.log.connections.len());
        self.log
            .connections
            .push(Connection::accepted(number, peer, self.upstream));
        let wake = Arc::new(Wake::default());
        self.controls.push(ConnectionControl {
            to_resource: FlowControl::default(),
            to_holder: FlowControl::default(),
            let_close: false,
            wake: Arc::clone(&wake),
        });
        for id in 0..self.holds.len() {
            if self.holds[id].hold.which == Which::Next {
                self.holds[id].hold.which = Which::Number(number);
            }
            self.impose(id, number);
        }
        (number, self.upstream, wake)
    }

    pub(crate) fn connection_mut(&mut self, number: ConnectionNumber) -> &mut Connection {
        &mut self.log.connections[number.index()]
    }

    /// Whether the reader may take more from its socket.
    pub(crate) fn has_room(&self, number: ConnectionNumber, direction: Direction) -> bool {
        let flow = self.log.connections[number.index()].flow(direction);
        flow.broken.is_some() || flow.received() - flow.forwarded() < self.window
    }

    /// Whether bytes wait because they may be the beginning of a pattern.
    pub(crate) fn is_undecided(&self, number: ConnectionNumber, direction: Direction) -> bool {
        let flow = self.log.connections[number.index()].flow(direction);
        self.control(number, direction).decided < flow.received()
    }

    pub(crate) fn arrived(&mut self, number: ConnectionNumber, direction: Direction, bytes: &[u8]) {
        let at = Instant::now();
        let flow = self.connection_mut(number).flow_mut(direction);
        flow.bytes.extend_from_slice(bytes);
        flow.received.push(Mark {
            end: flow.bytes.len(),
            at,
        });
        self.decide(number, direction, false);
        self.place_found(number, direction);
        self.controls[number.index()].wake.all();
    }

    /// Nothing came after the possible beginning of a pattern: let it go on as it is.
    pub(crate) fn lost_patience(&mut self, number: ConnectionNumber, direction: Direction) {
        self.connection_mut(number).flow_mut(direction).impatient += 1;
        self.decide(number, direction, true);
        self.controls[number.index()].wake.all();
    }

    pub(crate) fn closed(&mut self, number: ConnectionNumber, direction: Direction, close: Close) {
        self.connection_mut(number).flow_mut(direction).close = Some((close, Instant::now()));
        self.decide(number, direction, true);
        self.controls[number.index()].wake.all();
    }

    pub(crate) fn next(&mut self, number: ConnectionNumber, direction: Direction) -> Next {
        let connection = &self.log.connections[number.index()];
        if connection.cut.is_some() {
            return Next::Wait;
        }
        let flow = connection.flow(direction);
        let control = self.controls[number.index()].flow(direction);
        let from = flow.forwarded();
        let to = control.limit().min(control.decided).min(from + CHUNK);
        if from < to {
            let bytes = flow.bytes[from..to].to_vec();
            self.control_mut(number, direction).taken = to;
            return Next::Write(bytes);
        }
        match flow.close {
            Some((close, _)) if from == flow.received() && self.close_may_go(number, direction) => {
                Next::PassClose(close)
            }
            _ => Next::Wait,
        }
    }

    /// Bytes were handed on, at a time from before anyone can have seen them.
    pub(crate) fn written(
        &mut self,
        number: ConnectionNumber,
        direction: Direction,
        count: usize,
        at: Instant,
    ) {
        let flow = self.connection_mut(number).flow_mut(direction);
        let end = flow.forwarded() + count;
        flow.forwarded.push(Mark { end, at });
        self.control_mut(number, direction).taken = end;
        self.controls[number.index()].wake.all();
    }

    /// The receiver of a flow is gone.
    pub(crate) fn broke(&mut self, number: ConnectionNumber, direction: Direction) {
        self.connection_mut(number).flow_mut(direction).broken = Some(Instant::now());
        self.controls[number.index()].wake.all();
    }

    /// A close was passed on, at a time from before anyone can have seen it.
    pub(crate) fn close_passed(&mut self, number: ConnectionNumber, direction: Direction, at: Instant) {
        self.connection_mut(number).flow_mut(direction).close_passed = Some(at);
    }

    pub(crate) fn let_close(&mut self, number: ConnectionNumber) {
        if let Some(control) = self.controls.get_mut(number.index()) {
            control.let_close = true;
            control.wake.all();
        }
    }

    /// Cuts a connection off. Its writers hand nothing on from now on.
    pub(crate) fn cut(&mut self, number: ConnectionNumber) {
        if let Some(connection) = self.log.connections.get_mut(number.index()) {
            connection.cut.get_or_insert_with(Instant::now);
            self.controls[number.index()].wake.cut.notify_one();
        }
    }

    pub(crate) fn set_close_rule(&mut self, rule: CloseRule) {
        self.close_rule = rule;
        self.wake_every_connection();
    }

    /// Adds a rule. It is for bytes that come, and for those that are here and that no writer has taken.
    pub(crate) fn replace(&mut self, rule: Replacement) {
        self.rules.push(rule);
        for index in 0..self.log.connections.len() {
            let number = ConnectionNumber::from_index(index);
            for direction in Direction::BOTH {
                let gone = self.log.connections[index].flow(direction).forwarded();
                let control = self.control_mut(number, direction);
                control.decided = gone.max(control.taken);
                // Nobody waits for the rest of a pattern that may begin at the end of what is here.
                self.decide(number, direction, true);
            }
        }
        self.wake_every_connection();
    }

    pub(crate) fn withdraw(&mut self, rule: &ReplacementHandle) {
        self.rules.retain(|known| !known.is(rule));
    }

    pub(crate) fn hold(&mut self, hold: Hold) -> usize {
        let id = self.holds.len();
        self.holds.push(HoldState { hold, released: None });
        for index in 0..self.log.connections.len() {
            self.impose(id, ConnectionNumber::from_index(index));
        }
        id
    }

    pub(crate) fn release(&mut self, id: usize) -> Instant {
        let released = *self.holds[id].released.get_or_insert_with(Instant::now);
        for control in &mut self.controls {
            for flow in [&mut control.to_resource, &mut control.to_holder] {
                flow.limits.retain(|&(hold, _)| hold != id);
                flow.finders.retain(|&(hold, ..)| hold != id);
            }
        }
        self.wake_every_connection();
        released
    }

    pub(crate) fn kept_by(&self, id: usize) -> Option<Kept> {
        let direction = self.holds[id].hold.direction;
        self.log
            .connections
            .iter()
            .zip(&self.controls)
            .find_map(|(connection, control)| {
                let &(_, at_byte) = control
                    .flow(direction)
                    .limits
                    .iter()
                    .find(|&&(hold, _)| hold == id)?;
                let flow = connection.flow(direction);
                let since = flow.received_at(at_byte)?;
                (flow.forwarded() == at_byte).then_some(Kept {
                    connection: connection.number,
                    at_byte,
                    since,
                })
            })
    }

    /// Puts a hold in force on a connection, if it concerns it.
    fn impose(&mut self, id: usize, number: ConnectionNumber) {
        let HoldState { hold, released } = &self.holds[id];
        let concerned = match hold.which {
            Which::Next => false,
            Which::Number(only) => only == number,
            Which::Every => true,
        };
        if released.is_some() || !concerned {
            return;
        }
        let (direction, point) = (hold.direction, hold.point.clone());
        let forwarded = self.log.connections[number.index()].flow(direction).forwarded();
        let control = self.control_mut(number, direction);
        let gone = forwarded.max(control.taken);
        match point {
            Point::Byte(offset) => control.limits.push((id, offset.max(gone))),
            Point::Now => control.limits.push((id, gone)),
            Point::Found(find) => {
                control.finders.push((id, find, 0));
                self.place_found(number, direction);
            }
            Point::Next(find) => {
                control.finders.push((id, find, gone));
                self.place_found(number, direction);
            }
        }
    }

    /// Lets finders look at a flow's bytes, and turns what they found into limits.
    fn place_found(&mut self, number: ConnectionNumber, direction: Direction) {
        let flow = self.log.connections[number.index()].flow(direction);
        let control = self.controls[number.index()].flow_mut(direction);
        let gone = flow.forwarded().max(control.taken);
        let FlowControl { limits, finders, .. } = control;
        finders.retain(|(id, find, from)| match find(&flow.bytes[*from..]) {
            Some(offset) => {
                limits.push((*id, (from + offset).max(gone)));
                false
            }
            None => true,
        });
    }

    fn decide(&mut self, number: ConnectionNumber, direction: Direction, last: bool) {
        let flow = self.log.connections[number.index()].flow_mut(direction);
        let control = self.controls[number.index()].flow_mut(direction);
        control.decided = apply(&self.rules, direction, flow, control.decided, last);
    }

    fn close_may_go(&self, number: ConnectionNumber, direction: Direction) -> bool {
        direction == Direction::ToHolder
            || self.controls[number.index()].let_close
            || self.close_rule.lets(&self.log.connections[number.index()])
    }

    fn wake_every_connection(&self) {
        for control in &self.controls {
            control.wake.all();
        }
    }

    fn control(&self, number: ConnectionNumber, direction: Direction) -> &FlowControl {
        self.controls[number.index()].flow(direction)
    }

    fn control_mut(&mut self, number: ConnectionNumber, direction: Direction) -> &mut FlowControl {
        self.controls[number.index()].flow_mut(direction)
    }
}

impl ConnectionControl {
    fn flow(&self, direction: Direction) -> &FlowControl {
        match direction {
            Direction::ToResource => &self.to_resource,
            Direction::ToHolder => &self.to_holder,
        }
    }

    fn flow_mut(&mut self, direction: Direction) -> &mut FlowControl {
        match direction {
            Direction::ToResource => &mut self.to_resource,
            Direction::ToHolder => &mut self.to_holder,
        }
    }
}

impl FlowControl {
    fn limit(&self) -> usize {
        self.limits
            .iter()
            .map(|&(_, limit)| limit)
            .min()
            .unwrap_or(usize::MAX)
    }
}
