//! The tables that the cases share, and their words.

use std::error::Error;
use std::fmt::Debug;

use fence_core::{Claim, ClassName, GrantId, Key, Refusal, Token};

use super::{Driver, Shown};
use crate::column::ColumnGuard;
use crate::completed::COMPLETED_TABLE_SQL;
use crate::error::GuardError;
use crate::isolation::Isolation;
use crate::refused::Refused;

const CLASS: &str = "conformance.account";

const TABLES: &str = "
    SELECT fence.declare('conformance.account', 'conformance');
    SELECT fence.register_epoch('conformance', 1);
    CREATE TABLE conformance_entry (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        account text NOT NULL,
        amount bigint NOT NULL,
        revision bigint,
        request text,
        ref bigint REFERENCES conformance_entry DEFERRABLE INITIALLY DEFERRED
    );
    SELECT fence.protect('conformance_entry', 'conformance.account', 'account');
    CREATE TABLE conformance_balance (account text PRIMARY KEY, total bigint NOT NULL);
    INSERT INTO conformance_balance SELECT 'race-' || n, 0 FROM generate_series(0, 9) n;
    SELECT fence.protect('conformance_balance', 'conformance.account', 'account');
    CREATE TABLE conformance_batch (
        id bigint PRIMARY KEY, token bigint NOT NULL DEFAULT 0, total bigint NOT NULL DEFAULT 0);
    SELECT fence.protect_column('conformance_batch', 'conformance.batch', 'id', 'token');
    INSERT INTO conformance_batch (id) SELECT generate_series(1, 40);";

/// The database of a run.
pub(super) struct Bed<C> {
    connect: C,
    pub(super) isolation: Isolation,
}

impl<D: Driver, E: Error, C: AsyncFn() -> Result<D, E>> Bed<C> {
    pub(super) async fn make(connect: C, isolation: Isolation) -> Result<Bed<C>, String> {
        let bed = Bed { connect, isolation };
        for tables in [TABLES, COMPLETED_TABLE_SQL] {
            bed.driver().await?.run(tables).await.map_err(in_words)?;
        }
        Ok(bed)
    }

    /// A new connection.
    pub(super) async fn driver(&self) -> Result<D, String> {
        (self.connect)().await.map_err(in_words)
    }
}

/// A claim with a token of epoch 1; each revision is another grant.
pub(super) fn claim(key: &str, revision: i64) -> Claim {
    Claim {
        class: ClassName::new(CLASS).expect("a class's name"),
        key: Key::text(key).expect("a key"),
        token: token(revision),
        grant_id: Some(GrantId::new(format!("g{revision}")).expect("a grant id")),
    }
}

pub(super) fn token(revision: i64) -> Token {
    Token::new((1 << 48) + revision).expect("a token of epoch 1")
}

/// A claim of a row of the column guard's table.
pub(super) fn row(id: i64, presented: i64) -> Claim {
    Claim {
        class: ClassName::new("conformance.batch").expect("a class's name"),
        key: Key::integer(id),
        token: Token::new(presented).expect("a token"),
        grant_id: None,
    }
}

pub(super) fn guard() -> ColumnGuard {
    ColumnGuard::new("conformance_batch", "id", "token").expect("names")
}

/// An entry of this account.
pub(super) fn insert(account: &str, amount: i64) -> String {
    format!("INSERT INTO conformance_entry (account, amount) VALUES ('{account}', {amount})")
}

/// What the entries of an account add up to.
pub(super) fn sum(account: &str) -> String {
    format!("SELECT coalesce(sum(amount), 0)::bigint FROM conformance_entry WHERE account = '{account}'")
}

/// Both numbers of a stale claim.
pub(super) fn stale<T>(result: &Result<T, GuardError>) -> Option<(Token, Token)> {
    match result {
        Err(GuardError::Refused(Refused::Claim(Refusal::Stale { presented, seen }))) => {
            Some((*presented, *seen))
        }
        _ => None,
    }
}

/// The case goes on when this holds.
pub(super) fn hold(holds: bool, otherwise: impl FnOnce() -> String) -> Shown {
    if holds { Ok(()) } else { Err(otherwise()) }
}

/// The case goes on when these are equal.
pub(super) fn equal<T: PartialEq + Debug>(what: &str, found: T, expected: T) -> Shown {
    hold(found == expected, || {
        format!("{what}: found {found:?}, expected {expected:?}")
    })
}

/// An error with its causes.
pub(super) fn in_words(error: impl Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}
