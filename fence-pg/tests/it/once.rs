//! Idempotency beside the fence: a completed request is answered again whoever asks, anything else is fenced first.

use fence_core::{Claim, Effect, Receipt, Refusal};
use fence_pg::sqlx::{Once, begin_once, raise_mark};
use fence_pg::{COMPLETED_TABLE_SQL, GuardError, IdempotentRequest, Refused, StoredAnswer};

use crate::support::{Database, claim, wait_for_lock_waiters};

async fn database() -> Database {
    let database = Database::guarded().await;
    database.run(COMPLETED_TABLE_SQL).await;
    database
}

fn request(key: &str, principal: &str, content: &str) -> IdempotentRequest {
    IdempotentRequest::new(key, principal, content.as_bytes()).unwrap()
}

fn answer(body: &str) -> StoredAnswer {
    StoredAnswer {
        status: 201,
        content_type: "application/json".to_owned(),
        body: body.as_bytes().to_vec(),
    }
}

/// Does a request as a resource does: its effect is a transfer, its answer names the token that did it.
async fn pay(
    database: &Database,
    claim: &Claim,
    request: &IdempotentRequest,
) -> Result<(Receipt, u16, String), GuardError> {
    let (receipt, answer) = match begin_once(&database.pool, claim, request).await? {
        Once::New(mut new) => {
            sqlx::query("INSERT INTO transfer (from_account, amount) VALUES ($1, 5)")
                .bind(claim.key.as_str())
                .execute(new.connection())
                .await
                .map_err(fence_pg::sqlx::sort)?;
            let answer = answer(&claim.token.to_string());
            (
                new.complete(&answer).await?.commit(Effect::Applied).await?,
                answer,
            )
        }
        Once::Replayed(replay) => replay.receipt().await?,
        Once::Reused(guarded) => {
            let receipt = guarded.commit(Effect::NoWrite("reused".to_owned())).await?;
            let answer = StoredAnswer {
                status: 422,
                ..answer("reused")
            };
            (receipt, answer)
        }
    };
    let text = String::from_utf8(answer.body).unwrap();
    Ok((receipt, answer.status, text))
}

async fn transfers(database: &Database) -> i64 {
    database.number("SELECT count(*) FROM transfer").await
}

#[tokio::test]
async fn a_request_that_comes_again_is_answered_again_also_under_a_token_that_is_stale_by_now() {
    let database = database().await;
    let (old, new) = (claim("acct-1", 33), claim("acct-1", 34));
    let asked = request("k1", "team-1", "pay 5");
    let (receipt, status, first) = pay(&database, &old, &asked).await.unwrap();
    assert_eq!((receipt.effect(), status), (&Effect::Applied, 201));
    drop(raise_mark(&database.pool, &new).await.unwrap());
    let (receipt, status, again) = pay(&database, &old, &asked).await.unwrap();
    assert_eq!((receipt.effect(), status), (&Effect::Replayed, 201));
    assert_eq!(again, first);
    // Anything else is fenced first.
    for other in [
        request("k2", "team-1", "pay 5"),
        request("k1", "team-1", "pay 6"),
        request("k1", "team-2", "pay 5"),
    ] {
        let refused = pay(&database, &old, &other).await.unwrap_err();
        assert!(
            matches!(
                refused,
                GuardError::Refused(Refused::Claim(Refusal::Stale { .. }))
            ),
            "{refused:?}"
        );
    }
    assert_eq!(transfers(&database).await, 1);
}

#[tokio::test]
async fn the_key_of_another_principal_or_of_another_content_is_told_so_and_shows_no_answer() {
    let database = database().await;
    let old = claim("acct-1", 33);
    let done = pay(&database, &old, &request("k1", "team-1", "pay 5"))
        .await
        .unwrap();
    assert_eq!(done.1, 201);
    for (token, other) in [
        (34, request("k1", "team-2", "pay 5")),
        (35, request("k1", "team-1", "pay 6")),
    ] {
        let (receipt, status, text) = pay(&database, &claim("acct-1", token), &other).await.unwrap();
        assert_eq!((status, text.as_str()), (422, "reused"));
        assert!(matches!(receipt.effect(), Effect::NoWrite(_)));
    }
    assert_eq!(transfers(&database).await, 1);
    // It was a contact: the mark is raised.
    let refused = pay(&database, &claim("acct-1", 34), &request("k3", "team-1", "x")).await;
    assert!(matches!(refused, Err(GuardError::Refused(_))), "{refused:?}");
}

#[tokio::test]
async fn one_key_means_another_request_for_another_account() {
    let database = database().await;
    let asked = request("k1", "team-1", "pay 5");
    for account in ["acct-1", "acct-2"] {
        let (receipt, ..) = pay(&database, &claim(account, 33), &asked).await.unwrap();
        assert_eq!(receipt.effect(), &Effect::Applied, "{account}");
    }
    assert_eq!(transfers(&database).await, 2);
}

#[tokio::test]
async fn two_copies_at_once_have_one_effect_and_one_answer() {
    let database = database().await;
    let asked = request("k1", "team-1", "pay 5");
    let old = claim("acct-1", 33);
    let Once::New(mut first) = begin_once(&database.pool, &old, &asked).await.unwrap() else {
        panic!("it is new");
    };
    sqlx::query("INSERT INTO transfer (from_account, amount) VALUES ('acct-1', 5)")
        .execute(first.connection())
        .await
        .unwrap();
    let second = pay(&database, &old, &asked);
    let first = async {
        wait_for_lock_waiters(&database, 1).await;
        let guarded = first.complete(&answer("the first")).await.unwrap();
        drop(guarded.commit(Effect::Applied).await.unwrap());
    };
    let (second, ()) = tokio::join!(second, first);
    let (receipt, _, text) = second.unwrap();
    assert_eq!(
        (receipt.effect(), text.as_str()),
        (&Effect::Replayed, "the first")
    );
    assert_eq!(transfers(&database).await, 1);
}

#[tokio::test]
async fn what_is_rolled_back_or_left_is_not_completed() {
    let database = database().await;
    let asked = request("k1", "team-1", "pay 5");
    let old = claim("acct-1", 33);
    for committed in [false, true] {
        let Once::New(new) = begin_once(&database.pool, &old, &asked).await.unwrap() else {
            panic!("it is new");
        };
        if committed {
            let no_write = Effect::NoWrite("too little".to_owned());
            drop(new.leave().commit(no_write).await.unwrap());
        } else {
            new.complete(&answer("x"))
                .await
                .unwrap()
                .rollback()
                .await
                .unwrap();
        }
    }
    let (receipt, ..) = pay(&database, &old, &asked).await.unwrap();
    assert_eq!(receipt.effect(), &Effect::Applied);
}
