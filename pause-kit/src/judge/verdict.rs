//! What the judge says.

use std::fmt;

use crate::history::{Outcome, TokenNumber};

/// The judge's finding about one half.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// What became of each attempt, in the order of the header. `None` when that cannot be told, or when it was accepted
    /// wrongly.
    pub outcomes: Vec<Option<Outcome>>,
    /// How the last attempt that was refused was refused: each is judged alike, and one is enough to be shown. `None` when
    /// none was.
    pub refusal: Option<SeenRefusal>,
    /// Every invariant that was broken, once a key and cause, in the order of their numbers.
    pub violations: Vec<Violation>,
    /// What went wrong with the guarded data, in plain words. `None` when nothing did.
    pub corruption: Option<String>,
}

impl Judgement {
    /// What became of the attempts, in their order, such as `REF` or `LEG; REF; LEG`, with `?` for one of which it cannot be
    /// told. More than four alike in a row are counted: `CLO x21; LEG`. `None` when it can be told of none.
    pub fn outcome(&self) -> Option<String> {
        let shown = |outcome: &Option<Outcome>| outcome.map_or("?".to_owned(), |told| told.to_string());
        let in_a_row = self.outcomes.chunk_by(|one, other| one == other);
        let told = in_a_row.map(|alike| match alike {
            [outcome, _, _, _, _, ..] => format!("{} x{}", shown(outcome), alike.len()),
            few => few.iter().map(shown).collect::<Vec<_>>().join("; "),
        });
        let told: Vec<String> = told.collect();
        self.outcomes.iter().any(Option::is_some).then(|| told.join("; "))
    }

    /// Whether this invariant was broken, be it the first one or not.
    pub fn breaks(&self, invariant: Invariant) -> bool {
        self.violations
            .iter()
            .any(|violation| violation.invariant == invariant)
    }
}

/// The verdict. Violated beats the other two: invariants 1 to 14 are judged on whatever happened, before it is asked
/// whether the run counts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// Everything held, and the stale attempt had the outcome that the scenario expects.
    Held,
    /// An invariant was broken; the first one by number.
    Violated(Violation),
    /// The run does not count: it did not go through what the scenario is about, or its record contradicts itself.
    Void(Violation),
    /// Nothing was broken, and the decisive thing cannot be told.
    Inconclusive(String),
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Held => f.write_str("held"),
            Verdict::Violated(violation) => write!(f, "violated {violation}"),
            Verdict::Void(reason) => write!(f, "void {reason}"),
            Verdict::Inconclusive(why) => write!(f, "inconclusive: {why}"),
        }
    }
}

/// One broken invariant, and the lines that show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub invariant: Invariant,
    /// What happened, in plain words.
    pub why: String,
    /// The lines of the history that show it, the header being line 1. Empty where something is missing.
    pub lines: Vec<usize>,
}

impl Violation {
    pub(super) fn new(invariant: Invariant, why: impl Into<String>, lines: &[usize]) -> Violation {
        Violation {
            invariant,
            why: why.into(),
            lines: lines.to_vec(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.invariant, self.why)
    }
}

/// A refusal of the stale attempt, as it stood on the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenRefusal {
    /// The token presented, from the DETAIL.
    pub presented: Option<TokenNumber>,
    /// The mark that it met, from the DETAIL.
    pub seen: Option<TokenNumber>,
    /// The SQLSTATE that the database answered.
    pub sqlstate: Option<String>,
    /// The HTTP status that the resource answered, where there was one.
    pub status: Option<u16>,
}

macro_rules! invariants {
    ($( $(#[$doc:meta])* $kind:ident = $number:literal $name:literal, )*) => {
        /// What must hold. The numbers are names: they have no order of weight.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Invariant {
            $( $(#[$doc])* $kind = $number, )*
        }

        impl Invariant {
            /// Every invariant, in the order of the numbers.
            pub const ALL: &'static [Invariant] = &[$(Invariant::$kind),*];

            /// The name.
            pub fn name(self) -> &'static str {
                match self {
                    $(Invariant::$kind => $name,)*
                }
            }
        }
    };
}

invariants! {
    /// No committed write or admission has a smaller token than one committed before it.
    Order = 1 "order",
    /// Nothing that began after a newer grant's contact had ended is accepted.
    RealTimeRefusal = 2 "real-time refusal",
    /// Nothing that was committed after a newer grant's contact had ended is accepted, whenever it was sent.
    DelayedPacket = 3 "delayed packet",
    /// Nothing ever shows a refused id.
    NoEffect = 4 "no effect",
    /// No rightful holder is refused by the fence.
    NoSpuriousRefusal = 5 "no spurious refusal",
    /// In commit order each grant has one unbroken run.
    Contiguity = 6 "contiguity",
    /// Equal tokens have equal grants, and whatever is accepted belongs to a grant that the store made.
    Identity = 7 "identity",
    /// The store grants one after the other, with strictly increasing tokens.
    Grants = 8 "grants",
    /// One order of all operations explains every answer.
    Linearizable = 9 "linearizable",
    /// An id has one effect and one answer.
    Idempotency = 10 "idempotency",
    /// The mark never falls, and is no lower than any acknowledged token.
    DurableMark = 11 "durable mark",
    /// Balances are the fold of the accepted writes.
    Ledger = 12 "ledger",
    /// The successor is not kept waiting beyond the bound.
    BoundedBlock = 13 "bounded block",
    /// The stale attempt is answered as stale, exactly.
    Reason = 14 "reason",
    /// The run went through what the scenario is about.
    Exercised = 15 "exercised",
    /// All times come from one clock.
    OneClock = 16 "one clock",
    /// What clients saw and what the commit order says agree. Where they do not, one of the two records is wrong, and
    /// neither can be believed alone.
    Agreement = 17 "agreement",
    /// No write rests on a read that misses what another grant had written by then. Without it every token may be in order
    /// and an acknowledged write is lost all the same: *fence, then read* is what keeps it.
    LostUpdate = 18 "lost update",
}

impl Invariant {
    /// The number, 1 ..= 16. `None` for the agreement of the two checks, which is no invariant of the resource's, and for lost
    /// updates, which the holder must keep as well.
    pub fn number(self) -> Option<u8> {
        (self as u8 <= 16).then_some(self as u8)
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number() {
            Some(number) => write!(f, "{number} {}", self.name()),
            None => f.write_str(self.name()),
        }
    }
}
