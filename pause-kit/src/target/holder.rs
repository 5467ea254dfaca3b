//! A holder: the process that takes the lock and writes, and the points at which it can be kept.

use std::fmt;

use serde::Deserialize;

use super::Template;

/// The process that takes the lock and writes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Holder {
    /// Program and arguments.
    pub command: Vec<Template>,
    /// The gates at which it stands. Those that a scenario does not need are opened as soon as it stands there.
    pub gates: Vec<GateName>,
    /// Further arguments for scenarios that need a holder of another kind.
    #[serde(default)]
    pub with: Variants,
}

/// A point of its work at which a holder can be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GateName {
    /// It was granted the lock, and has not been in touch with the resource.
    AfterGrant,
    /// It has read what its write depends on.
    AfterRead,
    /// Its next step is to send its write. A holder that writes more than once stands there before each.
    BeforeSend,
    /// Its write was answered inside its own transaction, and its next step is COMMIT.
    BeforeCommit,
}

impl GateName {
    /// Every gate, in the order of a holder's work.
    pub const ALL: [GateName; 4] = [
        GateName::AfterGrant,
        GateName::AfterRead,
        GateName::BeforeSend,
        GateName::BeforeCommit,
    ];

    /// The name that a holder writes, such as `before-send`.
    pub fn as_str(self) -> &'static str {
        match self {
            GateName::AfterGrant => "after-grant",
            GateName::AfterRead => "after-read",
            GateName::BeforeSend => "before-send",
            GateName::BeforeCommit => "before-commit",
        }
    }
}

impl fmt::Display for GateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Arguments that make a holder behave as a scenario needs it. They are put after those of its command.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variants {
    /// Its work has two parts, each a write of its own under the same grant with an id of its own. It leaves out what it has
    /// read to be done, stands at `before-send` before each part, and presents the second whatever the first was answered.
    pub again: Option<Vec<Template>>,
    /// Before it stands at `before-send` it has put token, grant and write into the file `{journal}`, durably. Started with
    /// that file present it takes no lock, raises and reads nothing, and presents that write.
    pub journal: Option<Vec<Template>>,
    /// It reads without having raised the mark before: the mistake that *fence, then read* is about.
    pub unraised: Option<Vec<Template>>,
    /// Its work has at least as many parts as a write has bytes, each a write of its own with an id of its own, all of one
    /// length and each on a connection of its own. It stands at `before-send` before each, and goes on to the next without
    /// waiting for an answer.
    pub sweep: Option<Vec<Template>>,
    /// It has the resource accept its write for later: the request of the front's form is answered 202. It keeps its lock
    /// until it knows what came of that.
    pub later: Option<Vec<Template>>,
    /// It speaks HTTP/2 to the resource, from the first byte on. What a run's transport asks for, and no scenario.
    pub http2: Option<Vec<Template>>,
}

impl Variants {
    /// The arguments of one kind.
    pub fn of(&self, variant: Variant) -> Option<&[Template]> {
        match variant {
            Variant::Again => self.again.as_deref(),
            Variant::Journal => self.journal.as_deref(),
            Variant::Unraised => self.unraised.as_deref(),
            Variant::Sweep => self.sweep.as_deref(),
            Variant::Later => self.later.as_deref(),
            Variant::Http2 => self.http2.as_deref(),
        }
    }
}

/// A kind of holder that some scenarios, or a transport, need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Variant {
    /// [`Variants::again`].
    Again,
    /// [`Variants::journal`].
    Journal,
    /// [`Variants::unraised`].
    Unraised,
    /// [`Variants::sweep`].
    Sweep,
    /// [`Variants::later`].
    Later,
    /// [`Variants::http2`].
    Http2,
}

impl Variant {
    /// Every kind.
    pub const ALL: [Variant; 6] = [
        Variant::Again,
        Variant::Journal,
        Variant::Unraised,
        Variant::Sweep,
        Variant::Later,
        Variant::Http2,
    ];

    /// Its name in `with`, such as `again`.
    pub fn as_str(self) -> &'static str {
        match self {
            Variant::Again => "again",
            Variant::Journal => "journal",
            Variant::Unraised => "unraised",
            Variant::Sweep => "sweep",
            Variant::Later => "later",
            Variant::Http2 => "http2",
        }
    }
}
