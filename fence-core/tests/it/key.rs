use fence_core::{Key, KeyError};
use proptest::prelude::*;
use serde_json::Value;

fn vectors() -> Value {
    serde_json::from_str(include_str!("../../vectors/keys.json")).unwrap()
}

#[test]
fn the_vectors_that_are_shared_with_the_sql_hold() {
    let vectors = vectors();
    for vector in vectors["composite"].as_array().unwrap() {
        let parts: Vec<&str> = vector["parts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|part| part.as_str().unwrap())
            .collect();
        assert_eq!(
            Key::composite(&parts).unwrap().as_str(),
            vector["key"].as_str().unwrap(),
            "{parts:?}"
        );
    }
    for vector in vectors["integer"].as_array().unwrap() {
        let value: i64 = vector["value"].as_str().unwrap().parse().unwrap();
        assert_eq!(Key::integer(value).as_str(), vector["key"].as_str().unwrap());
    }
    for vector in vectors["uuid"].as_array().unwrap() {
        let hex = vector["value"].as_str().unwrap().replace('-', "");
        let bits = u128::from_str_radix(&hex, 16).unwrap();
        assert_eq!(Key::uuid(bits).as_str(), vector["key"].as_str().unwrap());
    }
}

#[test]
fn texts_that_are_no_key_are_refused_with_their_reason() {
    assert_eq!(Key::text("").unwrap_err(), KeyError::Empty);
    assert_eq!(Key::text("a\0b").unwrap_err(), KeyError::Nul);
    assert_eq!(
        Key::text("x".repeat(513)).unwrap_err(),
        KeyError::TooLong { bytes: 513 }
    );
    assert!(Key::text("x".repeat(512)).is_ok());
    assert_eq!(
        Key::composite(&["a"]).unwrap_err(),
        KeyError::FewParts { parts: 1 }
    );
    assert!(serde_json::from_str::<Key>("42").is_err());
}

fn parts() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[ab/\\\\]{0,4}", 3..=3)
}

proptest! {
    #[test]
    fn two_composites_have_one_text_only_if_their_parts_are_equal(a in parts(), b in parts()) {
        let key = |parts: &[String]| Key::composite(&parts.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
        prop_assert_eq!(key(&a) == key(&b), a == b);
    }

    #[test]
    fn a_text_key_is_itself_byte_for_byte(text in "[^\\x00]{1,40}") {
        let key = Key::text(text.clone()).unwrap();
        prop_assert_eq!(key.as_str(), text);
    }
}
