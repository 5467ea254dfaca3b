//! Lost updates: a write that rests on a read which misses what another had written by then.

use super::commits::by_id;
use super::facts::Facts;
use super::verdict::{Invariant, Violation};
use crate::history::{Change, GuardForm};

/// Every committed write whose holder's last read before it misses a write of another grant that was committed before it.
/// A holder that has read nothing rests on nothing. Under the column guard reads show the last writer alone, so that nothing
/// can be missed in them.
pub(super) fn check(facts: &Facts<'_>) -> Vec<Violation> {
    if facts.run.guard != GuardForm::Mark {
        return Vec::new();
    }
    let mut found = Vec::new();
    for op in facts.ops.iter().filter(|op| op.is_write()) {
        let (class, key) = (&op.request.class, &op.request.key);
        let Some(write) = op.id().and_then(|id| by_id(facts, class, key, id)) else {
            continue;
        };
        let own = facts.reads.iter().filter(|read| {
            let of_key = read.body.class == *class && read.body.key == *key;
            of_key && read.body.by == op.request.holder && read.at <= op.began
        });
        let Some(read) = own.max_by_key(|read| read.at) else {
            continue;
        };
        let missed = facts.commits.iter().find_map(|commit| match &commit.body.change {
            Change::Write {
                class: c,
                key: k,
                id,
                grant,
                ..
            } if c == class && k == key && *grant != op.request.grant => {
                let before = commit.body.order < write.body.order;
                let missed = before && !read.body.ids.contains(id);
                missed.then_some((commit.line, id, grant))
            }
            _ => None,
        });
        if let Some((line, id, grant)) = missed {
            let (writer, other) = (
                facts.who(op.request.grant.as_deref()),
                facts.who(grant.as_deref()),
            );
            let why = format!(
                "{} of {writer} was written from a read that missed {id} of {other}",
                op.request.op
            );
            found.push(Violation::new(
                Invariant::LostUpdate,
                why,
                &[read.line, line, write.line],
            ));
        }
    }
    found
}
