//! The mark guard's own functions, one question after the other.

use fence_core::{Epoch, GrantId, Revision, Token};

use super::asked::{Ask, run};
use crate::history::ProbeKind as Kind;
use crate::run::RunError;
use crate::scenario::Half;

/// A class of the kit's own that takes any issuer's tokens.
pub(super) const OPEN: &str = "pause-kit.open";
const OTHER: &str = "pause-kit.other";
const TIERED: &str = "pause-kit.tiered";

const DOUBLES_END: i64 = 1 << 53;
const WORDS_END: i64 = 1 << 32;

/// Declares the kit's own classes in the half's database and asks.
pub(super) async fn ask(half: &Half<'_>) -> Result<(), RunError> {
    let tier = &half.task.class.tier;
    for declare in [
        format!("SELECT fence.declare('{OPEN}')"),
        format!("SELECT fence.declare('{OTHER}')"),
        format!("SELECT fence.declare('{TIERED}', '{tier}')"),
    ] {
        run(&half.sql, &declare).await?;
    }
    for ask in open() {
        ask.put(half, &half.sql).await?;
    }
    tiered(half).await
}

/// Order, absence and range of the number itself.
fn open() -> Vec<Ask<'static>> {
    let on = |kind, key, token| Ask::new(kind, OPEN, key, token);
    let mut asks = vec![
        on(Kind::Prepare, "digits", 9),
        on(Kind::Larger, "digits", 10),
        on(Kind::Smaller, "digits", 9).meets(10),
        on(Kind::EqualAgain, "digits", 10),
        on(Kind::Prepare, "doubles", DOUBLES_END + 1),
        on(Kind::Smaller, "doubles", DOUBLES_END).meets(DOUBLES_END + 1),
        on(Kind::Larger, "doubles", DOUBLES_END + 2),
        on(Kind::Prepare, "words", WORDS_END + 1),
        on(Kind::Smaller, "words", 1).meets(WORDS_END + 1),
        on(Kind::Smaller, "words", WORDS_END).meets(WORDS_END + 1),
        on(Kind::Larger, "words", WORDS_END + 2),
        on(Kind::Bystander, "elsewhere", 5),
        Ask::new(Kind::OtherClass, OTHER, "digits", 5),
        on(Kind::BelowOne, "digits", 0),
        on(Kind::BelowOne, "digits", -1),
        on(Kind::BelowOne, "untouched", -1),
        Ask::new(Kind::UnknownClass, "pause-kit.nobody", "digits", 11),
    ];
    for (kind, key, token) in [
        (Kind::MissingToken, "digits", None),
        (Kind::MissingToken, "untouched", None),
        (Kind::Malformed, "digits", Some("eleven".to_owned())),
    ] {
        asks.push(Ask {
            token,
            ..on(kind, key, 0)
        });
    }
    asks
}

/// Grants and registered ranges.
async fn tiered(half: &Half<'_>) -> Result<(), RunError> {
    let grant = |name: &str| GrantId::new(format!("pause-kit-{name}")).expect("letters and hyphens");
    let (one, two, three) = (grant("one"), grant("two"), grant("three"));
    let token = |epoch: Epoch, revision| {
        Token::mint(epoch, Revision::new(revision).expect("a small number")).as_i64()
    };
    let (first, second) = (token(Epoch::FIRST, 10), token(Epoch::FIRST, 11));
    let far = token(Epoch::MAX, 10);
    let on = |kind, key, token| Ask::new(kind, TIERED, key, token);
    for ask in [
        on(Kind::Prepare, "grants", first).by(&one),
        on(Kind::EqualAgain, "grants", first).by(&one),
        on(Kind::Collision, "grants", first).by(&two),
        on(Kind::MissingGrant, "grants", second),
        on(Kind::OutsideRange, "grants", far).by(&two),
        on(Kind::Larger, "grants", second).by(&two),
        on(Kind::Smaller, "grants", first).by(&one).meets(second),
        on(Kind::Smaller, "grants", first).by(&three).meets(second),
        on(Kind::OutsideRange, "untouched", far).by(&one),
        on(Kind::MissingGrant, "untouched", first),
    ] {
        ask.put(half, &half.sql).await?;
    }
    Ok(())
}
