use fence_core::{ClassName, GrantId, TierName};

#[test]
fn names_of_the_form_are_taken_and_others_refused_with_the_form() {
    for good in ["a", "paydb.account", "x-1.y_2.z", &"a".repeat(64)] {
        assert_eq!(ClassName::new(good).unwrap().as_str(), good);
        assert_eq!(good.parse::<TierName>().unwrap().to_string(), good);
    }
    for bad in [
        "",
        ".",
        "a.",
        ".a",
        "a..b",
        "1a",
        "a.1",
        "A",
        "a b",
        "pay/eu",
        "é",
        &"a".repeat(65),
    ] {
        assert!(ClassName::new(bad).is_err(), "{bad:?}");
    }
    assert_eq!(
        ClassName::new("Pay").unwrap_err().to_string(),
        "a class name is 1 to 64 characters: parts of [a-z0-9_-] that begin with a letter, joined by points, got \"Pay\""
    );
}

#[test]
fn a_grant_id_is_1_to_64_of_its_alphabet() {
    for good in ["b2f1", "A.b_c:d-9", &"x".repeat(64)] {
        assert_eq!(GrantId::new(good).unwrap().as_str(), good);
    }
    for bad in ["", " ", "a b", "a/b", "a\"b", "é", "a\n", &"x".repeat(65)] {
        assert!(GrantId::new(bad).is_err(), "{bad:?}");
    }
    assert_eq!(
        GrantId::new("a b").unwrap_err().to_string(),
        "a grant id is 1 to 64 of [A-Za-z0-9._:-], got \"a b\""
    );
}
