//! The statements that this store sends: each calls one function of `fence-lock/sql/`.

use std::fmt::Write as _;

use fence_core::{ClassName, Key, TierName, Ttl};

use crate::store::{Attempt, Minted, SessionId};

/// How long one statement may wait for a row, and how long it may run: less than the answer is waited for.
const BEFORE: &str = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE; SET LOCAL lock_timeout = '2s'; \
                      SET LOCAL statement_timeout = '4s'; ";

pub(super) fn open(session: &SessionId, ttl: Ttl) -> String {
    let milliseconds = ttl.as_duration().as_millis();
    call(&format!(
        "fence_lock.open({}, {milliseconds})",
        literal(session.as_str())
    ))
}

pub(super) fn renew(session: &SessionId) -> String {
    call(&format!("fence_lock.renew({})", literal(session.as_str())))
}

pub(super) fn close(session: &SessionId) -> String {
    call(&format!("fence_lock.close({})", literal(session.as_str())))
}

/// The row is outcome, token, retry_ms, recorded, actual.
pub(super) fn acquire(attempt: &Attempt, tier: &TierName, channel: Option<&str>) -> String {
    let channel = channel.map_or_else(|| "NULL".to_owned(), literal);
    call(&format!(
        "fence_lock.acquire({}, {}, {channel})",
        named(attempt),
        literal(tier.as_str())
    ))
}

pub(super) fn confirm(attempt: &Attempt, minted: Minted) -> String {
    call(&format!(
        "fence_lock.confirm({}, {})",
        named(attempt),
        minted.token
    ))
}

pub(super) fn release(attempt: &Attempt, minted: Minted) -> String {
    call(&format!(
        "fence_lock.release({}, {})",
        named(attempt),
        minted.token
    ))
}

pub(super) fn give_up(attempt: &Attempt) -> String {
    call(&format!(
        "fence_lock.give_up({}, {})",
        named(attempt),
        attempt.may_land()
    ))
}

pub(super) fn init(tier: &TierName, epoch: u16, reason: &str) -> String {
    call(&format!(
        "fence_lock.init({}, {epoch}, {})",
        literal(tier.as_str()),
        literal(reason)
    ))
}

pub(super) const EPOCH: &str =
    "SELECT epoch, identity, tier, reason FROM fence_lock.epoch ORDER BY epoch DESC LIMIT 1";

pub(super) fn holder(class: &ClassName, key: &Key) -> String {
    let (class, key) = (literal(class.as_str()), literal(key.as_str()));
    format!("SELECT grant_id, session FROM fence_lock.held WHERE class = {class} AND key = {key}")
}

pub(super) fn waiters(class: &ClassName, key: &Key) -> String {
    let (class, key) = (literal(class.as_str()), literal(key.as_str()));
    format!("SELECT count(*) FROM fence_lock.waiting WHERE class = {class} AND key = {key}")
}

/// Every lock that is held or waited for: its holder first, then its waiters in line. The times are in milliseconds since 1970.
pub(super) const LOCKS: &str = "SELECT class, key, grant_id, session, token, \
    (extract(epoch FROM granted_at) * 1000)::bigint, 0 AS number FROM fence_lock.held \
    UNION ALL SELECT class, key, grant_id, session, NULL, (extract(epoch FROM since) * 1000)::bigint, number \
    FROM fence_lock.waiting ORDER BY 1, 2, 7";

/// The arguments by which every function knows an attempt.
fn named(attempt: &Attempt) -> String {
    let mut keys = String::from("ARRAY[");
    for (number, key) in attempt.keys().iter().enumerate() {
        let comma = if number == 0 { "" } else { ", " };
        write!(keys, "{comma}{}", literal(key.as_str())).expect("a text takes what is written");
    }
    keys.push(']');
    format!(
        "{}, {}, {keys}, {}",
        literal(attempt.session().as_str()),
        literal(attempt.class().as_str()),
        literal(attempt.grant_id().as_str())
    )
}

fn call(function: &str) -> String {
    format!("{BEFORE}SELECT * FROM {function}")
}

/// A text as a literal that means the same under every setting of the server.
fn literal(text: &str) -> String {
    format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use fence_core::{GrantId, Token};

    use super::*;
    use crate::keys::Keys;

    fn attempt() -> Attempt {
        let key = |text: &str| Key::text(text).expect("a key");
        Attempt::new(
            SessionId::new("5f1c").expect("a session"),
            ClassName::new("paydb.account").expect("a class"),
            Keys::new([key("acct-1"), key(r"o'neil\")]).expect("two keys"),
            GrantId::new("b2f1").expect("a grant id"),
        )
    }

    #[test]
    fn the_statements_are_the_recorded_ones() {
        let (attempt, tier) = (attempt(), TierName::new("entity").expect("a tier"));
        let minted = Minted {
            token: Token::new(281_474_976_710_657).expect("a token"),
        };
        let ttl = Ttl::default();
        let sent = [
            open(attempt.session(), ttl),
            renew(attempt.session()),
            close(attempt.session()),
            acquire(&attempt, &tier, Some("fence_lock_1")),
            acquire(&attempt, &tier, None),
            confirm(&attempt, minted),
            release(&attempt, minted),
            give_up(&attempt),
            init(&tier, 1, "the first"),
            EPOCH.to_owned(),
            holder(attempt.class(), attempt.keys().first()),
            waiters(attempt.class(), attempt.keys().first()),
            LOCKS.to_owned(),
        ];
        let recorded = include_str!("../../tests/emitted/postgres.sql");
        assert_eq!(sent.join(";\n") + ";\n", recorded);
    }

    #[test]
    fn a_literal_holds_whatever_a_key_may_hold() {
        assert_eq!(literal("acct-1"), "E'acct-1'");
        assert_eq!(literal(r"'; DROP TABLE x; --\"), r"E'''; DROP TABLE x; --\\'");
        assert_eq!(literal("é"), "E'é'");
    }
}
