//! The decision over SQL, and that it is fence-core's.

use fence_core::{
    Claim, ClassName, Decision, GrantId, Key, Mark, MissingPart, Presented, Ranges, Refusal, Token,
    TokenRange,
};
use fence_pg::{GuardError, Refused};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::support::{CLASS, Database, OPEN, admit, claim, code, failure, refused, token};

#[tokio::test]
async fn a_newer_claim_is_admitted_and_the_older_one_is_refused_with_both_numbers() {
    let database = Database::guarded().await;
    let mut guarded = fence_pg::sqlx::begin(&database.pool, &claim("acct-1", 34))
        .await
        .unwrap();
    sqlx::query("INSERT INTO transfer (from_account, amount) VALUES ('acct-1', 5)")
        .execute(guarded.connection())
        .await
        .unwrap();
    let receipt = guarded.commit(fence_core::Effect::Applied).await.unwrap();
    assert_eq!(receipt.claim(), &claim("acct-1", 34));
    assert_eq!(receipt.effect(), &fence_core::Effect::Applied);

    let late = refused(fence_pg::sqlx::begin(&database.pool, &claim("acct-1", 33)).await);
    let (presented, seen) = (token(33), token(34));
    assert_eq!(late, Refused::Claim(Refusal::Stale { presented, seen }));
    assert_eq!(database.number("SELECT count(*) FROM transfer").await, 1);
}

#[tokio::test]
async fn the_example_that_the_crate_opens_with_does_what_it_says() {
    let (_, after) = include_str!("../../src/lib.rs").split_once("```sql").unwrap();
    let (example, _) = after.split_once("```").unwrap();
    let example = example.replace("//!", "");
    let database = Database::guarded().await;
    let refused = failure(&database.client().await, &example).await;
    assert_eq!(refused.code().code(), "ZF001");
    assert!(example.contains(refused.detail().unwrap()), "{refused:?}");
    assert_eq!(
        database.number("SELECT sum(amount)::bigint FROM transfer").await,
        5
    );
}

#[tokio::test]
async fn each_refusal_has_its_code_and_a_stale_one_its_exact_detail() {
    let database = Database::guarded().await;
    let client = database.client().await;
    client.batch_execute(&admit("acct-1", 34)).await.unwrap();
    let t = |revision: i64| token(revision).to_string();
    for function in ["admit", "raise_mark"] {
        for (case, arguments, expected) in [
            ("stale", format!("'{CLASS}', 'acct-1', {}, 'g33'", t(33)), "ZF001"),
            (
                "stale, its own grant id",
                format!("'{CLASS}', 'acct-1', {}, 'g34'", t(33)),
                "ZF001",
            ),
            ("no token", format!("'{CLASS}', 'acct-1', NULL, 'g35'"), "ZF002"),
            ("no grant id", format!("'{CLASS}', 'acct-1', {}", t(35)), "ZF002"),
            (
                "an empty grant id",
                format!("'{CLASS}', 'acct-1', {}, ''", t(35)),
                "ZF002",
            ),
            ("zero", format!("'{CLASS}', 'acct-1', 0, 'g35'"), "ZF003"),
            ("negative", format!("'{CLASS}', 'acct-1', -1, 'g35'"), "ZF003"),
            (
                "another grant",
                format!("'{CLASS}', 'acct-1', {}, 'g99'", t(34)),
                "ZF004",
            ),
            (
                "above the epoch",
                format!("'{CLASS}', 'acct-1', {}, 'g35'", (2_i64 << 48) + 1),
                "ZF005",
            ),
            (
                "below the epoch, no mark yet",
                format!("'{CLASS}', 'acct-2', 7, 'g35'"),
                "ZF005",
            ),
            (
                "revision 0",
                format!("'{CLASS}', 'acct-2', {}, 'g35'", t(0)),
                "ZF005",
            ),
            ("no key", format!("'{CLASS}', NULL, {}, 'g35'", t(35)), "ZF006"),
            (
                "an empty key",
                format!("'{CLASS}', '', {}, 'g35'", t(35)),
                "ZF006",
            ),
            (
                "a class with a typing error",
                format!("'paydb.acount', 'acct-1', {}, 'g35'", t(35)),
                "ZF007",
            ),
            ("no class", format!("NULL, 'acct-1', {}, 'g35'", t(35)), "ZF007"),
            (
                "a grant id with a space",
                format!("'{CLASS}', 'acct-1', {}, 'g 35'", t(35)),
                "22023",
            ),
            ("text", format!("'{CLASS}', 'acct-1', 'forty', 'g35'"), "22P02"),
            (
                "above bigint",
                format!("'{CLASS}', 'acct-1', '9223372036854775808', 'g35'"),
                "22003",
            ),
        ] {
            let sql = format!("SELECT fence.{function}({arguments})");
            assert_eq!(code(&client, &sql).await, expected, "{function}, {case}");
        }
    }
    let stale = failure(&client, &admit("acct-1", 33)).await;
    assert_eq!(
        stale.detail(),
        Some(format!("presented {}, seen {}", t(33), t(34)).as_str())
    );
    assert!(stale.hint().unwrap().contains("Stop this work"));
    assert_eq!(database.number("SELECT count(*) FROM fence.high_water").await, 1);
}

#[tokio::test]
async fn every_refusal_reaches_rust_as_its_own_value() {
    let database = Database::guarded().await;
    let pool = &database.pool;
    let seen = claim("acct-1", 34);
    let receipt = fence_pg::sqlx::raise_mark(pool, &seen).await.unwrap();
    assert_eq!(
        receipt.effect(),
        &fence_core::Effect::NoWrite("raised the mark".into())
    );

    let refusal = |claim: Claim| async move { refused(fence_pg::sqlx::raise_mark(pool, &claim).await) };
    let (presented, token) = (token(33), seen.token);
    let stale = Refusal::Stale {
        presented,
        seen: token,
    };
    assert_eq!(refusal(claim("acct-1", 33)).await, Refused::Claim(stale));
    let missing = Refusal::Missing(MissingPart::GrantId);
    let no_grant = Claim {
        grant_id: None,
        ..seen.clone()
    };
    assert_eq!(refusal(no_grant).await, Refused::Claim(missing));
    let other_grant = Claim {
        grant_id: GrantId::new("b").ok(),
        ..seen.clone()
    };
    assert_eq!(
        refusal(other_grant).await,
        Refused::Claim(Refusal::Collision { token })
    );
    let outside = Claim {
        token: Token::MAX,
        ..seen.clone()
    };
    let unknown = Refusal::UnknownEpoch {
        presented: Token::MAX,
    };
    assert_eq!(refusal(outside).await, Refused::Claim(unknown));
    let typo = Claim {
        class: ClassName::new("paydb.acount").unwrap(),
        ..seen
    };
    assert_eq!(refusal(typo).await, Refused::UnknownClass("paydb.acount".into()));

    let mut guarded = fence_pg::sqlx::begin(pool, &claim("acct-1", 35)).await.unwrap();
    let wrong_key = sqlx::query("INSERT INTO transfer (from_account, amount) VALUES ('acct-2', 5)")
        .execute(guarded.connection())
        .await
        .unwrap_err();
    let error = fence_pg::sqlx::sort(wrong_key);
    assert!(
        matches!(&error, GuardError::Refused(Refused::WrongKey(detail)) if detail.contains("'acct-2'")),
        "{error:?}"
    );
    let no_admission = sqlx::query("INSERT INTO transfer (from_account, amount) VALUES ('acct-2', 5)")
        .execute(pool)
        .await
        .unwrap_err();
    let missing = Refused::Claim(Refusal::Missing(MissingPart::Token));
    assert_eq!(refused::<()>(Err(fence_pg::sqlx::sort(no_admission))), missing);
}

#[tokio::test]
async fn an_open_class_takes_any_issuers_tokens_and_keeps_no_grant_id() {
    let database = Database::guarded().await;
    let client = database.client().await;
    let present =
        |number: i64, grant: &str| format!("SELECT fence.admit('{OPEN}', 'lease', {number}, {grant})");
    client.batch_execute(&present(9674, "'a'")).await.unwrap();
    client.batch_execute(&present(9674, "'b'")).await.unwrap();
    client.batch_execute(&present(10008, "NULL")).await.unwrap();
    assert_eq!(code(&client, &present(9674, "'a'")).await, "ZF001");
    client.batch_execute(&present(i64::MAX, "NULL")).await.unwrap();
    assert_eq!(
        database
            .number("SELECT count(*) FROM fence.high_water WHERE grant_id IS NULL")
            .await,
        1
    );
}

#[tokio::test]
async fn marks_of_two_keys_and_of_two_classes_are_their_own() {
    let database = Database::guarded().await;
    database
        .run("SELECT fence.declare('paydb.other', 'entity')")
        .await;
    let client = database.client().await;
    client.batch_execute(&admit("acct-1", 34)).await.unwrap();
    client.batch_execute(&admit("acct-2", 33)).await.unwrap();
    let other_class = format!(
        "SELECT fence.admit('paydb.other', 'acct-1', {}, 'g33')",
        token(33)
    );
    client.batch_execute(&other_class).await.unwrap();
    assert_eq!(code(&client, &admit("acct-1", 33)).await, "ZF001");
}

/// One presentation: a token, from a small pool so that equals and neighbours occur, and a grant id or none.
fn presentation() -> impl Strategy<Value = (Token, Option<GrantId>)> {
    let edges = prop::sample::select(vec![
        1,
        (1_i64 << 48) - 1,
        1 << 48,
        (1 << 48) + 1,
        (1 << 48) + 1000,
        (2 << 48) - 1,
        2 << 48,
        (2 << 48) + 1,
        (2 << 48) + 5,
        (2 << 48) + 6,
        (3 << 48) + 1,
        i64::MAX,
    ]);
    let near = (0_i64..8).prop_map(|revision| (1 << 48) + revision);
    let grant = prop::option::weighted(0.9, prop::sample::select(vec!["a", "b"]));
    (prop_oneof![1 => edges, 3 => near], grant).prop_map(|(token, grant)| {
        (
            Token::new(token).unwrap(),
            grant.map(|id| GrantId::new(id).unwrap()),
        )
    })
}

#[tokio::test]
async fn over_random_sequences_sql_decides_as_fence_core_does() {
    let database = Database::guarded().await;
    database
        .run(&format!(
            "SELECT fence.register_epoch('entity', 2, {})",
            (2_i64 << 48) + 5
        ))
        .await;
    let range = |epoch: u16, ceiling: Option<i64>| {
        let epoch = fence_core::Epoch::new(epoch).unwrap();
        TokenRange::of_epoch(epoch, ceiling.map(|number| Token::new(number).unwrap())).unwrap()
    };
    let registered = Ranges::Registered(vec![range(1, None), range(2, Some((2 << 48) + 5))]);

    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let sequences = prop::collection::vec(presentation(), 12);
    for number in 0..40 {
        let sequence = sequences.new_tree(&mut runner).unwrap().current();
        for (class, ranges) in [(CLASS, &registered), (OPEN, &Ranges::Open)] {
            let mut mark: Option<Mark> = None;
            for (token, grant_id) in &sequence {
                let claim = Claim {
                    class: ClassName::new(class).unwrap(),
                    key: Key::text(format!("acct-{number}")).unwrap(),
                    token: *token,
                    grant_id: grant_id.clone(),
                };
                let presented = Presented::Token(*token, grant_id.clone());
                let expected = fence_core::admit(mark.as_ref(), ranges, &presented);
                let decided = fence_pg::sqlx::raise_mark(&database.pool, &claim).await;
                match expected {
                    Decision::Admit => drop(decided.unwrap()),
                    Decision::Raise(raised) => {
                        drop(decided.unwrap());
                        mark = Some(raised);
                    }
                    Decision::Refuse(refusal) => {
                        assert_eq!(
                            refused(decided),
                            Refused::Claim(refusal),
                            "sequence {number}: {sequence:?}"
                        );
                    }
                }
                let row = sqlx::query_as(
                    "SELECT token, grant_id FROM fence.high_water WHERE class = $1 AND key = $2",
                )
                .bind(class)
                .bind(claim.key.as_str())
                .fetch_optional(&database.pool)
                .await
                .unwrap();
                let stored = row.map(|(token, grant_id): (i64, Option<String>)| Mark {
                    token: Token::new(token).unwrap(),
                    grant_id: grant_id.map(|id| GrantId::new(id).unwrap()),
                });
                assert_eq!(stored, mark, "sequence {number}: {sequence:?}");
            }
        }
    }
}
