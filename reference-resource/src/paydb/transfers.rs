//! Transfers: the guarded writes, made at once or accepted to be made later.

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use fence_core::{Effect, Key, Receipt};
use fence_http::Fenced;
use fence_pg::sqlx::{Guarded, Once, Replay};
use fence_pg::{IdempotentRequest, StoredAnswer};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Serialize;
use sqlx::PgPool;

use super::answer::{Own, Problem, stored, with_receipt};
use super::app::Ledger;
use super::deadline::{commit_in_time, in_time};
use super::jobs;
use super::ledger::{self, Transfer};
use super::order::{Order, read_key};

/// `POST /accounts/{id}/transfers`
pub(super) async fn create(
    ledger: Fenced<Ledger>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    // Read whole before anything is decided: a body may be long on its way, and another holder may come meanwhile.
    let order = Order::read(body).await;
    let request = read_key(&headers).and_then(|key| {
        let order = order?;
        Ok((order.under(key)?, order))
    });
    let when = match jobs::may_wait(&headers) {
        true => When::Later,
        false => When::Now,
    };
    let turn = ledger.store().turn(ledger.claim()).await?;
    turn.during(settle(ledger, request, when)).await
}

async fn settle(
    ledger: Fenced<Ledger>,
    request: Result<(IdempotentRequest, Order), Own>,
    when: When,
) -> Result<Response, Problem> {
    match in_time(decide(&ledger, request, when)).await? {
        Decided::Replayed(replay) => {
            let (receipt, answer) = commit_in_time(async { Ok(replay.receipt().await?) }).await?;
            Ok(replayed(receipt, answer))
        }
        Decided::Done(guarded, effect, answer) => {
            let receipt = commit_in_time(async { Ok(guarded.commit(effect).await?) }).await?;
            Ok(with_receipt(receipt, stored(answer)))
        }
        Decided::Refused(guarded, own) => {
            let effect = Effect::NoWrite(own.text());
            // The receipt is of an admission alone: the answer is the refusal.
            drop(commit_in_time(async { Ok(guarded.commit(effect).await?) }).await?);
            Err(own.into())
        }
    }
}

/// `GET /accounts/{id}/transfers`
pub(super) async fn list(
    State(pool): State<PgPool>,
    account: Result<Path<String>, PathRejection>,
) -> Result<Json<Vec<Transfer>>, Problem> {
    let Path(account) = account?;
    if Key::check(&account).is_err() {
        return Err(Own::unknown_account(&account, StatusCode::NOT_FOUND).into());
    }
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
pub(super) async fn fence(ledger: Fenced<Ledger>) -> Result<Response, Problem> {
    let turn = ledger.store().turn(ledger.claim()).await?;
    turn.during(async move {
        let raise = async { Ok(ledger.store().raise(ledger.claim()).await?) };
        let receipt = commit_in_time(raise).await?;
        Ok(with_receipt(receipt, StatusCode::NO_CONTENT))
    })
    .await
}

/// When the transfer is to be made.
#[derive(Clone, Copy)]
enum When {
    Now,
    /// By a worker, whenever that runs.
    Later,
}

/// What is to be answered, once it is committed.
enum Decided {
    /// The stored answer of a request that was completed before.
    Replayed(Replay),
    /// Done, accepted for later, or refused under the lock; the answer is stored in the same transaction.
    Done(Guarded, Effect, StoredAnswer),
    /// Refused on its own merits, and not stored: it will be refused again. Its admission is committed: it was a contact.
    Refused(Guarded, Own),
}

/// Decides, and writes, in one transaction that is still to be committed.
async fn decide(
    ledger: &Fenced<Ledger>,
    request: Result<(IdempotentRequest, Order), Own>,
    when: When,
) -> Result<Decided, Problem> {
    let claim = ledger.claim();
    let account = &claim.key;
    let (request, order) = match request {
        Ok(request) => request,
        Err(own) => return Ok(Decided::Refused(ledger.open().await?, own)),
    };
    let mut new = match ledger.store().open_once(claim, &request).await? {
        Once::Replayed(replay) => return Ok(Decided::Replayed(replay)),
        Once::Reused(guarded) => return Ok(Decided::Refused(guarded, Own::idempotency_key_reused())),
        Once::New(new) => new,
    };
    if let Err(own) = order.check(account) {
        return Ok(Decided::Refused(new.leave(), own));
    }
    let connection = new.connection();
    let (effect, status, text) = match when {
        When::Later => {
            let job = jobs::accept(connection, claim, &order, request.key()).await?;
            (Effect::Deferred, StatusCode::ACCEPTED, json(&job))
        }
        When::Now => match ledger::transfer(connection, account, &order, request.key()).await? {
            Ok(transfer) => (Effect::Applied, StatusCode::CREATED, json(&transfer)),
            Err(own) => (Effect::NoWrite(own.text()), own.status, own.text()),
        },
    };
    let answer = StoredAnswer {
        status: status.as_u16(),
        content_type: super::answer::content_type(status).to_owned(),
        body: text.into_bytes(),
    };
    Ok(Decided::Done(new.complete(&answer).await?, effect, answer))
}

/// The stored answer, byte for byte.
fn replayed(receipt: Receipt, answer: StoredAnswer) -> Response {
    let mut response = with_receipt(receipt, stored(answer));
    let headers = response.headers_mut();
    headers.insert("idempotency-replayed", HeaderValue::from_static("true"));
    response
}

fn json(answer: &impl Serialize) -> String {
    serde_json::to_string(answer).expect("texts and numbers always serialize")
}
