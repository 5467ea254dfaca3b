//! Answers and errors of PostgreSQL, sorted.

use tokio_postgres::error::SqlState;
use tokio_postgres::{SimpleQueryMessage, SimpleQueryRow};

use crate::error::StoreError;

/// One row of an answer, as texts.
pub(super) struct Row(SimpleQueryRow);

/// A column that is not what `fence-lock/sql/` says.
#[derive(Debug, thiserror::Error)]
#[error("column {column} is {value:?}")]
struct Unreadable {
    column: usize,
    value: Option<String>,
}

impl Row {
    pub(super) fn text(&self, column: usize) -> Option<&str> {
        self.0.try_get(column).ok().flatten()
    }

    /// A column that holds a number.
    pub(super) fn number(&self, column: usize) -> Result<i64, StoreError> {
        let value = self.text(column);
        let number = value.and_then(|text| text.parse().ok());
        number.ok_or_else(|| self.unreadable(column))
    }

    /// A column that holds a truth value.
    pub(super) fn truth(&self, column: usize) -> Result<bool, StoreError> {
        match self.text(column) {
            Some("t") => Ok(true),
            Some("f") => Ok(false),
            _ => Err(self.unreadable(column)),
        }
    }

    /// A column whose text another type reads.
    pub(super) fn read<T, E>(
        &self,
        column: usize,
        read: impl FnOnce(String) -> Result<T, E>,
    ) -> Result<T, StoreError> {
        let read = self.text(column).and_then(|text| read(text.to_owned()).ok());
        read.ok_or_else(|| self.unreadable(column))
    }

    pub(super) fn unreadable(&self, column: usize) -> StoreError {
        StoreError::Foreign {
            key: "fence_lock".to_owned(),
            source: Box::new(Unreadable {
                column,
                value: self.text(column).map(str::to_owned),
            }),
        }
    }
}

/// The one row of an answer.
pub(super) fn one(rows: Vec<Row>) -> Result<Row, StoreError> {
    rows.into_iter().next().ok_or_else(|| StoreError::Foreign {
        key: "fence_lock".to_owned(),
        source: "a function without a row".into(),
    })
}

pub(super) fn rows(messages: Vec<SimpleQueryMessage>) -> Vec<Row> {
    messages
        .into_iter()
        .filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(Row(row)),
            _ => None,
        })
        .collect()
}

/// The server's answers are definite: nothing was changed. Unless it went away over the request, which may have landed.
pub(super) fn sort(endpoints: &str, error: tokio_postgres::Error) -> StoreError {
    let Some(answer) = error.as_db_error() else {
        return StoreError::Unreachable {
            endpoints: endpoints.to_owned(),
            source: Box::new(error),
        };
    };
    let code = answer.code();
    let missing = [
        SqlState::INVALID_SCHEMA_NAME,
        SqlState::UNDEFINED_FUNCTION,
        SqlState::UNDEFINED_TABLE,
    ];
    let busy = [
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::QUERY_CANCELED,
    ];
    if code.code().starts_with("08") || code.code().starts_with("57P") {
        return StoreError::Unreachable {
            endpoints: endpoints.to_owned(),
            source: Box::new(error),
        };
    }
    if missing.contains(code) {
        return StoreError::NotInstalled {
            source: Box::new(error),
        };
    }
    if busy.contains(code) {
        return StoreError::Busy {
            source: Box::new(error),
        };
    }
    StoreError::Refused {
        source: Box::new(error),
    }
}

/// Whether an error is the server's own answer, so that nothing of the request lands later.
pub(super) fn is_definite(error: &StoreError) -> bool {
    !matches!(
        error,
        StoreError::Unreachable { .. } | StoreError::TimedOut { .. }
    )
}
