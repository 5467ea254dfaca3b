//! What a storm must not have done, judged from what its writers were told and from what was committed, by the store's own
//! order of its grants; no token is compared.

use std::collections::{BTreeMap, HashMap};

use super::audit::Committed;
use super::guarded::Level;
use super::store::{Resource, token};

/// What one attempt did, or would have done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// It raised the mark.
    Raise,
    /// It added to a sum.
    Write { amount: i64 },
}

/// What a writer was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is committed.
    Applied,
    /// Refused as stale, in these words.
    Stale { detail: String },
    /// Anything else, which must not have happened.
    Failed(String),
}

/// One attempt, from its first try to its answer.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    pub(crate) resource: Resource,
    /// The place of its grant among all grants.
    pub(crate) place: u64,
    pub(crate) entry: String,
    pub(crate) deed: Deed,
    pub(crate) level: Level,
    /// The SQLSTATEs after which the whole transaction was tried again.
    pub(crate) retried: Vec<String>,
    /// Moments of the client's own sequence.
    pub(crate) began: u64,
    pub(crate) ended: u64,
    pub(crate) outcome: Outcome,
}

/// What was found: for each rule how often it was broken, with one example; and what the storm was made of.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) broken: BTreeMap<&'static str, (usize, String)>,
    pub(crate) applied: usize,
    pub(crate) stale: usize,
    /// Writes that began after a newer grant's write had been acknowledged.
    pub(crate) late: usize,
    /// Those of them that were committed.
    pub(crate) late_applied: usize,
    /// By level and SQLSTATE, transactions that were tried again.
    pub(crate) retried: BTreeMap<(Level, String), usize>,
    /// How often one transaction was tried again, at most.
    pub(crate) most_retried: usize,
}

impl Findings {
    fn broke(&mut self, rule: &'static str, example: impl FnOnce() -> String) {
        let (times, _) = self.broken.entry(rule).or_insert_with(|| (0, example()));
        *times += 1;
    }

    /// How often a rule was broken.
    pub(crate) fn times(&self, rule: &str) -> usize {
        self.broken.get(rule).map_or(0, |(times, _)| *times)
    }
}

/// An older grant's write was committed after a newer one's.
pub(crate) const ORDER: &str = "order";
/// A write was committed that began after a newer grant's admission had been acknowledged.
pub(crate) const REAL_TIME: &str = "real-time refusal";
/// A write was committed that was answered otherwise, or not committed, or twice, although it was acknowledged.
pub(crate) const EFFECT: &str = "effect";
/// A write was refused as stale although no newer grant's admission had begun before it ended.
pub(crate) const SPURIOUS: &str = "no spurious refusal";
/// A write was answered neither as applied nor, with the right numbers, as stale.
pub(crate) const REASON: &str = "reason";
/// A sum is not what its entries add up to.
pub(crate) const LEDGER: &str = "ledger";
/// A row bears another token than the grant that it was written under.
pub(crate) const IDENTITY: &str = "identity";

/// Judges a storm. `sums` are the sums that stand at its end.
pub(crate) fn judge(
    attempts: &[Attempt],
    committed: &[Committed],
    sums: &HashMap<Resource, i64>,
) -> Findings {
    let mut findings = Findings::default();
    let mut times_committed: HashMap<&str, usize> = HashMap::new();
    for one in committed {
        *times_committed.entry(&one.entry).or_default() += 1;
    }
    for resource in Resource::all() {
        let own: Vec<&Attempt> = attempts.iter().filter(|one| one.resource == resource).collect();
        answers(&mut findings, &own, &times_committed);
        let own: HashMap<&str, &Attempt> = own.iter().map(|one| (one.entry.as_str(), *one)).collect();
        let order = committed.iter().filter(|one| one.resource == resource);
        commits(&mut findings, &own, order, sums.get(&resource).copied());
    }
    findings
}

/// The newest grant of which an admission was committed and acknowledged before a moment.
struct Acknowledged(Vec<(u64, u64)>);

impl Acknowledged {
    fn of<'a>(attempts: impl Iterator<Item = &'a Attempt>, at: impl Fn(&Attempt) -> u64) -> Self {
        let applied = attempts.filter(|one| one.outcome == Outcome::Applied);
        let mut moments: Vec<(u64, u64)> = applied.map(|one| (at(one), one.place)).collect();
        moments.sort_unstable();
        let mut newest = 0;
        for (_, place) in &mut moments {
            newest = newest.max(*place);
            *place = newest;
        }
        Acknowledged(moments)
    }

    fn before(&self, moment: u64) -> u64 {
        let earlier = self.0.partition_point(|(at, _)| *at < moment);
        earlier.checked_sub(1).map_or(0, |last| self.0[last].1)
    }
}

/// What each writer was told against what the others were, and against whether it was committed.
fn answers(findings: &mut Findings, own: &[&Attempt], times_committed: &HashMap<&str, usize>) {
    let is_write = |one: &&&Attempt| one.deed != Deed::Raise;
    let admitted = Acknowledged::of(own.iter().copied(), |one| one.ended);
    let wrote = Acknowledged::of(own.iter().filter(is_write).copied(), |one| one.ended);
    let begun = Acknowledged::of(own.iter().copied(), |one| one.began);
    for one in own {
        findings.most_retried = findings.most_retried.max(one.retried.len());
        for code in &one.retried {
            *findings.retried.entry((one.level, code.clone())).or_default() += 1;
        }
        let says = || format!("{one:?}");
        let write = is_write(&one);
        let times = times_committed.get(one.entry.as_str()).copied().unwrap_or(0);
        let applied = one.outcome == Outcome::Applied;
        if times != usize::from(write && applied) {
            findings.broke(EFFECT, || format!("{times} times committed: {one:?}"));
        }
        // Whether it is in, nobody says but the log.
        let accepted = if write { times > 0 } else { applied };
        if accepted && admitted.before(one.began) > one.place {
            findings.broke(REAL_TIME, says);
        }
        match &one.outcome {
            Outcome::Applied => {}
            Outcome::Failed(_) => findings.broke(REASON, says),
            Outcome::Stale { detail } => {
                let newest = begun.before(one.ended);
                if newest <= one.place {
                    findings.broke(SPURIOUS, says);
                }
                if !says_so(detail, one, own) {
                    findings.broke(REASON, says);
                }
            }
        }
        if write {
            findings.applied += usize::from(accepted);
            findings.stale += usize::from(matches!(one.outcome, Outcome::Stale { .. }));
            let late = wrote.before(one.began) > one.place;
            findings.late += usize::from(late);
            findings.late_applied += usize::from(late && accepted);
        }
    }
}

/// Whether the words of a refusal name the token of the grant, and that of a newer grant of the same lock.
fn says_so(detail: &str, one: &Attempt, own: &[&Attempt]) -> bool {
    let begin = format!("presented {}, seen ", token(one.place));
    let seen = detail.strip_prefix(&begin).and_then(|seen| seen.parse().ok());
    seen.is_some_and(|seen: u64| {
        own.iter()
            .any(|other| token(other.place) == seen && other.place > one.place)
    })
}

/// The commits of one resource, in their order.
fn commits<'a>(
    findings: &mut Findings,
    own: &HashMap<&str, &Attempt>,
    order: impl Iterator<Item = &'a Committed>,
    at_the_end: Option<i64>,
) {
    let (mut newest, mut sum) = (0, 0);
    for one in order {
        let Some((attempt, amount)) = own
            .get(one.entry.as_str())
            .and_then(|attempt| match attempt.deed {
                Deed::Write { amount } => Some((attempt, amount)),
                Deed::Raise => None,
            })
        else {
            findings.broke(EFFECT, || format!("nobody wrote {one:?}"));
            continue;
        };
        if attempt.place < newest {
            findings.broke(ORDER, || format!("after grant {newest}: {attempt:?}"));
        }
        newest = newest.max(attempt.place);
        if one.token != token(attempt.place) {
            findings.broke(IDENTITY, || format!("{one:?}, of {attempt:?}"));
        }
        sum += amount;
        if one.total != sum {
            findings.broke(LEDGER, || format!("{sum} expected: {one:?}"));
            sum = one.total;
        }
    }
    if at_the_end != Some(sum) {
        findings.broke(LEDGER, || {
            format!("{sum} expected at the end, {at_the_end:?} found")
        });
    }
}
