//! The canonical text of a key in SQL, against the vectors that fence-core is tested with.

use serde_json::Value;

use crate::support::{Database, code};

#[tokio::test]
async fn sql_writes_every_key_as_the_shared_vectors_do() {
    let vectors: Value = serde_json::from_str(include_str!("../../../fence-core/vectors/keys.json")).unwrap();
    let database = Database::guarded().await;
    let client = database.client().await;
    for vector in vectors["composite"].as_array().unwrap() {
        let parts: Vec<&str> = vector["parts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|part| part.as_str().unwrap())
            .collect();
        let row = client
            .query_one("SELECT fence.key(VARIADIC $1::text[])", &[&parts])
            .await
            .unwrap();
        assert_eq!(row.get::<_, &str>(0), vector["key"], "{parts:?}");
    }
    for (kind, cast) in [("integer", "bigint"), ("uuid", "uuid")] {
        for vector in vectors[kind].as_array().unwrap() {
            let value = vector["value"].as_str().unwrap();
            let row = client
                .query_one(&format!("SELECT $1::text::{cast}::text"), &[&value])
                .await
                .unwrap();
            assert_eq!(row.get::<_, &str>(0), vector["key"], "{kind} {value}");
        }
    }
}

#[tokio::test]
async fn what_is_no_composite_key_is_refused() {
    let database = Database::guarded().await;
    let client = database.client().await;
    for arguments in [
        "'a'",
        "'a', NULL",
        "VARIADIC ARRAY[]::text[]",
        "VARIADIC NULL::text[]",
        "'a', repeat('x', 511)",
    ] {
        assert_eq!(
            code(&client, &format!("SELECT fence.key({arguments})")).await,
            "22023",
            "{arguments}"
        );
    }
    client
        .batch_execute("SELECT fence.key('a', repeat('x', 510))")
        .await
        .unwrap();
}
