//! Transfers: the guarded writes.

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use axum::Json;
use fence_core::{Claim, Effect};
use fence_http::axum::Presented;
use fence_pg::sqlx::Guarded;
use http::{HeaderMap, HeaderValue, StatusCode};
use sqlx::PgPool;

use super::answer::{Own, Problem, stored, with_receipt};
use super::deadline::{commit_in_time, in_time};
use super::ledger::{self, Completed, Transfer};
use super::order::{IdempotencyKey, Order};

/// `POST /accounts/{id}/transfers`
pub(super) async fn create(
    State(pool): State<PgPool>,
    Presented(claim): Presented,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    // Read whole before anything is decided: a body may be long on its way, and another holder may come meanwhile.
    let order = Order::read(body).await;
    let key = IdempotencyKey::read(&headers);
    let request = key.and_then(|key| Ok((key, order?)));
    let decided = in_time(decide(&pool, &claim, request)).await?;
    match decided {
        Decided::Replayed(receipt, completed) => Ok(replay(receipt, completed)),
        Decided::Ready(guarded, effect, answer) => {
            let receipt = commit_in_time(async { Ok(guarded.commit(effect.clone()).await?) }).await?;
            match answer {
                Answer::Stored(completed) if effect == Effect::Replayed => Ok(replay(receipt, completed)),
                Answer::Stored(completed) => {
                    Ok(with_receipt(receipt, stored(completed.status, completed.answer)))
                }
                Answer::Refused(own) => Err(own.into()),
            }
        }
    }
}

/// `GET /accounts/{id}/transfers`
pub(super) async fn list(
    State(pool): State<PgPool>,
    account: Result<Path<String>, PathRejection>,
) -> Result<Json<Vec<Transfer>>, Problem> {
    let Path(account) = account?;
    let transfers = in_time(async {
        let mut snapshot = pool
            .begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            .await?;
        let transfers = ledger::transfers_of(&mut *snapshot, &account).await?;
        let known: bool = sqlx::query_scalar("SELECT EXISTS (SELECT FROM account WHERE id = $1)")
            .bind(&account)
            .fetch_one(&mut *snapshot)
            .await?;
        snapshot.commit().await?;
        Ok(known.then_some(transfers))
    })
    .await?;
    transfers
        .map(Json)
        .ok_or_else(|| Own::unknown_account(&account, StatusCode::NOT_FOUND).into())
}

/// `POST /accounts/{id}/fence`
pub(super) async fn fence(
    State(pool): State<PgPool>,
    Presented(claim): Presented,
) -> Result<Response, Problem> {
    let receipt = commit_in_time(async { Ok(fence_pg::sqlx::raise_mark(&pool, &claim).await?) }).await?;
    Ok(with_receipt(receipt, StatusCode::NO_CONTENT))
}

/// What is to be answered, once it is committed.
enum Decided {
    /// The stored answer; nothing is to be committed.
    Replayed(fence_core::Receipt, Completed),
    Ready(Guarded, Effect, Answer),
}

enum Answer {
    /// Is in the database, or will be with the commit.
    Stored(Completed),
    /// Refused on its own merits, and not stored: it will be refused again.
    Refused(Own),
}

/// Decides, and writes, in one transaction that is still to be committed.
async fn decide(
    pool: &PgPool,
    claim: &Claim,
    request: Result<(IdempotencyKey, Order), Own>,
) -> Result<Decided, Problem> {
    let account = &claim.key;
    let mut opened = fence_pg::sqlx::open(pool, claim).await?;
    if let Ok((key, order)) = &request
        && let Some(completed) = ledger::completed(opened.connection(), account, key).await?
        && completed.order == *order
    {
        return Ok(Decided::Replayed(opened.replay().await?, completed));
    }
    let mut guarded = opened.admit().await?;
    let (key, order) = match request {
        Ok(request) => request,
        Err(own) => return Ok(refuse(guarded, own)),
    };
    // Again: its first copy may have been completed while this one waited for its turn.
    if let Some(completed) = ledger::completed(guarded.connection(), account, &key).await? {
        if completed.order != order {
            return Ok(refuse(guarded, Own::idempotency_key_reused()));
        }
        return Ok(Decided::Ready(
            guarded,
            Effect::Replayed,
            Answer::Stored(completed),
        ));
    }
    if let Err(own) = order.check(account) {
        return Ok(refuse(guarded, own));
    }
    let made = ledger::transfer(guarded.connection(), account, &order, &key).await?;
    let (effect, status, answer) = match made {
        Ok(transfer) => {
            let answer = serde_json::to_string(&transfer).expect("texts and numbers always serialize");
            (Effect::Applied, StatusCode::CREATED, answer)
        }
        Err(own) => (Effect::NoWrite(own.text()), own.status, own.text()),
    };
    let completed = Completed {
        order,
        status,
        answer,
    };
    ledger::complete(guarded.connection(), account, &key, &completed).await?;
    Ok(Decided::Ready(guarded, effect, Answer::Stored(completed)))
}

/// A refusal on the request's own merits commits its admission: it was a contact.
fn refuse(guarded: Guarded, own: Own) -> Decided {
    Decided::Ready(guarded, Effect::NoWrite(own.text()), Answer::Refused(own))
}

/// The stored answer, byte for byte.
fn replay(receipt: fence_core::Receipt, completed: Completed) -> Response {
    let mut response = with_receipt(receipt, stored(completed.status, completed.answer));
    let headers = response.headers_mut();
    headers.insert("idempotency-replayed", HeaderValue::from_static("true"));
    response
}
