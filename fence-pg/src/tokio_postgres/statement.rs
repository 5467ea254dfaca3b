//! Which column guards which table, and the SQL that comes of it.

/// A table whose rows carry their own mark. Protect it in the database too: `fence.protect_column`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnGuard {
    relation: String,
    key_column: String,
    token_column: String,
}

impl ColumnGuard {
    /// Names the table, its key column (one row a key) and its token column, `bigint NOT NULL`. Names are taken as they
    /// are, case included; the table is looked up on the connection's search path.
    ///
    /// # Errors
    ///
    /// [`IdentifierError`] for what cannot be a name in PostgreSQL.
    pub fn new(table: &str, key_column: &str, token_column: &str) -> Result<ColumnGuard, IdentifierError> {
        Ok(ColumnGuard {
            relation: quote(table)?,
            key_column: checked(key_column)?.to_owned(),
            token_column: checked(token_column)?.to_owned(),
        })
    }

    /// The same table, in a schema.
    ///
    /// # Errors
    ///
    /// [`IdentifierError`] for what cannot be a name in PostgreSQL.
    pub fn in_schema(self, schema: &str) -> Result<ColumnGuard, IdentifierError> {
        let relation = format!("{}.{}", quote(schema)?, self.relation);
        Ok(ColumnGuard { relation, ..self })
    }

    /// The guarded UPDATE. `$1` is the key, `$2` the token, the caller's parameters follow.
    pub(super) fn update_sql(&self, set: &str, returning: &str) -> String {
        let relation = &self.relation;
        let (key, token) = (quoted(&self.key_column), quoted(&self.token_column));
        let set = if set.is_empty() {
            String::new()
        } else {
            format!(", {set}")
        };
        let returning = if returning.is_empty() { "NULL" } else { returning };
        format!(
            "UPDATE {relation} SET {token} = $2{set} WHERE {key} = $1 AND {token} <= $2 RETURNING {returning}"
        )
    }

    /// The relation as SQL spells it, its key column and its token column.
    pub(super) fn names(&self) -> (&str, &str, &str) {
        (&self.relation, &self.key_column, &self.token_column)
    }
}

/// Why an UPDATE touched no row.
pub(super) const EXPLAIN_COLUMN: &str =
    "SELECT fence.explain_column($1::text::regclass, $2::text, $3::text, $4::text, $5::bigint)";

/// Who holds the row that an UPDATE waited for.
pub(super) const EXPLAIN_BLOCK: &str = "SELECT fence.explain_block($1::text::regclass, $2::text, $3::text)";

/// Commits, after a look at which transaction that would commit. In a failed transaction the first statement fails, and the
/// second is not run.
pub(super) const COMMIT: &str = "SELECT pg_current_xact_id_if_assigned()::text; COMMIT";

/// A text that is no name in PostgreSQL. Give the name alone, unquoted and without its schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a name is 1 to 63 bytes without NUL, got {name:?}")]
pub struct IdentifierError {
    /// The text offered.
    pub name: String,
}

fn checked(name: &str) -> Result<&str, IdentifierError> {
    if name.is_empty() || name.len() > 63 || name.contains('\0') {
        Err(IdentifierError {
            name: name.to_owned(),
        })
    } else {
        Ok(name)
    }
}

fn quote(name: &str) -> Result<String, IdentifierError> {
    checked(name).map(quoted)
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::super::bounds::{BOUNDS_SQL, Bounds};
    use super::*;

    #[test]
    fn the_emitted_sql_is_the_one_on_file() {
        let guard = ColumnGuard::new("settlement_batch", "id", "fence_token")
            .and_then(|guard| guard.in_schema("odd \"name\""))
            .expect("these are names");
        for (emitted, on_file) in [
            (
                format!("BEGIN; {BOUNDS_SQL}"),
                include_str!("../../tests/emitted/column_begin.sql"),
            ),
            (
                guard.update_sql("state = $3", "amount"),
                include_str!("../../tests/emitted/column_update.sql"),
            ),
            (
                guard.update_sql("", ""),
                include_str!("../../tests/emitted/column_touch.sql"),
            ),
            (
                EXPLAIN_COLUMN.to_owned(),
                include_str!("../../tests/emitted/column_explain.sql"),
            ),
            (
                EXPLAIN_BLOCK.to_owned(),
                include_str!("../../tests/emitted/column_explain_block.sql"),
            ),
            (
                COMMIT.to_owned(),
                include_str!("../../tests/emitted/column_commit.sql"),
            ),
        ] {
            assert_eq!(on_file.trim_end(), format!("{emitted};"));
        }
        assert_eq!(Bounds::default().begin_sql(), format!("BEGIN; {BOUNDS_SQL}"));
    }

    #[test]
    fn what_cannot_be_a_name_is_refused() {
        for name in ["", "a\0b", &"x".repeat(64)] {
            assert!(ColumnGuard::new(name, "id", "token").is_err(), "{name:?}");
            assert!(ColumnGuard::new("t", name, "token").is_err(), "{name:?}");
            assert!(ColumnGuard::new("t", "id", name).is_err(), "{name:?}");
        }
    }
}
