//! What was committed, from the write-ahead log.

use serde::{Deserialize, Serialize};

use super::observed::TokenNumber;

/// One committed change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Commit {
    /// Its place in the commit order, strictly increasing.
    pub order: u64,
    /// The transaction. Only equality means anything: ids are not in commit order.
    pub xid: u64,
    /// What changed.
    pub change: Change,
}

/// What a commit changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case", deny_unknown_fields)]
pub enum Change {
    /// The mark's row was written.
    Admission {
        /// The class.
        class: String,
        /// The key.
        key: String,
        /// The mark.
        token: TokenNumber,
        /// Whose it is.
        grant: Option<String>,
    },
    /// A guarded write took effect.
    Write {
        /// The class.
        class: String,
        /// The key.
        key: String,
        /// The write's id.
        id: String,
        /// The grant that it truly belongs to, as the row tells it.
        grant: Option<String>,
        /// The row's token column, under the column guard.
        token: Option<TokenNumber>,
        /// The job that it does, such as `order-7`.
        job: Option<String>,
        /// What it moved between accounts.
        moves: Vec<Move>,
    },
}

/// One side of a transfer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Move {
    /// The account.
    pub account: String,
    /// What was added to it, in minor units; negative for a debit.
    pub amount: i64,
}
