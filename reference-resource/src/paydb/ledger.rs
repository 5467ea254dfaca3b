//! The ledger's SQL.

use fence_core::Key;
use http::StatusCode;
use serde::Serialize;
use sqlx::{Executor, PgConnection, Postgres};

use super::answer::Own;
use super::order::Order;

/// A transfer as it was made.
#[derive(Debug, Serialize)]
pub(super) struct Transfer {
    pub(super) id: i64,
    from: String,
    to: String,
    amount: i64,
    reference: String,
    idempotency_key: String,
}

/// Makes the transfer, or says why not; then nothing was written. Both accounts are held to the transaction's end.
pub(super) async fn transfer(
    connection: &mut PgConnection,
    from: &Key,
    order: &Order,
    key: &str,
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
    .bind(key)
    .fetch_one(connection)
    .await?;
    Ok(Ok(Transfer {
        id,
        from: from.to_string(),
        to: order.to.clone(),
        amount: order.amount,
        reference: order.reference.clone(),
        idempotency_key: key.to_owned(),
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
