//! `fence token`.

use super::command::fence;

#[test]
fn a_minted_token_is_taken_apart() {
    let said = fence(&["token", "562949953421399"]);
    assert_eq!(said.code, 0);
    for line in [
        "token     562949953421399",
        "epoch     2, of tokens 562949953421313 to 844424930131967",
        "revision  87: the store's transaction that granted it",
        "header    Fencing-Token: \"562949953421399\";grant=\"GRANT-ID\"",
    ] {
        assert!(
            said.out.lines().any(|said| said == line),
            "{line:?} in {}",
            said.out
        );
    }
}

#[test]
fn the_largest_token_belongs_to_the_last_epoch() {
    let said = fence(&["token", "9223372036854775807"]);
    assert!(said.out.contains("epoch     32767, of tokens"), "{}", said.out);
    assert!(said.out.contains("revision  281474976710655:"), "{}", said.out);
}

#[test]
fn a_token_of_another_issuer_is_said_to_be_opaque() {
    let said = fence(&["token", "5"]);
    assert_eq!(said.code, 0);
    assert!(
        said.out.contains("epoch     none: below 281474976710657"),
        "{}",
        said.out
    );
}

#[test]
fn a_token_of_revision_0_is_said_to_be_just_that() {
    for (token, epoch) in [("562949953421312", 2), ("281474976710656", 1)] {
        let said = fence(&["token", token]);
        assert_eq!(said.code, 0);
        let words =
            format!("epoch     none: it would be revision 0 of epoch {epoch}, and revisions begin at 1");
        assert!(said.out.contains(&words), "{}", said.out);
        assert!(!said.out.contains("below"), "{}", said.out);
    }
}

#[test]
fn a_header_that_was_pasted_is_answered_with_its_digits() {
    for pasted in [
        "\"281474976710691\";grant=\"x\"",
        "Fencing-Token: \"281474976710691\";grant=\"x\"",
        "281474976710691;grant=x",
    ] {
        let said = fence(&["token", pasted]);
        assert_eq!(said.code, 2, "{pasted}");
        assert!(
            said.err.contains("give the digits alone: 281474976710691\n"),
            "{pasted}: {}",
            said.err
        );
    }
}

#[test]
fn what_is_no_token_is_code_2_with_the_right_form() {
    for (text, form) in [
        ("007", "no leading zero"),
        ("0", "no leading zero"),
        ("-5", "1 to 19 ASCII digits"),
        ("+5", "1 to 19 ASCII digits"),
        (" 5", "1 to 19 ASCII digits"),
        ("5.0", "1 to 19 ASCII digits"),
        ("٥", "1 to 19 ASCII digits"),
        ("", "empty"),
        ("9223372036854775808", "at most 9223372036854775807"),
    ] {
        let said = fence(&["token", text]);
        assert_eq!(said.code, 2, "{text:?}: {}", said.err);
        assert!(
            said.err.contains(form),
            "{text:?} should name {form}: {}",
            said.err
        );
    }
}
