//! paydb: a small, honest payments service guarded by fencing tokens, and its workers.
//!
//! It shows both guards at work. `paydb` is the service: transfers go through HTTP, and each is admitted by the mark guard
//! in the transaction that writes it. `paydb-worker account` is one of its clients under a lock; `paydb-worker settlement`
//! writes straight to the database under the column guard. `paydb-worker webhook` and `report` are of the two classes that
//! nothing enforces: a provider that checks no token, and work that is only wasted when it is done twice. All find the lock in
//! etcd.
//!
#![doc = concat!("```text\n", include_str!("paydb/usage.txt"), "```")]
//!
//! # What this crate does not do
//!
//! It is a reference, not a bank. It authenticates nobody. References are free text and not unique, and an idempotency key is
//! chosen per grant, so that neither can stand in for the fence. It has no switch that turns a guard off: `defeat/` holds the
//! SQL with which a proof replaces `fence.admit` in a private database.

pub mod paydb;
pub mod worker;

/// An error and its causes on one line. A cause that the text before it already ends with is not said again: some drivers
/// print their source's text as well.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut error = error;
    while let Some(cause) = error.source() {
        let said = cause.to_string();
        if !text.ends_with(&said) {
            text = format!("{text}: {said}");
        }
        error = cause;
    }
    text
}
