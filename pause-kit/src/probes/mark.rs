//! The mark guard's own functions, one question after the other.

use fence_core::{Epoch, GrantId, Key, Revision, Token};
use tokio_postgres::Client;

use super::asked::{self, Ask, run};
use crate::history::ProbeKind as Kind;
use crate::run::RunError;
use crate::scenario::Half;

/// A class of the kit's own that takes any issuer's tokens.
pub(super) const OPEN: &str = "pause-kit.open";
const OTHER: &str = "pause-kit.other";
/// `OPEN` and the first letter of a key: run together, class and key must not become another class's key.
const LONGER: &str = "pause-kit.opena";
/// A class of the tier under proof, whose first epoch is registered.
const TIERED: &str = "pause-kit.tiered";
/// A class of a tier of the kit's own, with a gap between its epochs and a ceiling.
const RANGED: &str = "pause-kit.ranged";
const RANGED_TIER: &str = "pause-kit.tier";
/// Another class of the tier under proof.
const BESIDE: &str = "pause-kit.beside";
const CEILING: u64 = 1_000;

const DOUBLES_END: i64 = 1 << 53;
const WORDS_END: i64 = 1 << 32;

/// Declares the kit's own classes in the half's database and asks.
pub(super) async fn ask(half: &Half<'_>) -> Result<(), RunError> {
    let tier = &half.task.class.tier;
    for declare in [
        format!("SELECT fence.declare('{OPEN}')"),
        format!("SELECT fence.declare('{OTHER}')"),
        format!("SELECT fence.declare('{LONGER}')"),
        format!("SELECT fence.declare('{TIERED}', '{tier}')"),
        format!("SELECT fence.declare('{BESIDE}', '{tier}')"),
        format!("SELECT fence.declare('{RANGED}', '{RANGED_TIER}')"),
        format!("SELECT fence.register_epoch('{RANGED_TIER}', 2)"),
        format!(
            "SELECT fence.register_epoch('{RANGED_TIER}', 4, {})",
            token(4, CEILING)
        ),
    ] {
        run(&half.sql, &declare).await?;
    }
    let sql = asked::open(half).await?;
    let long = "k".repeat(Key::MAX_BYTES - 1);
    let (left, right) = (format!("{long}l"), format!("{long}r"));
    for ask in open() {
        ask.put(half, &sql).await?;
    }
    for ask in [
        Ask::new(Kind::Prepare, OPEN, &left, 9),
        Ask::new(Kind::Bystander, OPEN, &right, 5),
        Ask::new(Kind::Smaller, OPEN, &left, 8).meets(9),
    ] {
        ask.put(half, &sql).await?;
    }
    tiered(half, &sql).await?;
    ranged(half, &sql).await
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
        on(Kind::Prepare, "epochs", token(1, 10)),
        on(Kind::Larger, "epochs", token(2, 1)),
        on(Kind::Smaller, "epochs", token(1, 11)).meets(token(2, 1)),
        on(Kind::Bystander, "elsewhere", 5),
        on(Kind::Bystander, "digit", 5),
        on(Kind::Bystander, "DIGITS", 5),
        on(Kind::Bystander, "digits ", 5),
        on(Kind::Bystander, "d_gits", 5),
        on(Kind::Bystander, "%", 5),
        on(Kind::Prepare, "largest", i64::MAX - 1),
        on(Kind::Larger, "largest", i64::MAX),
        on(Kind::EqualAgain, "largest", i64::MAX),
        on(Kind::Smaller, "largest", i64::MAX - 1).meets(i64::MAX),
        Ask::new(Kind::OtherClass, OTHER, "digits", 5),
        on(Kind::Prepare, "adigits", 9),
        Ask::new(Kind::OtherClass, LONGER, "digits", 5),
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
async fn tiered(half: &Half<'_>, sql: &Client) -> Result<(), RunError> {
    let (one, two, three) = (grant("one"), grant("two"), grant("three"));
    let loud = grant("ONE");
    let (first, second) = (token(1, 10), token(1, 11));
    let far = token(Epoch::MAX.as_u16(), 10);
    let on = |kind, key, token| Ask::new(kind, TIERED, key, token);
    for ask in [
        on(Kind::Prepare, "grants", first).by(&one),
        on(Kind::EqualAgain, "grants", first).by(&one),
        on(Kind::Collision, "grants", first).by(&two),
        on(Kind::Collision, "grants", first).by(&loud),
        on(Kind::MissingGrant, "grants", second),
        on(Kind::MissingGrant, "grants", second).by_nobody(),
        on(Kind::OutsideRange, "grants", far).by(&two),
        on(Kind::Larger, "grants", second).by(&two),
        on(Kind::Smaller, "grants", first).by(&one).meets(second),
        on(Kind::Smaller, "grants", first).by(&three).meets(second),
        on(Kind::OutsideRange, "untouched", far).by(&one),
        on(Kind::MissingGrant, "untouched", first),
        Ask::new(Kind::OtherClass, BESIDE, "grants", first).by(&three),
        Ask::new(Kind::UnknownClass, "pause-kit.nobody", "grants", second).by(&two),
    ] {
        ask.put(half, sql).await?;
    }
    raised(half, sql).await
}

/// Raises, each followed by admissions that show where it left the mark.
async fn raised(half: &Half<'_>, sql: &Client) -> Result<(), RunError> {
    let (one, two, three) = (grant("one"), grant("two"), grant("three"));
    let [first, second, third] = [10, 11, 12].map(|revision| token(1, revision));
    let far = token(Epoch::MAX.as_u16(), 10);
    let on = |kind, token| Ask::new(kind, TIERED, "raises", token);
    for ask in [
        on(Kind::Prepare, second).by(&two),
        on(Kind::StaleRaise, first).by(&one).meets(second),
        on(Kind::Smaller, first).by(&one).meets(second),
        on(Kind::EqualAgain, second).by(&two),
        on(Kind::CollidingRaise, second).by(&three),
        on(Kind::EqualAgain, second).by(&two),
        on(Kind::RaiseOutsideRange, far).by(&three),
        on(Kind::RaiseWithoutToken, second).by(&three).without_token(),
        on(Kind::EqualAgain, second).by(&two),
        on(Kind::Raise, third).by(&three),
        on(Kind::Smaller, second).by(&two).meets(third),
    ] {
        ask.put(half, sql).await?;
    }
    Ok(())
}

/// The ends of the registered ranges, from both sides; what other tiers have registered counts for nothing.
async fn ranged(half: &Half<'_>, sql: &Client) -> Result<(), RunError> {
    let (one, two) = (grant("one"), grant("two"));
    let on = |kind, key, token| Ask::new(kind, RANGED, key, token);
    for ask in [
        on(Kind::OutsideRange, "ranges", 10).by(&one),
        on(Kind::OutsideRange, "ranges", token(1, 10)).by(&one),
        on(Kind::OutsideRange, "first", token(2, 1) - 1).by(&one),
        on(Kind::Prepare, "first", token(2, 1)).by(&one),
        on(Kind::Prepare, "last", token(2, Revision::MAX.as_u64())).by(&one),
        on(Kind::OutsideRange, "last", token(2, Revision::MAX.as_u64()) + 1).by(&two),
        on(Kind::Prepare, "ranges", token(2, 10)).by(&one),
        on(Kind::OutsideRange, "ranges", token(3, 10)).by(&two),
        on(Kind::OutsideRange, "ranges", token(4, CEILING + 1)).by(&two),
        on(Kind::Larger, "ranges", token(4, CEILING)).by(&two),
        on(Kind::Smaller, "ranges", token(3, 10))
            .by(&one)
            .meets(token(4, CEILING)),
        Ask::new(Kind::OutsideRange, TIERED, "ranges", token(2, 10)).by(&one),
    ] {
        ask.put(half, sql).await?;
    }
    Ok(())
}

fn token(epoch: u16, revision: u64) -> i64 {
    let epoch = Epoch::new(epoch).expect("1 to 32767");
    Token::mint(epoch, Revision::new(revision).expect("a small number")).as_i64()
}

fn grant(name: &str) -> GrantId {
    GrantId::new(format!("pause-kit-{name}")).expect("letters and hyphens")
}
