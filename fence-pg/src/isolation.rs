//! The isolation level of a guarded transaction.

/// The isolation level of a guarded transaction. Each is right under the mark guard; above READ COMMITTED a claim that came
/// after another one of its key may end as [`GuardError::Retryable`](crate::GuardError::Retryable) instead of waiting its
/// turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// Each statement sees what was committed before it.
    #[default]
    ReadCommitted,
    /// The transaction sees what was committed before its first statement.
    RepeatableRead,
    /// As if transactions ran one after the other.
    Serializable,
}

impl Isolation {
    pub(crate) fn begin_sql(self) -> &'static str {
        match self {
            Isolation::ReadCommitted => "BEGIN ISOLATION LEVEL READ COMMITTED",
            Isolation::RepeatableRead => "BEGIN ISOLATION LEVEL REPEATABLE READ",
            Isolation::Serializable => "BEGIN ISOLATION LEVEL SERIALIZABLE",
        }
    }
}
