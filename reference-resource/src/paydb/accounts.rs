//! Accounts.

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use fence_core::Key;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use sqlx::PgPool;

use super::answer::{Own, Problem};
use super::deadline::{commit_in_time, in_time};
use super::order::read_json;

/// An account. The balance is in minor units.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Account {
    id: String,
    balance: i64,
}

/// `POST /accounts`
pub(super) async fn create(State(pool): State<PgPool>, body: Body) -> Result<Response, Problem> {
    let account: Account = read_json(body).await?;
    Key::text(account.id.as_str()).map_err(|error| Own::invalid(format!("the id: {error}")))?;
    if account.balance < 0 {
        let detail = format!("a balance is at least 0, got {}", account.balance);
        return Err(Own::invalid(detail).into());
    }
    // Without a connection nothing can have landed; once the statement is sent, which commits by itself, it may have.
    let mut connection = in_time(async { Ok(pool.acquire().await?) }).await?;
    let made = commit_in_time(async {
        let insert = sqlx::query("INSERT INTO account (id, balance) VALUES ($1, $2) ON CONFLICT DO NOTHING")
            .bind(&account.id)
            .bind(account.balance);
        let made = insert.execute(&mut *connection).await;
        made.map_err(|error| fence_pg::sqlx::sort_commit(error).into())
    })
    .await?;
    if made.rows_affected() == 0 {
        return Err(Own::account_exists(&account.id).into());
    }
    Ok((StatusCode::CREATED, Json(account)).into_response())
}

/// `GET /accounts/{id}`
pub(super) async fn show(
    State(pool): State<PgPool>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<Account>, Problem> {
    let Path(id) = id?;
    if Key::check(&id).is_err() {
        return Err(Own::unknown_account(&id, StatusCode::NOT_FOUND).into());
    }
    let balance: Option<i64> = in_time(async {
        let select = sqlx::query_scalar("SELECT balance FROM account WHERE id = $1").bind(&id);
        Ok(select.fetch_optional(&pool).await?)
    })
    .await?;
    match balance {
        Some(balance) => Ok(Json(Account { id, balance })),
        None => Err(Own::unknown_account(&id, StatusCode::NOT_FOUND).into()),
    }
}
