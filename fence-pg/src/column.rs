//! Which column guards which table, and the SQL that comes of it.

#[cfg(feature = "sqlx")]
use crate::text::literal;

/// A table whose rows carry their own mark. Protect it in the database too: `fence.protect_column`.
///
/// # Limits
///
/// The mark lives and dies with its row: a row that was deleted and inserted again has lost it. There is no grant id, so a
/// collision is not seen. A statement that forgets the token is not refused. Nothing raises the mark ahead of the write, so
/// use it only for writes that depend on no earlier read, or that read by UPDATE .. RETURNING. Where any of that hurts, use the
/// mark guard.
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

    /// The guarded UPDATE. `key_value` is the key, made of `$1`; `$2` is the token, the caller's parameters follow.
    pub(crate) fn update_sql(&self, key_value: &str, set: &str, returning: &str) -> String {
        let relation = &self.relation;
        let (key, token) = (quoted(&self.key_column), quoted(&self.token_column));
        let set = if set.is_empty() {
            String::new()
        } else {
            format!(", {set}")
        };
        let returning = returned(returning, &key);
        format!(
            "UPDATE {relation} SET {token} = $2{set} WHERE {key} = {key_value} AND {token} <= $2 RETURNING {returning}"
        )
    }

    /// Whether the claim's row is there after all, for this role to update. `key_value` is the key, made of `$1`.
    pub(crate) fn lock_sql(&self, key_value: &str) -> String {
        let (relation, key) = (&self.relation, quoted(&self.key_column));
        format!("SELECT 1 FROM {relation} WHERE {key} = {key_value} FOR UPDATE")
    }

    /// The guarded UPDATE of several rows. `keys` is an array of keys, made of `$1`; `$2` is the array of their tokens.
    pub(crate) fn batch_sql(&self, keys: &str, set: &str, returning: &str) -> String {
        let relation = &self.relation;
        let (key, token) = (quoted(&self.key_column), quoted(&self.token_column));
        let set = if set.is_empty() {
            String::new()
        } else {
            format!(", {set}")
        };
        let returning = returned(returning, &key);
        // The key's own comparison stands first: it tells the server the type of $1.
        let presented = format!("($2::bigint[])[array_position({keys}, {key})]");
        format!(
            "UPDATE {relation} SET {token} = {presented}{set} WHERE {key} = ANY ({keys}) AND {token} <= {presented} \
             RETURNING {returning}"
        )
    }

    /// A look at the rows that a batch did not update: key, token, and whether that is above the one presented.
    pub(crate) fn look_sql(&self, keys: &str) -> String {
        let relation = &self.relation;
        let (key, token) = (quoted(&self.key_column), quoted(&self.token_column));
        format!(
            "SELECT {key}::text, {token}, {token} > ($2::bigint[])[array_position({keys}, {key})] FROM {relation} \
             WHERE {key} = ANY ({keys})"
        )
    }

    /// The open transaction, and the type of the key column, for a driver that must name it.
    #[cfg(feature = "sqlx")]
    pub(crate) fn key_type_text(&self) -> String {
        format!(
            "SELECT pg_current_xact_id()::text, (SELECT format_type(a.atttypid, -1) FROM pg_attribute a \
             WHERE a.attrelid = {}::regclass AND a.attname = {} AND NOT a.attisdropped)",
            literal(&self.relation),
            literal(&self.key_column)
        )
    }

    /// [`EXPLAIN_BLOCKS`] as a plain text.
    #[cfg(feature = "sqlx")]
    pub(crate) fn explain_blocks_text<'a>(&self, keys: impl Iterator<Item = &'a str>) -> String {
        let keys: Vec<String> = keys.map(literal).collect();
        EXPLAIN_BLOCKS
            .replace("$1", &literal(&self.relation))
            .replace("$2", &literal(&self.key_column))
            .replace("$3", &format!("ARRAY[{}]", keys.join(", ")))
    }

    /// The relation as SQL spells it, its key column and its token column.
    pub(crate) fn names(&self) -> (&str, &str, &str) {
        (&self.relation, &self.key_column, &self.token_column)
    }
}

/// Why an UPDATE touched no row.
pub(crate) const EXPLAIN_COLUMN: &str =
    "SELECT fence.explain_column($1::text::regclass, $2::text, $3::text, $4::text, $5::bigint)";

/// Who holds the rows that an UPDATE waited for; `$3` is the array of their keys' texts.
pub(crate) const EXPLAIN_BLOCKS: &str = "SELECT string_agg(DISTINCT fence.explain_block($1::text::regclass, $2::text, k), '; ') \
    FROM unnest($3::text[]) k";

/// What the caller wants to see, and at the end the text of the row's key.
fn returned(returning: &str, key: &str) -> String {
    let comma = if returning.is_empty() { "" } else { ", " };
    format!("{returning}{comma}{key}::text AS fence_key")
}

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

#[cfg(all(test, feature = "sqlx", feature = "tokio-postgres"))]
mod tests {
    use super::*;
    use crate::bounds::{BOUNDS_SQL, Bounds};
    use crate::mark::COMMIT;

    #[test]
    fn the_emitted_sql_is_the_one_on_file() {
        let guard = ColumnGuard::new("settlement_batch", "id", "fence_token")
            .and_then(|guard| guard.in_schema("odd \"name\""))
            .expect("these are names");
        for (emitted, on_file) in [
            (
                format!("BEGIN; {BOUNDS_SQL}"),
                include_str!("../tests/emitted/column_begin.sql"),
            ),
            (
                guard.update_sql("$1", "state = $3", "amount"),
                include_str!("../tests/emitted/column_update.sql"),
            ),
            (
                guard.update_sql("$1", "", ""),
                include_str!("../tests/emitted/column_touch.sql"),
            ),
            (
                EXPLAIN_COLUMN.to_owned(),
                include_str!("../tests/emitted/column_explain.sql"),
            ),
            (
                guard.update_sql("$1::text::bigint", "", ""),
                include_str!("../tests/emitted/column_touch_typed.sql"),
            ),
            (
                guard.batch_sql("$1", "state = $3", "amount"),
                include_str!("../tests/emitted/column_batch.sql"),
            ),
            (
                guard.lock_sql("$1"),
                include_str!("../tests/emitted/column_lock.sql"),
            ),
            (
                guard.look_sql("$1::text[]::bigint[]"),
                include_str!("../tests/emitted/column_look.sql"),
            ),
            (
                EXPLAIN_BLOCKS.to_owned(),
                include_str!("../tests/emitted/column_explain_blocks.sql"),
            ),
            (
                guard.explain_blocks_text(["1", "it's"].into_iter()),
                include_str!("../tests/emitted/column_explain_blocks_text.sql"),
            ),
            (
                guard.key_type_text(),
                include_str!("../tests/emitted/column_key_type.sql"),
            ),
            (
                COMMIT.to_owned(),
                include_str!("../tests/emitted/column_commit.sql"),
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
