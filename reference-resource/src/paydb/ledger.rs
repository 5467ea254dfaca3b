//! The ledger's SQL.

use fence_core::Key;
use http::StatusCode;
use serde::Serialize;
use sqlx::types::Json;
use sqlx::{Executor, PgConnection, Postgres};

use super::answer::Own;
use super::order::{IdempotencyKey, Order};

/// A transfer as it was made.
#[derive(Debug, Serialize)]
pub(super) struct Transfer {
    id: i64,
    from: String,
    to: String,
    amount: i64,
    reference: String,
    idempotency_key: String,
}

/// An answer that was given and committed before.
#[derive(Debug)]
pub(super) struct Completed {
    pub(super) order: Order,
    pub(super) status: StatusCode,
    pub(super) answer: String,
}

/// What the key was completed with, if it was.
pub(super) async fn completed(
    connection: &mut PgConnection,
    account: &Key,
    key: &IdempotencyKey,
) -> sqlx::Result<Option<Completed>> {
    let row: Option<(Json<Order>, i16, String)> = sqlx::query_as(
        "SELECT request, status, answer FROM completed_request WHERE account = $1 AND idempotency_key = $2",
    )
    .bind(account.as_str())
    .bind(key.as_str())
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|(Json(order), status, answer)| Completed {
        order,
        status: u16::try_from(status)
            .ok()
            .and_then(|status| StatusCode::from_u16(status).ok())
            .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
        answer,
    }))
}

/// Completes the key.
pub(super) async fn complete(
    connection: &mut PgConnection,
    account: &Key,
    key: &IdempotencyKey,
    completed: &Completed,
) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO completed_request (account, idempotency_key, request, status, answer) VALUES ($1, $2, $3, $4, $5)",
    )
    .bind(account.as_str())
    .bind(key.as_str())
    .bind(Json(&completed.order))
    .bind(i16::try_from(completed.status.as_u16()).expect("a status has three digits"))
    .bind(&completed.answer)
    .execute(connection)
    .await?;
    Ok(())
}

/// Makes the transfer, or says why not; then nothing was written. Both accounts are held to the transaction's end.
pub(super) async fn transfer(
    connection: &mut PgConnection,
    from: &Key,
    order: &Order,
    key: &IdempotencyKey,
) -> sqlx::Result<Result<Transfer, Own>> {
    let balances: Vec<(String, i64)> =
        sqlx::query_as("SELECT id, balance FROM account WHERE id IN ($1, $2) ORDER BY id FOR NO KEY UPDATE")
            .bind(from.as_str())
            .bind(&order.to)
            .fetch_all(&mut *connection)
            .await?;
    let balance = |id: &str| {
        balances
            .iter()
            .find(|(known, _)| known == id)
            .map(|(_, balance)| *balance)
    };
    let Some(sender) = balance(from.as_str()) else {
        return Ok(Err(Own::unknown_account(from.as_str(), StatusCode::NOT_FOUND)));
    };
    let Some(receiver) = balance(&order.to) else {
        return Ok(Err(Own::unknown_account(
            &order.to,
            StatusCode::UNPROCESSABLE_ENTITY,
        )));
    };
    if sender < order.amount {
        return Ok(Err(Own::too_little_money()));
    }
    if receiver.checked_add(order.amount).is_none() {
        return Ok(Err(Own::too_much_money()));
    }
    let id = sqlx::query_scalar(
        "INSERT INTO transfer (from_account, to_account, amount, reference, idempotency_key) VALUES ($1, $2, $3, $4, $5)
         RETURNING id",
    )
    .bind(from.as_str())
    .bind(&order.to)
    .bind(order.amount)
    .bind(&order.reference)
    .bind(key.as_str())
    .fetch_one(connection)
    .await?;
    Ok(Ok(Transfer {
        id,
        from: from.to_string(),
        to: order.to.clone(),
        amount: order.amount,
        reference: order.reference.clone(),
        idempotency_key: key.as_str().to_owned(),
    }))
}

/// What an account has sent, in the order of its ids, or nothing for an unknown account.
pub(super) async fn transfers_of<'e>(
    executor: impl Executor<'e, Database = Postgres>,
    account: &str,
) -> sqlx::Result<Vec<Transfer>> {
    let rows: Vec<(i64, String, i64, String, String)> = sqlx::query_as(
        "SELECT id, to_account, amount, reference, idempotency_key FROM transfer WHERE from_account = $1 ORDER BY id",
    )
    .bind(account)
    .fetch_all(executor)
    .await?;
    let transfer = |(id, to, amount, reference, idempotency_key)| Transfer {
        id,
        from: account.to_owned(),
        to,
        amount,
        reference,
        idempotency_key,
    };
    Ok(rows.into_iter().map(transfer).collect())
}
