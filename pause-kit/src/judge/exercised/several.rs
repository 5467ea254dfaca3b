//! Scenarios with several attempts.

use super::pause::{Pause, attempted_after, granted_within, raised_within, stop_before, takeover, void};
use crate::history::{At, ProbeKind};
use crate::judge::facts::{Facts, Granted, Guarded};
use crate::judge::said::{Said, of_probe};
use crate::judge::verdict::Violation;

/// Three attempts, each after a stop of its holder. In the first stop the lease ended and a successor was granted, which was
/// not in touch before the attempt was answered. In the second that successor raised the mark and read. In the third its own
/// lease ended, a third holder was granted, and an admission of that one was rolled back; it was never in touch itself.
pub(super) fn legal_gap(facts: &Facts<'_>) -> Result<(), Violation> {
    let [first, second, third] = attempts(facts)?;
    let (stale, next) = (grant_of(facts, first)?, grant_of(facts, third)?);
    if first.request.grant != second.request.grant || stale.record.grant == next.record.grant {
        return Err(void(
            "the third attempt is not the successor's own",
            &[third.line],
        ));
    }
    let pauses = [
        stop_before(facts, first)?,
        stop_before(facts, second)?,
        stop_before(facts, third)?,
    ];
    is_the_stale_one(facts, stale)?;
    takeover(facts, stale, pauses[0])?;
    let of_next = |op: &&Guarded<'_>| op.request.grant.as_deref() == Some(next.record.grant.as_str());
    let answered = answered(first)?;
    if let Some(early) = facts.ops.iter().filter(of_next).find(|op| op.began <= answered) {
        let why = format!(
            "the successor was in touch before {} was answered",
            first.request.op
        );
        return Err(void(why, &[early.line, first.line]));
    }
    if pauses[1].from < answered {
        return Err(void("there was no second stop", &[pauses[1].line]));
    }
    raised_within(facts, pauses[1])?;
    let by_next = facts
        .reads
        .iter()
        .filter(|read| read.body.by == next.record.holder);
    if !by_next
        .into_iter()
        .any(|read| pauses[1].contains(read.body.began) && pauses[1].contains(read.at))
    {
        return Err(void(
            "the successor read nothing inside the second pause",
            &[pauses[1].line],
        ));
    }
    takeover(facts, next, pauses[2])?;
    let last = granted_within(facts, next, pauses[2])
        .ok_or_else(|| void("no third holder was granted the key", &[pauses[2].line]))?;
    let rolled_back = facts.probes.iter().any(|probe| {
        let of_last = probe.body.presented.grant.as_deref() == Some(last.record.grant.as_str());
        let of_key = probe.body.class == last.record.class && probe.body.key == last.record.key;
        let admitted = of_probe(probe.body) == Said::Accepted;
        probe.body.probe == ProbeKind::RolledBack
            && of_last
            && of_key
            && admitted
            && pauses[2].contains(probe.at)
    });
    if !rolled_back {
        return Err(void(
            "no admission of the third holder was rolled back inside the pause",
            &[pauses[2].line],
        ));
    }
    let mut ops = facts.ops.iter();
    match ops.find(|op| op.request.grant.as_deref() == Some(last.record.grant.as_str())) {
        Some(op) => Err(void("the third holder was in touch itself", &[op.line])),
        None => Ok(()),
    }
}

/// Four attempts of two holders, first and second and then second and first, each after a stop of its holder. In the first
/// two stops the leases ended in turn; in both pairs of stops a third holder wrote, and the attempts were made in turn.
pub(super) fn in_turn(facts: &Facts<'_>) -> Result<(), Violation> {
    let all: [&Guarded<'_>; 4] = attempts(facts)?;
    let [first, second, again, last] = all;
    let grants = [grant_of(facts, first)?, grant_of(facts, second)?];
    let same = |one: &Guarded<'_>, other: &Guarded<'_>| one.request.grant == other.request.grant;
    if !same(first, last) || !same(second, again) || same(first, second) {
        return Err(void(
            "the attempts are not in both orders",
            &[first.line, last.line],
        ));
    }
    for pair in all.windows(2) {
        if pair[1].began < answered(pair[0])? {
            let why = format!(
                "{} began before {} was answered",
                pair[1].request.op, pair[0].request.op
            );
            return Err(void(why, &[pair[0].line, pair[1].line]));
        }
    }
    let mut pauses = Vec::new();
    for attempt in all {
        let pause = stop_before(facts, attempt)?;
        attempted_after(attempt, pause)?;
        pauses.push(pause);
    }
    is_the_stale_one(facts, grants[0])?;
    takeover(facts, grants[0], pauses[0])?;
    takeover(facts, grants[1], pauses[1])?;
    let third = granted_within(facts, grants[1], pauses[1])
        .filter(|third| pauses[0].contains(third.at))
        .ok_or_else(|| {
            void(
                "no third holder was granted the key while both stood",
                &[pauses[1].line],
            )
        })?;
    for (one, other, earlier) in [(0, 1, None), (2, 3, Some(second))] {
        let both = Pause {
            from: pauses[one].from.max(pauses[other].from),
            to: pauses[one].to.min(pauses[other].to),
            line: pauses[one].line,
        };
        if let Some(earlier) = earlier
            && both.from < answered(earlier)?
        {
            return Err(void("the two were not stopped again", &[both.line]));
        }
        wrote(facts, third, both)?;
    }
    Ok(())
}

fn attempts<'f, 'h, const N: usize>(facts: &'f Facts<'h>) -> Result<[&'f Guarded<'h>; N], Violation> {
    let attempts = &facts.run.attempts;
    let mut made = Vec::new();
    for attempt in attempts {
        let op = facts.op(&attempt.op);
        made.push(op.ok_or_else(|| void(format!("{} was never made", attempt.op), &[]))?);
    }
    made.try_into().map_err(|_| {
        void(
            format!("{N} attempts belong to this, and {} are named", attempts.len()),
            &[],
        )
    })
}

pub(super) fn grant_of<'h>(facts: &Facts<'h>, op: &Guarded<'_>) -> Result<Granted<'h>, Violation> {
    let grant = op.request.grant.as_ref();
    let mut grants = facts.grants.iter().copied();
    grants
        .find(|granted| Some(&granted.record.grant) == grant)
        .ok_or_else(|| {
            void(
                format!("the store never made the grant of {}", op.request.op),
                &[op.line],
            )
        })
}

fn is_the_stale_one(facts: &Facts<'_>, first: Granted<'_>) -> Result<(), Violation> {
    match facts.run.stale_grant.as_ref() == Some(&first.record.grant) {
        true => Ok(()),
        false => Err(void(
            "the first attempt is not of the grant that goes stale",
            &[first.line],
        )),
    }
}

fn answered(op: &Guarded<'_>) -> Result<At, Violation> {
    let answer = op.answer.map(|answer| answer.at);
    answer.ok_or_else(|| void(format!("{} was not answered", op.request.op), &[op.line]))
}

fn wrote(facts: &Facts<'_>, third: Granted<'_>, pause: Pause) -> Result<(), Violation> {
    let wrote = facts.ops.iter().any(|op| {
        let own = op.request.grant.as_deref() == Some(third.record.grant.as_str());
        own && op.is_write() && op.said() == Said::Accepted && pause.contains_all_of(op)
    });
    match wrote {
        true => Ok(()),
        false => Err(void(
            "the third holder did not write while both stood",
            &[pause.line],
        )),
    }
}
