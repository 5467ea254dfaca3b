//! Who writes to the database itself, and what that looks like.

use super::grants::Granted;
use super::half::{Half, filled};
use super::sql_text::Words;
use crate::path::Path;
use crate::run::RunError;

/// What a class's guarded SQL looks like, for one key.
#[derive(Clone, Debug)]
pub(super) struct SqlForms {
    pub(super) class: String,
    pub(super) key: String,
    /// The table, without its schema.
    pub(super) table: String,
    /// The query by which the writes are read.
    pub(super) read: Option<Words>,
}

/// Who writes to the database itself: a holder, or somebody on behalf of one.
pub(super) struct Writer<'w> {
    pub(super) name: &'w str,
    pub(super) path: &'w Path,
    pub(super) forms: &'w SqlForms,
    /// The grant under which it writes.
    pub(super) granted: Option<&'w Granted>,
    /// The id of its write, where that is known before.
    pub(super) id: Option<&'w str>,
}

impl Half<'_> {
    /// What the class's guarded SQL looks like, for the contested key.
    pub(super) fn sql_forms(&self) -> Result<SqlForms, RunError> {
        let class = self.task.class;
        let table = class.proof.writes.table.as_str();
        let read = match &class.proof.read.sql {
            Some(query) => Some(Words::read(&filled(query, &self.values)?)),
            None => None,
        };
        Ok(SqlForms {
            class: class.name.to_string(),
            key: self.keys[0].to_string(),
            table: table.rsplit('.').next().unwrap_or(table).to_owned(),
            read,
        })
    }
}
