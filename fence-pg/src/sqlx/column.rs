//! The guarded transaction of the column guard.

use ::sqlx::postgres::{PgArguments, PgRow};
use ::sqlx::{Arguments as _, AssertSqlSafe, PgConnection, PgPool, Postgres, Row as _};
use fence_core::{Claim, Effect, Receipt};

use super::held::{self, Held};
use super::{sort, sort_at};
use crate::bounds::Bounds;
use crate::column::{ColumnGuard, EXPLAIN_COLUMN};
use crate::error::{GuardError, Phase};

/// Puts the caller's parameters behind the guard's: `|params| params.add("claimed")`.
pub(super) type Bound = Result<(), ::sqlx::error::BoxDynError>;

/// Begins a transaction for one claim under the column guard, at the session's isolation level, with its bounds set.
///
/// # Errors
///
/// [`GuardError::Unavailable`] when the connection is lost.
pub async fn begin_column(
    pool: &PgPool,
    guard: &ColumnGuard,
    claim: &Claim,
    bounds: Bounds,
) -> Result<ColumnTransaction, GuardError> {
    Ok(ColumnTransaction {
        opened: Opened::begin(pool, guard, bounds).await?,
        claim: claim.clone(),
        updated: false,
    })
}

/// A bounded transaction on a guarded table.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) held: Held,
    pub(super) guard: ColumnGuard,
    pub(super) xid: String,
    /// The key column's type, as SQL spells it: sqlx sends parameters as values of a known type.
    pub(super) key_type: String,
    /// Whether statements may be kept.
    prepares: bool,
}

impl Opened {
    pub(super) async fn begin(
        pool: &PgPool,
        guard: &ColumnGuard,
        bounds: Bounds,
    ) -> Result<Opened, GuardError> {
        let mut held = Held::begin_by(pool, bounds.begin()).await?;
        let text = format!("{}; {}", bounds.set_sql(), guard.key_type_text());
        let row = ::sqlx::raw_sql(AssertSqlSafe(text))
            .fetch_all(held.connection())
            .await
            .map_err(sort)?
            .pop()
            .ok_or_else(|| sort(::sqlx::Error::RowNotFound))?;
        let key_type: Option<String> = row.try_get(1).map_err(sort)?;
        Ok(Opened {
            held,
            guard: guard.clone(),
            xid: row.try_get(0).map_err(sort)?,
            // Without such a column, the statement that names it says so.
            key_type: key_type.unwrap_or_else(|| "text".to_owned()),
            prepares: held::prepares(pool),
        })
    }

    pub(super) async fn query(
        &mut self,
        sql: String,
        arguments: PgArguments,
    ) -> Result<Vec<PgRow>, ::sqlx::Error> {
        ::sqlx::query_with::<Postgres, _>(AssertSqlSafe(sql), arguments)
            .persistent(self.prepares)
            .fetch_all(self.held.connection())
            .await
    }

    /// Why no row was updated, asked in the same transaction.
    pub(super) async fn explain(&mut self, claim: &Claim) -> GuardError {
        let (relation, key_column, token_column) = self.guard.names();
        let asked = ::sqlx::query(EXPLAIN_COLUMN)
            .bind(relation)
            .bind(key_column)
            .bind(token_column)
            .bind(claim.key.as_str())
            .bind(claim.token.as_i64())
            .persistent(false)
            .execute(self.held.connection())
            .await;
        let sort = |error| sort_at(error, Phase::Statement, std::slice::from_ref(claim));
        if let Err(error) = asked {
            return sort(error);
        }
        let lock = self.guard.lock_sql(&format!("$1::text::{}", self.key_type));
        let locked = ::sqlx::query(AssertSqlSafe(lock))
            .bind(claim.key.as_str())
            .persistent(false)
            .fetch_optional(self.held.connection())
            .await;
        match locked {
            Ok(None) => GuardError::NotFound,
            Ok(Some(_)) => GuardError::replaced(),
            Err(error) => sort(error),
        }
    }

    /// An error of an update; who is in the way is asked after a rollback, as a failed transaction answers nothing.
    pub(super) async fn sort(&mut self, error: ::sqlx::Error, claims: &[Claim]) -> GuardError {
        let sorted = sort_at(error, Phase::Statement, claims);
        if !matches!(sorted, GuardError::Blocked { .. }) {
            return sorted;
        }
        let mut by = None;
        if self.held.roll_back_and_stay().await.is_ok() {
            let keys = claims.iter().map(|claim| claim.key.as_str());
            let text = self.guard.explain_blocks_text(keys);
            // Nothing prepared: behind a pooler the next message may reach another server connection.
            let answer = ::sqlx::raw_sql(AssertSqlSafe(text))
                .fetch_one(self.held.connection())
                .await;
            by = answer.and_then(|row| row.try_get(0)).unwrap_or_default();
        }
        GuardError::Blocked { by }
    }
}

/// What a driver's own encoding refused.
pub(super) fn unencoded(source: ::sqlx::error::BoxDynError) -> GuardError {
    sort(::sqlx::Error::Encode(source))
}

/// A transaction under the column guard. Dropping it rolls back.
#[must_use]
#[derive(Debug)]
pub struct ColumnTransaction {
    opened: Opened,
    claim: Claim,
    updated: bool,
}

impl ColumnTransaction {
    /// Updates the claim's row, provided that its token is not above the claim's, and stores the claim's token in it:
    ///
    /// `UPDATE "table" SET "token" = $2, <set> WHERE "key" = $1::text::<its type> AND "token" <= $2 RETURNING <returning>`
    ///
    /// `set` and `returning` are SQL and may be empty. The row's last column is the text of its key, `fence_key`. `bind` adds the caller's parameters, which are numbered from `$3` on, by
    /// [`Arguments::add`](::sqlx::Arguments::add). The statement is prepared and kept, unless the pool was made with
    /// `statement_cache_capacity(0)`, as behind a transaction pooler it must be.
    ///
    /// # Errors
    ///
    /// [`GuardError`]; the transaction has failed and can only be dropped.
    pub async fn update(
        &mut self,
        set: &str,
        returning: &str,
        bind: impl FnOnce(&mut PgArguments) -> Bound + Send,
    ) -> Result<PgRow, GuardError> {
        self.opened.held.check_open()?;
        let mut arguments = PgArguments::default();
        arguments.add(self.claim.key.as_str()).map_err(unencoded)?;
        arguments.add(self.claim.token.as_i64()).map_err(unencoded)?;
        bind(&mut arguments).map_err(unencoded)?;
        let key = format!("$1::text::{}", self.opened.key_type);
        let sql = self.opened.guard.update_sql(&key, set, returning);
        let rows = match self.opened.query(sql, arguments).await {
            Ok(rows) => rows,
            Err(error) => {
                let claims = std::slice::from_ref(&self.claim);
                return Err(self.opened.sort(error, claims).await);
            }
        };
        let mut rows = rows.into_iter();
        match (rows.next(), rows.next()) {
            (Some(row), None) => {
                let found: String = row.try_get(row.len() - 1).map_err(sort)?;
                if found != self.claim.key.as_str() {
                    // Should that fail, dropping this rolls back.
                    let rolled_back = self.opened.held.roll_back_and_stay().await;
                    drop(rolled_back);
                    return Err(GuardError::other_key(&self.claim, &found));
                }
                self.updated = true;
                Ok(row)
            }
            (None, _) => Err(self.opened.explain(&self.claim).await),
            (Some(_), Some(_)) => {
                // Should that fail, dropping this rolls back.
                let rolled_back = self.opened.held.roll_back_and_stay().await;
                drop(rolled_back);
                Err(GuardError::Misuse("the key column does not name one row"))
            }
        }
    }

    /// The connection, for further statements of the same transaction. Rows other than the claim's are not guarded. Do not
    /// end the transaction on it.
    pub fn connection(&mut self) -> &mut PgConnection {
        self.opened.held.connection()
    }

    /// Commits, provided that at least one guarded update was made.
    ///
    /// # Errors
    ///
    /// [`GuardError::Unknown`] when the answer to COMMIT did not come, or the transaction had been ended inside; any other
    /// [`GuardError`] when nothing was committed, such as after a failed statement, which the server would answer with
    /// ROLLBACK.
    pub async fn commit(self, effect: Effect) -> Result<Receipt, GuardError> {
        self.opened.held.check_open()?;
        if !self.updated {
            return Err(GuardError::Misuse("a commit without a guarded update"));
        }
        self.opened
            .held
            .commit(&self.opened.xid, std::slice::from_ref(&self.claim))
            .await?;
        Ok(Receipt::danger_assume(self.claim, effect))
    }

    /// Rolls back, and waits for it.
    ///
    /// # Errors
    ///
    /// [`GuardError::Unavailable`] when the connection is lost; the server rolls back then, too.
    pub async fn rollback(self) -> Result<(), GuardError> {
        self.opened.held.roll_back().await
    }
}
