//! Requests that the path itself sends, and what it keeps back behind the resource.

use serde::{Deserialize, Serialize};

use super::observed::{At, Op};

/// A request that the path sent to the resource on a connection of its own, from the bytes of one that had come to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Relay {
    /// The request that the path sent.
    pub op: Op,
    /// The one whose bytes it has.
    pub of: Op,
    /// What is different in it.
    pub how: Alteration,
}

/// What the path changed in a request's `Fencing-Token` before it sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Alteration {
    /// Nothing: byte for byte the same.
    Nothing,
    /// Beside its own it carries the claim of the holder's successor, in a second field or in the same one.
    Twice,
    /// The field was taken out, as a proxy does to a field that `Connection` names.
    Stripped,
    /// It holds the successor's token, and its own grant still.
    EqualToken,
    /// It holds what is no token.
    Malformed,
    /// It is empty, or lacks the token or the grant.
    Missing,
}

/// An answer on behalf of a request that the path kept back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Withheld {
    /// The request.
    pub op: Op,
    /// Whose answer it is.
    pub by: Answerer,
    /// When it was let go. `None` when it never was.
    pub released: Option<At>,
}

/// Who answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answerer {
    /// PostgreSQL, to the resource.
    Database,
    /// The resource, to the holder.
    Resource,
}

/// The COMMIT of a request's transaction, on its way from the resource to PostgreSQL, that the path kept back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Uncommitted {
    /// The request.
    pub op: Op,
    /// When it was let go. `None` when it never was.
    pub released: Option<At>,
}
