use fence_core::{Epoch, Revision, Token};
use proptest::prelude::*;

fn epochs() -> impl Strategy<Value = Epoch> {
    (1..=32767u16).prop_map(|n| Epoch::new(n).unwrap())
}

fn revisions() -> impl Strategy<Value = Revision> {
    prop_oneof![1..(1u64 << 48), 1..5u64, (1u64 << 48) - 5..(1u64 << 48)]
        .prop_map(|n| Revision::new(n).unwrap())
}

proptest! {
    #[test]
    fn order_of_epoch_and_revision_is_order_of_the_integer(
        a in (epochs(), revisions()), b in (epochs(), revisions()),
    ) {
        prop_assert_eq!(a.cmp(&b), Token::mint(a.0, a.1).as_i64().cmp(&Token::mint(b.0, b.1).as_i64()));
    }

    #[test]
    fn a_minted_token_splits_into_what_it_was_minted_from(epoch in epochs(), revision in revisions()) {
        prop_assert_eq!(Token::mint(epoch, revision).split(), Some((epoch, revision)));
    }

    #[test]
    fn every_token_has_one_text_form(number in 1..=i64::MAX) {
        let token = Token::new(number).unwrap();
        let text = token.to_string();
        prop_assert_eq!(text.parse::<Token>().unwrap(), token);
        let other = format!("0{text}");
        prop_assert!(other.parse::<Token>().is_err());
        let other = format!("+{text}");
        prop_assert!(other.parse::<Token>().is_err());
        let other = format!(" {text}");
        prop_assert!(other.parse::<Token>().is_err());
        let other = format!("{text} ");
        prop_assert!(other.parse::<Token>().is_err());
    }

    #[test]
    fn a_text_that_parses_prints_as_itself(text in "[0-9+ -]{0,21}|\\PC{0,6}") {
        if let Ok(token) = text.parse::<Token>() {
            prop_assert_eq!(token.to_string(), text);
        }
    }

    #[test]
    fn json_carries_a_token_as_a_string_and_refuses_a_number(number in 1..=i64::MAX) {
        let token = Token::new(number).unwrap();
        let json = serde_json::to_string(&token).unwrap();
        prop_assert_eq!(&json, &format!("\"{number}\""));
        prop_assert_eq!(serde_json::from_str::<Token>(&json).unwrap(), token);
        prop_assert!(serde_json::from_str::<Token>(&number.to_string()).is_err());
    }
}

#[test]
fn the_corners_of_the_range_are_exact() {
    let last = Token::mint(Epoch::MAX, Revision::MAX);
    assert_eq!(last.as_i64(), i64::MAX);
    assert_eq!(last, Token::MAX);
    assert_eq!(Token::mint(Epoch::FIRST, Revision::FIRST).as_i64(), (1 << 48) + 1);
    assert_eq!(
        Epoch::new(0).unwrap_err().to_string(),
        "an epoch is 1 to 32767, got 0"
    );
    assert_eq!(
        Epoch::new(32768).unwrap_err().to_string(),
        "an epoch is 1 to 32767, got 32768"
    );
    assert!(Epoch::MAX.next().is_err());
    assert_eq!(Epoch::FIRST.next().unwrap().as_u16(), 2);
    assert!(Revision::new(0).is_err());
    assert_eq!(
        Revision::new(1 << 48).unwrap_err().to_string(),
        "a revision is 1 to 281474976710655, got 281474976710656"
    );
    assert_eq!(
        Token::new(0).unwrap_err().to_string(),
        "a token is 1 to 9223372036854775807, got 0"
    );
    assert!(Token::new(-1).is_err());
    assert_eq!(
        Token::new(5).unwrap().split(),
        None,
        "no epoch mints a number below 2^48"
    );
    assert_eq!(Token::new(1 << 48).unwrap().split(), None, "no revision is 0");
}

#[test]
fn texts_that_are_no_token_are_each_refused_with_their_reason() {
    for (text, reason) in [
        ("", "a token is 1 to 19 digits, got an empty text"),
        ("0", "a token has no leading zero, got \"0\""),
        ("007", "a token has no leading zero, got \"007\""),
        ("+40", "a token is 1 to 19 ASCII digits, got \"+40\""),
        ("-1", "a token is 1 to 19 ASCII digits, got \"-1\""),
        (" 40", "a token is 1 to 19 ASCII digits, got \" 40\""),
        ("40\n", "a token is 1 to 19 ASCII digits, got \"40\\n\""),
        ("4_0", "a token is 1 to 19 ASCII digits, got \"4_0\""),
        ("4e1", "a token is 1 to 19 ASCII digits, got \"4e1\""),
        ("0x10", "a token is 1 to 19 ASCII digits, got \"0x10\""),
        ("٤٠", "a token is 1 to 19 ASCII digits, got \"٤٠\""),
        (
            "9223372036854775808",
            "a token is at most 9223372036854775807, got \"9223372036854775808\"",
        ),
        (
            "10000000000000000000000",
            "a token is at most 9223372036854775807, got \"10000000000000000000000\"",
        ),
    ] {
        assert_eq!(text.parse::<Token>().unwrap_err().to_string(), reason, "{text:?}");
    }
    assert_eq!("9223372036854775807".parse::<Token>().unwrap(), Token::MAX);
}

#[test]
fn a_token_beyond_a_double_comes_back_unchanged() {
    let token = Token::mint(Epoch::new(32).unwrap(), Revision::FIRST);
    assert_ne!(
        token.as_i64() as f64 as i64,
        token.as_i64(),
        "the example would lose its last digit in a double"
    );
    let json = serde_json::to_value(token).unwrap();
    assert_eq!(serde_json::from_value::<Token>(json).unwrap(), token);
}
