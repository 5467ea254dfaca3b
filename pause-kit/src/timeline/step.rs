//! The steps of one half, in the order of time.

use crate::history::At;

/// A column of the drawing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lane {
    /// The lock store.
    Store,
    /// A holder, such as `H1`.
    Holder(String),
    /// The kit's path between holders and resource.
    Path,
    /// The resource, or another process that is no holder.
    Process(String),
    /// PostgreSQL, with the mark.
    Mark,
}

/// What goes on in a lane from a step on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing to be shown.
    Idle,
    /// It runs.
    Runs,
    /// It is stopped.
    Stopped,
    /// It was killed.
    Gone,
    /// The path holds bytes.
    Holds,
    /// The lock store has a lease of this holder.
    Lease(String),
    /// The mark has risen so many times, and stands at this token.
    Mark(usize, String),
}

/// How a step's arrow ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// It arrives.
    Arrives,
    /// It is kept on its way.
    Kept,
    /// It meets the mark and goes no further.
    Wall,
    /// It goes past the mark though it is late.
    Through,
}

/// How a step is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    /// One of the steps that lead to the late write.
    Plain,
    /// The kit looks at what there is.
    Aside,
    /// Time passes and nothing happens.
    Wait,
    /// Something is stopped, held or killed.
    Disturbed,
    /// The late attempt is refused, or has another outcome that is right.
    Right,
    /// The late attempt is let in.
    Wrong,
}

/// One step.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) at: At,
    /// When it is over.
    pub(super) until: At,
    /// The lines of the history that tell of it, in order.
    pub(super) lines: Vec<usize>,
    /// What tells it from the other steps of its half: its line, with `-end` where the end of a stop or hold is meant.
    pub(super) id: String,
    /// Steps of the two halves with the same sign stand side by side.
    pub(super) sign: String,
    pub(super) tone: Tone,
    pub(super) text: String,
    /// What came out of it, in a few words.
    pub(super) result: Option<String>,
    pub(super) arrow: Option<(Lane, Lane, Head)>,
    /// The lane of a step without an arrow.
    pub(super) dot: Option<Lane>,
    pub(super) states: Vec<(Lane, State)>,
}

impl Step {
    pub(super) fn new(at: At, line: usize, sign: impl Into<String>, text: impl Into<String>) -> Step {
        Step {
            at,
            until: at,
            lines: vec![line],
            id: line.to_string(),
            sign: sign.into(),
            tone: Tone::Plain,
            text: text.into(),
            result: None,
            arrow: None,
            dot: None,
            states: Vec::new(),
        }
    }

    pub(super) fn tone(mut self, tone: Tone) -> Step {
        self.tone = tone;
        self
    }

    /// Marks the end of what its line tells of.
    pub(super) fn end(mut self) -> Step {
        self.id.push_str("-end");
        self
    }

    pub(super) fn arrow(mut self, from: Lane, to: Lane, head: Head) -> Step {
        self.arrow = Some((from, to, head));
        self
    }

    pub(super) fn dot(mut self, lane: Lane) -> Step {
        self.dot = Some(lane);
        self
    }

    pub(super) fn state(mut self, lane: Lane, state: State) -> Step {
        self.states.push((lane, state));
        self
    }

    pub(super) fn result(mut self, result: impl Into<String>) -> Step {
        self.result = Some(result.into());
        self
    }

    /// Every lane that the step touches.
    pub(super) fn lanes(&self) -> impl Iterator<Item = &Lane> {
        let ends = self.arrow.iter().flat_map(|(from, to, _)| [from, to]);
        let states = self.states.iter().map(|(lane, _)| lane);
        ends.chain(&self.dot).chain(states)
    }
}

impl Lane {
    /// The lane of a process, by the name that the kit gives it.
    pub(super) fn of(target: &str) -> Lane {
        match target {
            "L" => Lane::Store,
            _ if target.starts_with('H') => Lane::Holder(target.to_owned()),
            _ => Lane::Process(target.to_owned()),
        }
    }

    /// What stands above it.
    pub(super) fn title(&self) -> &str {
        match self {
            Lane::Store => "lock store",
            Lane::Path => "path",
            Lane::Process(name) if name == "R" => "resource",
            Lane::Process(name) if name == "W" => "worker",
            Lane::Process(name) if name == "B" => "backend",
            Lane::Holder(name) | Lane::Process(name) => name,
            Lane::Mark => "mark",
        }
    }
}
