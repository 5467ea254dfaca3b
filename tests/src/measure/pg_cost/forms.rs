//! The ways of writing that are compared, each as a pgbench script.

use super::bed::TOKEN;

/// One way of writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Form {
    /// The write alone, as one statement.
    One,
    /// BEGIN, write, COMMIT in one flight.
    Transaction,
    /// The column guard: the write alone, with the token compared and set in it.
    Column,
    /// The mark guard: BEGIN, admit, write, COMMIT in one flight.
    Mark,
    /// The same into a protected table.
    Enforced,
    /// SELECT FOR UPDATE, look, UPDATE. Two flights: BEGIN and SELECT, then UPDATE and COMMIT.
    ForUpdate,
    /// An advisory lock, a SELECT behind it, look, UPDATE. Two flights, in the same way.
    Advisory,
    /// A version column read, then compared and raised by the UPDATE. Two flights.
    Version,
    /// SELECT FOR UPDATE and UPDATE in one flight: nobody looks at what was read, so nothing is ever refused.
    ForUpdateBlind,
    /// An advisory lock and UPDATE in one flight: nobody looks at anything, so nothing is ever refused.
    AdvisoryBlind,
    /// A second row written with the first, and nothing asked: BEGIN, UPDATE of a mark, UPDATE, COMMIT in one flight. Whatever
    /// leaves its evidence in the same transaction costs this at least.
    SecondRow,
}

impl Form {
    pub(crate) const ALL: [Form; 11] = [
        Form::One,
        Form::Transaction,
        Form::Column,
        Form::Mark,
        Form::Enforced,
        Form::ForUpdate,
        Form::Advisory,
        Form::Version,
        Form::ForUpdateBlind,
        Form::AdvisoryBlind,
        Form::SecondRow,
    ];
    /// Those that could refuse a writer by what they read.
    pub(crate) const PEERS: [Form; 3] = [Form::ForUpdate, Form::Advisory, Form::Version];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Form::One => "bare",
            Form::Transaction => "bare, in BEGIN and COMMIT",
            Form::Column => "column",
            Form::Mark => "mark",
            Form::Enforced => "mark enforced",
            Form::ForUpdate => "SELECT FOR UPDATE, look, UPDATE",
            Form::Advisory => "pg_advisory_xact_lock, look, UPDATE",
            Form::Version => "version read, then written",
            Form::ForUpdateBlind => "SELECT FOR UPDATE, UPDATE, no look",
            Form::AdvisoryBlind => "pg_advisory_xact_lock, UPDATE, no look",
            Form::SecondRow => "a second row written, nothing asked",
        }
    }

    /// The script, over the accounts from 1 to `accounts`.
    pub(crate) fn script(self, accounts: i64) -> String {
        let id = format!("\\set id random(1, {accounts})\n");
        let add = "SET balance = balance + 1 WHERE id = :id";
        let admit = format!("SELECT fence.admit('bank.account', (:id)::bigint::text, {TOKEN}, 'g');\n");
        let flight = |statements: &str| format!("\\startpipeline\n{statements}\\endpipeline\n");
        let write = match self {
            Form::One => format!("UPDATE account {add};\n"),
            Form::Transaction => flight(&format!("BEGIN;\nUPDATE account {add};\nCOMMIT;\n")),
            Form::Column => format!(
                "UPDATE by_column SET balance = balance + 1, fence_token = {TOKEN} WHERE id = :id AND fence_token <= {TOKEN};\n"
            ),
            Form::Mark => flight(&format!("BEGIN;\n{admit}UPDATE account {add};\nCOMMIT;\n")),
            Form::Enforced => flight(&format!("BEGIN;\n{admit}UPDATE enforced {add};\nCOMMIT;\n")),
            Form::ForUpdate => format!(
                "{}{}",
                flight("BEGIN;\nSELECT version FROM account WHERE id = :id FOR UPDATE;\n"),
                flight(&format!("UPDATE account {add};\nCOMMIT;\n"))
            ),
            Form::Advisory => format!(
                "{}{}",
                flight(
                    "BEGIN;\nSELECT pg_advisory_xact_lock(:id);\nSELECT version FROM account WHERE id = :id;\n"
                ),
                flight(&format!("UPDATE account {add};\nCOMMIT;\n"))
            ),
            Form::Version => "SELECT version FROM account WHERE id = :id \\gset\n\
                 UPDATE account SET balance = balance + 1, version = version + 1 WHERE id = :id AND version = :version;\n"
                .to_owned(),
            Form::ForUpdateBlind => flight(&format!(
                "BEGIN;\nSELECT version FROM account WHERE id = :id FOR UPDATE;\nUPDATE account {add};\nCOMMIT;\n"
            )),
            Form::AdvisoryBlind => flight(&format!(
                "BEGIN;\nSELECT pg_advisory_xact_lock(:id);\nUPDATE account {add};\nCOMMIT;\n"
            )),
            Form::SecondRow => flight(&format!(
                "BEGIN;\nUPDATE fence.high_water SET admitted_xid = pg_current_xact_id(), admitted_at = transaction_timestamp() \
                 WHERE class = 'bank.account' AND key = (:id)::bigint::text;\nUPDATE account {add};\nCOMMIT;\n"
            )),
        };
        id + &write
    }
}
