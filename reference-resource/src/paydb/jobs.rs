//! Transfers that were accepted to be made later.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use fence_core::{Claim, ClassName, GrantId, Key, Token};
use http::{HeaderMap, StatusCode};
use serde::Serialize;
use serde_json::Value;
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgConnection, PgPool, Row as _};

use super::answer::{Own, Problem};
use super::deadline::in_time;
use super::order::Order;

/// A transfer that was accepted to be made later, and what became of it.
#[derive(Debug, Serialize)]
pub(super) struct Job {
    id: i64,
    from: String,
    to: String,
    amount: i64,
    reference: String,
    idempotency_key: String,
    state: String,
    /// The transfer that was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    transfer: Option<i64>,
    /// Why none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<Value>,
}

/// One that is still to be decided, with the claim that its request presented.
#[derive(Debug)]
pub(super) struct Undecided {
    pub(super) id: i64,
    pub(super) claim: Claim,
    pub(super) order: Order,
    pub(super) key: String,
}

/// What became of one.
#[derive(Debug)]
pub(super) enum Decision {
    /// The transfer with this id was made.
    Done(i64),
    /// Nothing was written, for this problem.
    Refused(Value),
}

/// Whether a request leaves it to the service to do it later: `Prefer: respond-async`, as RFC 7240 has it.
pub(super) fn may_wait(headers: &HeaderMap) -> bool {
    let values = headers.get_all("prefer").into_iter();
    let mut preferences = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|preference| preference.split([';', '=']).next());
    preferences.any(|name| name.trim().eq_ignore_ascii_case("respond-async"))
}

/// `GET /accounts/{id}/jobs`
pub(super) async fn list(
    State(pool): State<PgPool>,
    account: Result<Path<String>, PathRejection>,
) -> Result<Json<Vec<Job>>, Problem> {
    let Path(account) = account?;
    if Key::check(&account).is_err() {
        return Err(Own::unknown_account(&account, StatusCode::NOT_FOUND).into());
    }
    let (known, jobs) = in_time(async {
        let select = sqlx::query_as(
            "SELECT id, from_account, to_account, amount, reference, idempotency_key, state, transfer, problem
             FROM transfer_job WHERE from_account = $1 ORDER BY id",
        );
        let jobs: Vec<Job> = select.bind(&account).fetch_all(&pool).await?;
        let known: bool = sqlx::query_scalar("SELECT EXISTS (SELECT FROM account WHERE id = $1)")
            .bind(&account)
            .fetch_one(&pool)
            .await?;
        Ok((known, jobs))
    })
    .await?;
    if !known && jobs.is_empty() {
        return Err(Own::unknown_account(&account, StatusCode::NOT_FOUND).into());
    }
    Ok(Json(jobs))
}

/// Takes a transfer down, in the transaction that has admitted its claim.
pub(super) async fn accept(
    connection: &mut PgConnection,
    claim: &Claim,
    order: &Order,
    key: &str,
) -> sqlx::Result<Job> {
    let id = sqlx::query_scalar(
        "INSERT INTO transfer_job (class, from_account, token, grant_id, to_account, amount, reference, idempotency_key)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING id",
    )
    .bind(claim.class.as_str())
    .bind(claim.key.as_str())
    .bind(claim.token.as_i64())
    .bind(claim.grant_id.as_ref().map(GrantId::as_str))
    .bind(&order.to)
    .bind(order.amount)
    .bind(&order.reference)
    .bind(key)
    .fetch_one(connection)
    .await?;
    Ok(Job {
        id,
        from: claim.key.to_string(),
        to: order.to.clone(),
        amount: order.amount,
        reference: order.reference.clone(),
        idempotency_key: key.to_owned(),
        state: "accepted".to_owned(),
        transfer: None,
        problem: None,
    })
}

/// The first one after this id that is still to be decided.
pub(super) async fn next(pool: &PgPool, after: i64) -> sqlx::Result<Option<Undecided>> {
    sqlx::query_as(
        "SELECT id, class, from_account, token, grant_id, to_account, amount, reference, idempotency_key
         FROM transfer_job WHERE state = 'accepted' AND id > $1 ORDER BY id LIMIT 1",
    )
    .bind(after)
    .fetch_optional(pool)
    .await
}

/// Whether it is still to be decided. It stays so until the transaction ends: whoever else would decide it waits for its row.
pub(super) async fn is_undecided(connection: &mut PgConnection, id: i64) -> sqlx::Result<bool> {
    sqlx::query_scalar("SELECT state = 'accepted' FROM transfer_job WHERE id = $1 FOR UPDATE")
        .bind(id)
        .fetch_one(connection)
        .await
}

/// Notes what became of it. That no row is there to be noted in, because another has decided it or the row is hidden from this
/// role, is an error: whatever was written with it must not be committed.
pub(super) async fn decide(connection: &mut PgConnection, id: i64, decision: &Decision) -> sqlx::Result<()> {
    let (state, transfer, problem) = match decision {
        Decision::Done(transfer) => ("done", Some(*transfer), None),
        Decision::Refused(problem) => ("refused", None, Some(sqlx::types::Json(problem))),
    };
    let noted = sqlx::query(
        "UPDATE transfer_job SET state = $2, transfer = $3, problem = $4 WHERE id = $1 AND state = 'accepted'",
    )
    .bind(id)
    .bind(state)
    .bind(transfer)
    .bind(problem)
    .execute(connection)
    .await?;
    match noted.rows_affected() {
        1 => Ok(()),
        _ => Err(sqlx::Error::RowNotFound),
    }
}

impl FromRow<'_, PgRow> for Job {
    fn from_row(row: &PgRow) -> sqlx::Result<Job> {
        let problem: Option<sqlx::types::Json<Value>> = row.try_get(8)?;
        Ok(Job {
            id: row.try_get(0)?,
            from: row.try_get(1)?,
            to: row.try_get(2)?,
            amount: row.try_get(3)?,
            reference: row.try_get(4)?,
            idempotency_key: row.try_get(5)?,
            state: row.try_get(6)?,
            transfer: row.try_get(7)?,
            problem: problem.map(|problem| problem.0),
        })
    }
}

impl FromRow<'_, PgRow> for Undecided {
    fn from_row(row: &PgRow) -> sqlx::Result<Undecided> {
        let grant: Option<String> = row.try_get(4)?;
        let claim = Claim {
            class: ClassName::new(row.try_get::<&str, _>(1)?).map_err(unreadable)?,
            key: Key::text(row.try_get::<String, _>(2)?).map_err(unreadable)?,
            token: Token::new(row.try_get(3)?).map_err(unreadable)?,
            grant_id: grant.map(GrantId::new).transpose().map_err(unreadable)?,
        };
        Ok(Undecided {
            id: row.try_get(0)?,
            claim,
            order: Order {
                to: row.try_get(5)?,
                amount: row.try_get(6)?,
                reference: row.try_get(7)?,
            },
            key: row.try_get(8)?,
        })
    }
}

/// What stands in a row is not what was written there.
fn unreadable(error: impl std::error::Error + Send + Sync + 'static) -> sqlx::Error {
    sqlx::Error::Decode(Box::new(error))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn the_preference_is_found_among_others_and_nowhere_else() {
        let headers = |values: &[&'static str]| -> HeaderMap {
            let each = values.iter().map(|value| HeaderValue::from_static(value));
            each.map(|value| (http::HeaderName::from_static("prefer"), value))
                .collect()
        };
        for values in [
            &["respond-async"][..],
            &["Respond-Async, wait=10"],
            &["wait=10 , respond-async; x=y"],
            &["return=minimal", "respond-async"],
        ] {
            assert!(may_wait(&headers(values)), "{values:?}");
        }
        for values in [
            &[][..],
            &[""],
            &["wait=10"],
            &["respond-asynchronously"],
            &["a=respond-async"],
        ] {
            assert!(!may_wait(&headers(values)), "{values:?}");
        }
    }
}
