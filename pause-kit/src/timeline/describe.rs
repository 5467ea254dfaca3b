//! One line of a history in words, with everything in full: what a reader compares with the file.

use super::words::{clock, count};
use crate::history::{Alteration, Answerer, At, Change, Event, Presented, ProbeKind, Reply, Work};

/// What the line says.
pub(super) fn describe(event: &Event) -> String {
    match event {
        Event::Grant(grant) => format!(
            "{} of {} granted to {}: token {}, grant {}",
            grant.key, grant.class, grant.holder, grant.token, grant.grant
        ),
        Event::LeaseEnd(end) => format!("the lease of grant {} ended: {}", end.grant, end.cause),
        Event::Stop(stop) => format!(
            "{} (pid {}) stopped by {}: asked at {}, {} of {} confirmed, {}; CPU time {} ns before, {} ns after",
            stop.target,
            stop.pid,
            stop.by.as_str(),
            clock(stop.asked),
            stop.confirmed,
            count(usize::try_from(stop.tasks).unwrap_or(usize::MAX), "task"),
            when(stop.resumed, "resumed"),
            stop.cpu_before,
            stop.cpu_after
        ),
        Event::Unstopped(one) => format!(
            "{} could not be stopped: task {} of process {} stayed in state {}",
            one.target, one.tid, one.pid, one.state
        ),
        Event::Hold(hold) => format!(
            "{}: {} let through, the rest held on the path, {}",
            hold.op,
            bytes(hold.byte),
            when(hold.released, "released")
        ),
        Event::Queued(queued) => {
            format!(
                "{}: {} unread in the socket of {}",
                queued.op,
                bytes(queued.bytes),
                queued.target
            )
        }
        Event::Uncommitted(commit) => format!(
            "{}: the COMMIT of its transaction held on the path, {}",
            commit.op,
            when(commit.released, "let go")
        ),
        Event::Unheard(one) => format!(
            "{} of a keepalive of {} unread in the socket of {}",
            bytes(one.bytes),
            one.holder,
            one.target
        ),
        Event::Waiting(waiting) => format!(
            "{}: its backend {} waits for backend {} of {}",
            waiting.op, waiting.backend, waiting.blocked_by, waiting.on
        ),
        Event::Killed(killed) => format!("{} (pid {}) killed", killed.target, killed.pid),
        Event::Restarted(again) => format!("{} started again as pid {}", again.target, again.pid),
        Event::Started(started) => format!("{} started as pid {}", started.target, started.pid),
        Event::Withheld(answer) => format!(
            "{}: the answer of {} held on the path, {}",
            answer.op,
            match answer.by {
                Answerer::Database => "PostgreSQL to the resource",
                Answerer::Resource => "the resource",
            },
            when(answer.released, "let go")
        ),
        Event::Relay(relay) => {
            let how = altered(relay.how).map_or_else(String::new, |how| format!(", {how}"));
            format!("{}: the path sends {} again{how}", relay.op, relay.of)
        }
        Event::Request(request) => format!(
            "{}: {} {} {} of {}, presenting {}, {}",
            request.op,
            request.holder,
            match request.work {
                Work::Raise => "raises the mark of",
                Work::Write => "writes",
            },
            request.key,
            request.class,
            presented(&request.presented),
            when(request.sent, "sent whole")
        ),
        Event::Answer(answer) => format!("{} is answered: {}", answer.op, reply(&answer.reply)),
        Event::Unanswered(lost) => format!("{} gets no answer: {}", lost.op, lost.why),
        Event::DbAnswer(answer) => format!(
            "PostgreSQL answers {}: {}",
            answer.op.as_ref().map_or("another request", |op| op.as_str()),
            sql(
                answer.sqlstate.as_deref(),
                answer.detail.as_deref(),
                answer.tag.as_deref()
            )
        ),
        Event::Read(read) => format!(
            "{} reads {} of {} from {} on: {}",
            read.by,
            read.key,
            read.class,
            clock(read.began),
            writes(&read.ids)
        ),
        Event::Commit(commit) => format!(
            "commit {} (transaction {}): {}",
            commit.order,
            commit.xid,
            change(&commit.change)
        ),
        Event::Probe(probe) => format!(
            "a question to the guard on key {} of {}, presenting {}: {}; answered {}",
            probe.key,
            probe.class,
            presented(&probe.presented),
            asks(probe.probe),
            reply(&probe.reply)
        ),
        Event::Final(last) => {
            let marks = last
                .marks
                .iter()
                .map(|mark| format!("; mark of {}: {}", mark.key, mark.token));
            let balances = last
                .balances
                .iter()
                .map(|(account, balance)| format!("; balance of {account}: {balance}"));
            marks.chain(balances).fold(
                format!("read back at the end: {}", writes(&last.ids)),
                |text, part| text + &part,
            )
        }
    }
}

/// What the path changed, in words that follow a request.
pub(super) fn altered(how: Alteration) -> Option<&'static str> {
    Some(match how {
        Alteration::Nothing => return None,
        Alteration::Twice => "with its successor's claim beside its own",
        Alteration::Stripped => "without its Fencing-Token, as a proxy takes out what Connection names",
        Alteration::EqualToken => "with its successor's token and its own grant",
        Alteration::Malformed => "with what is no token",
        Alteration::Missing => "without a whole token",
    })
}

/// What a question is about, and its right answer.
fn asks(probe: ProbeKind) -> &'static str {
    match probe {
        ProbeKind::Bystander => "nothing newer was there, so it must be applied",
        ProbeKind::OtherClass => "nothing newer was in this class, so it must be applied",
        ProbeKind::EqualAgain => "the mark's own token and grant again, which must be applied",
        ProbeKind::Prepare => "it sets the stage for the next, and must be applied",
        ProbeKind::Larger => "a larger token, which must be applied",
        ProbeKind::RolledBack => "its transaction is then rolled back; it must be admitted",
        ProbeKind::AfterRollback => "a larger one was rolled back, so it must be applied",
        ProbeKind::Smaller => "a smaller token after a larger one, which must be refused as stale",
        ProbeKind::Collision => "the mark's token with another grant, which must be refused as a collision",
        ProbeKind::OutsideRange => {
            "a token outside every registered range, which must be refused as of an unknown epoch"
        }
        ProbeKind::MissingToken => "no token, which must be refused as missing",
        ProbeKind::MissingGrant => "no grant id, which must be refused as missing",
        ProbeKind::BelowOne => "a number below 1, which must be refused",
        ProbeKind::Malformed => "text that is no token, which must be refused",
        ProbeKind::UnknownClass => "a class that nobody declared, which must be refused",
        ProbeKind::Raise => "a raise with a larger token, which must be applied",
        ProbeKind::StaleRaise => "a raise with a smaller token, which must be refused as stale",
        ProbeKind::CollidingRaise => {
            "a raise with the mark's token and another grant, which must be refused as a collision"
        }
        ProbeKind::RaiseOutsideRange => {
            "a raise with a token outside every registered range, which must be refused"
        }
        ProbeKind::RaiseWithoutToken => "a raise without a token, which must be refused as missing",
        ProbeKind::HeldToTheEnd => "another admission is not yet committed, so it must be blocked",
        ProbeKind::BoundedWait => {
            "another admission is not yet committed, so it must be blocked within the guard's bound"
        }
        ProbeKind::Unheld => "another key is held, so it must be applied at once",
        ProbeKind::Bounds => "whether an idle transaction is bounded, and only it",
        ProbeKind::Durable => "whether its commit waits to be durable",
        ProbeKind::Admitted => "its key was admitted in its transaction, so it must be applied",
        ProbeKind::Forgotten => "its key was not admitted, so it must be refused as missing",
        ProbeKind::WrongKey => "another key was admitted, so it must be refused",
        ProbeKind::Observed => "its class only observes, so it must be applied, and nobody waits",
        ProbeKind::Switch => "a write that was let through is not yet committed, so it must be blocked",
        ProbeKind::WrittenDown => "whether what was let through is written down",
        ProbeKind::Crossed => "another batch has its keys in the opposite order; both must be applied",
        ProbeKind::StaleBatch => {
            "one of its tokens is smaller, so it must be refused as stale, naming that key"
        }
        ProbeKind::Stopped => "admissions are stopped, so it must be refused as of a history in doubt",
        ProbeKind::OldSnapshot => {
            "in a snapshot from before the last commit, where it must be refused or fail"
        }
    }
}

fn when(at: Option<At>, what: &str) -> String {
    at.map_or_else(
        || format!("never {what}"),
        |at| format!("{what} at {}", clock(at)),
    )
}

fn bytes(number: u64) -> String {
    match number {
        1 => "1 byte".to_owned(),
        _ => format!("{number} bytes"),
    }
}

fn presented(presented: &Presented) -> String {
    let token = presented
        .token
        .as_ref()
        .map_or("no token".to_owned(), |token| format!("token {token}"));
    match &presented.grant {
        Some(grant) => format!("{token}, grant {grant}"),
        None => token,
    }
}

fn writes(ids: &[String]) -> String {
    match ids {
        [] => "no write".to_owned(),
        [one] => format!("write {one}"),
        _ => format!("writes {}", ids.join(", ")),
    }
}

/// What was answered, as it stood on the wire.
pub(super) fn reply(reply: &Reply) -> String {
    match reply {
        Reply::Http {
            status,
            problem,
            stored,
        } => {
            let problem = problem.iter().map(|problem| format!(", {problem}"));
            let stored = stored.then(|| ", the stored answer".to_owned());
            problem
                .chain(stored)
                .fold(format!("HTTP {status}"), |text, part| text + &part)
        }
        Reply::Sql {
            sqlstate,
            detail,
            tag,
        } => sql(sqlstate.as_deref(), detail.as_deref(), tag.as_deref()),
    }
}

fn sql(sqlstate: Option<&str>, detail: Option<&str>, tag: Option<&str>) -> String {
    let parts: Vec<&str> = [sqlstate, detail, tag].into_iter().flatten().collect();
    match parts.is_empty() {
        true => "nothing".to_owned(),
        false => parts.join(", "),
    }
}

fn change(change: &Change) -> String {
    let of = |grant: &Option<String>| {
        grant
            .iter()
            .map(|grant| format!(", grant {grant}"))
            .collect::<String>()
    };
    match change {
        Change::Admission {
            class,
            key,
            token,
            grant,
        } => {
            format!("the mark of {key} in {class} is token {token}{}", of(grant))
        }
        Change::Write {
            class,
            key,
            id,
            grant,
            token,
            job,
            moves,
        } => {
            let token = token.iter().map(|token| format!(", token {token}"));
            let job = job.iter().map(|job| format!(", for {job}"));
            let moves = moves
                .iter()
                .map(|moved| format!(", {} {:+}", moved.account, moved.amount));
            let more: String = token.chain(job).chain(moves).collect();
            format!("write {id} of {key} in {class}{}{more}", of(grant))
        }
    }
}
