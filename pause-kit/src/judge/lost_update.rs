//! Lost updates: a write that rests on a read which misses what another had written by then.

use hashbrown::{HashMap, HashSet};

use super::facts::{Facts, Guarded, Seen};
use super::verdict::{Invariant, Violation};
use crate::history::{Change, GuardForm, Read};

/// Every committed write whose holder's last read before it misses a write of another grant that was committed before it.
/// A holder that has read nothing rests on nothing. Under the column guard reads show the last writer alone, so that nothing
/// can be missed in them.
pub(super) fn check(facts: &Facts<'_>) -> Vec<Violation> {
    if facts.run.guard != GuardForm::Mark {
        return Vec::new();
    }
    let mut found = Vec::new();
    let logs = Logs::of(facts);
    for op in facts.ops.iter().filter(|op| op.is_write()) {
        let (class, key) = (&op.request.class, &op.request.key);
        let Some(write) = op.id().and_then(|id| facts.committed(class, key, id)) else {
            continue;
        };
        let Some(read) = logs.last_read(op) else {
            continue;
        };
        if let Some((line, id, grant)) = logs.missed(read, op.request.grant.as_deref(), write.body.order) {
            let (writer, other) = (facts.who(op.request.grant.as_deref()), facts.who(grant));
            let why = format!(
                "{} of {writer} was written from a read that missed {id} of {other}",
                op.request.op
            );
            found.push(Violation::new(
                Invariant::LostUpdate,
                why,
                &[read.seen.line, line, write.line],
            ));
        }
    }
    found
}

/// A committed write.
struct Written<'h> {
    order: u64,
    line: usize,
    id: &'h str,
    grant: Option<&'h str>,
}

/// A read, and what it showed.
struct Shown<'h> {
    seen: Seen<'h, Read>,
    ids: HashSet<&'h str>,
    /// How many writes from the first on it shows without a gap.
    whole: usize,
}

/// What was written to each key, in commit order, and what each holder read of it, in the order of time.
struct Logs<'h> {
    writes: HashMap<(&'h str, &'h str), Vec<Written<'h>>>,
    reads: HashMap<(&'h str, &'h str, &'h str), Vec<Shown<'h>>>,
}

impl<'h> Logs<'h> {
    fn of(facts: &Facts<'h>) -> Logs<'h> {
        let mut writes: HashMap<_, Vec<Written<'h>>> = HashMap::new();
        for commit in &facts.commits {
            if let Change::Write {
                class,
                key,
                id,
                grant,
                ..
            } = &commit.body.change
            {
                let of = (class.as_str(), key.as_str());
                writes.entry(of).or_default().push(Written {
                    order: commit.body.order,
                    line: commit.line,
                    id,
                    grant: grant.as_deref(),
                });
            }
        }
        let mut reads: HashMap<_, Vec<Shown<'h>>> = HashMap::new();
        for seen in facts.reads.iter().copied() {
            let body = seen.body;
            let ids: HashSet<&str> = body.ids.iter().map(String::as_str).collect();
            let of_key = writes.get(&(body.class.as_str(), body.key.as_str()));
            let mut of_key = of_key.into_iter().flatten();
            let whole = of_key.position(|write| !ids.contains(write.id));
            let whole = whole.unwrap_or(usize::MAX);
            let of = (body.class.as_str(), body.key.as_str(), body.by.as_str());
            reads.entry(of).or_default().push(Shown { seen, ids, whole });
        }
        for of_holder in reads.values_mut() {
            of_holder.sort_by_key(|read| read.seen.at);
        }
        Logs { writes, reads }
    }

    /// The last read of its holder that was answered when the operation began.
    fn last_read(&self, op: &Guarded<'h>) -> Option<&Shown<'h>> {
        let request = op.request;
        let of = (
            request.class.as_str(),
            request.key.as_str(),
            request.holder.as_str(),
        );
        let reads = self.reads.get(&of)?;
        let until = reads.partition_point(|read| read.seen.at <= op.began);
        reads[..until].last()
    }

    /// The first write of another grant that was committed before `order` and that the read did not show.
    fn missed(
        &self,
        read: &Shown<'h>,
        grant: Option<&str>,
        order: u64,
    ) -> Option<(usize, &'h str, Option<&'h str>)> {
        let body = read.seen.body;
        let writes = self.writes.get(&(body.class.as_str(), body.key.as_str()))?;
        let mut rest = writes.iter().skip(read.whole);
        let missed = |write: &&Written<'_>| write.grant != grant && !read.ids.contains(write.id);
        let missed = rest
            .by_ref()
            .take_while(|write| write.order < order)
            .find(missed)?;
        Some((missed.line, missed.id, missed.grant))
    }
}
