//! What the guard refused, and how that is read from the server's error.

use fence_core::{Claim, ClassName, Key, MissingPart, Refusal, Token};

/// What the guard refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The decision of [`fence_core::admit`], taken by the database.
    #[error(transparent)]
    Claim(#[from] Refusal),
    /// Several claims were presented together, and these are stale; none of them was admitted. Stop the work on each of
    /// these keys. The claims that are not named may be presented again without them.
    #[error("{}", in_words(.0))]
    StaleKeys(Vec<StaleKey>),
    /// A number below 1 was presented (`ZF003`). Only SQL can: a [`Token`] is at least 1.
    #[error("a token is at least 1")]
    BelowOne,
    /// A row was written whose key the transaction had not admitted, though it had admitted another one (`ZF006`), or the
    /// claim's key is not the canonical text of the row's, such as `042`: a lock of another name. Admit the key of every row
    /// that is written, as [`fence_core::Key`] spells it.
    #[error("wrong key, {0}")]
    WrongKey(String),
    /// The class was never declared in this database (`ZF007`): a typing error, or a missing `fence.declare`.
    #[error("unknown class {0}")]
    UnknownClass(String),
    /// The database was restored, failed over or stopped by an operator (`ZF008`): its marks may have been lost, so nothing
    /// is admitted until an operator has looked and called `fence.acknowledge`. Present the same claim again after that.
    #[error("the database's history is in doubt, {0}")]
    HistoryInDoubt(String),
}

/// One of several keys whose mark is above the token that was presented for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaleKey {
    /// The class.
    pub class: ClassName,
    /// The key.
    pub key: Key,
    /// The token presented.
    pub presented: Token,
    /// The mark.
    pub seen: Token,
}

fn in_words(keys: &[StaleKey]) -> String {
    let keys: Vec<String> = keys
        .iter()
        .map(|stale| {
            format!(
                "class {}, key {:?}: presented {}, seen {}",
                stale.class,
                stale.key.as_str(),
                stale.presented,
                stale.seen
            )
        })
        .collect();
    format!("stale tokens: {}", keys.join("; "))
}

/// A refusal from its code and DETAIL; `None` for any other code, and for a refusal that does not say what it must.
pub(crate) fn refused(
    sqlstate: &str,
    detail: Option<&str>,
    message: &str,
    claims: &[Claim],
) -> Option<Refused> {
    // Of several claims the text alone says which one it is about.
    let alone = match claims {
        [claim] => Some(claim),
        _ => None,
    };
    let presented = alone.map(|claim| claim.token);
    let refusal = match sqlstate {
        "ZF001" => return stale(detail?),
        "ZF002" if detail.is_some_and(|detail| detail.starts_with("missing grant id")) => {
            Refusal::Missing(MissingPart::GrantId)
        }
        "ZF002" => Refusal::Missing(MissingPart::Token),
        "ZF003" => return Some(Refused::BelowOne),
        "ZF004" => Refusal::Collision {
            token: presented.or_else(|| number_after(detail?, "token "))?,
        },
        "ZF005" => Refusal::UnknownEpoch {
            presented: presented.or_else(|| number_after(detail?, "presented "))?,
        },
        "ZF006" => return Some(Refused::WrongKey(detail.unwrap_or(message).to_owned())),
        "ZF007" => {
            return Some(Refused::UnknownClass(
                alone.map_or_else(|| message.to_owned(), |claim| claim.class.to_string()),
            ));
        }
        "ZF008" => return Some(Refused::HistoryInDoubt(detail.unwrap_or(message).to_owned())),
        _ => return None,
    };
    Some(Refused::Claim(refusal))
}

/// `presented N, seen M`, or a line like that for each of several keys, with `, class C, key 'K'` behind it.
fn stale(detail: &str) -> Option<Refused> {
    let mut rest = detail;
    let mut keys = Vec::new();
    loop {
        let presented = number_after(rest, "presented ")?;
        rest = after_digits(rest.strip_prefix("presented ")?).strip_prefix(", seen ")?;
        let seen = number_after(rest, "")?;
        rest = after_digits(rest);
        if rest.is_empty() && keys.is_empty() {
            return Some(Refused::Claim(Refusal::Stale { presented, seen }));
        }
        let (class, behind) = rest.strip_prefix(", class ")?.split_once(", key ")?;
        let (key, behind) = literal(behind)?;
        keys.push(StaleKey {
            class: ClassName::new(class).ok()?,
            key: Key::text(key).ok()?,
            presented,
            seen,
        });
        if behind.is_empty() {
            return Some(Refused::StaleKeys(keys));
        }
        rest = behind.strip_prefix('\n')?;
    }
}

/// The text of an SQL literal as `%L` makes it, and what stands behind it.
fn literal(text: &str) -> Option<(String, &str)> {
    // With a backslash in it, it is ` E'…'`, and each backslash is doubled.
    let trimmed = text.trim_start_matches(' ');
    let (escaped, inside) = match trimmed.strip_prefix('E') {
        Some(rest) => (true, rest.strip_prefix('\'')?),
        None => (false, trimmed.strip_prefix('\'')?),
    };
    let mut out = String::new();
    let mut characters = inside.char_indices();
    while let Some((at, character)) = characters.next() {
        let doubled = match character {
            '\'' if !inside[at + 1..].starts_with('\'') => return Some((out, &inside[at + 1..])),
            '\'' => true,
            '\\' => escaped,
            _ => false,
        };
        if doubled {
            characters.next();
        }
        out.push(character);
    }
    None
}

fn number_after(text: &str, prefix: &str) -> Option<Token> {
    let rest = text.strip_prefix(prefix)?;
    rest[..rest.len() - after_digits(rest).len()].parse().ok()
}

fn after_digits(text: &str) -> &str {
    text.trim_start_matches(|character: char| character.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stale_keys(detail: &str) -> Option<Vec<(String, String, i64, i64)>> {
        let Refused::StaleKeys(keys) = refused("ZF001", Some(detail), "", &[])? else {
            return None;
        };
        let told = keys.iter().map(|stale| {
            (
                stale.class.to_string(),
                stale.key.as_str().to_owned(),
                stale.presented.as_i64(),
                stale.seen.as_i64(),
            )
        });
        Some(told.collect())
    }

    #[test]
    fn one_key_is_read_from_both_numbers_alone() {
        let told = refused("ZF001", Some("presented 33, seen 34"), "", &[]).expect("it says what it must");
        assert_eq!(told.to_string(), "stale token: presented 33, seen 34");
        for broken in [
            "",
            "presented 33",
            "presented 33, seen ",
            "presented x, seen 34",
            "presented 33, seen 34 ",
        ] {
            assert_eq!(refused("ZF001", Some(broken), "", &[]), None, "{broken:?}");
        }
    }

    #[test]
    fn each_of_several_keys_is_read_whatever_its_text() {
        let detail = "presented 33, seen 34, class a.b, key 'it''s, class c.d, key'\n\
                      presented 1, seen 2, class a.c, key  E'two\nlines \\\\ ''x'''";
        assert_eq!(
            stale_keys(detail),
            Some(vec![
                ("a.b".to_owned(), "it's, class c.d, key".to_owned(), 33, 34),
                ("a.c".to_owned(), "two\nlines \\ 'x'".to_owned(), 1, 2),
            ])
        );
        for broken in [
            "presented 33, seen 34, class a.b, key 'open",
            "presented 33, seen 34, class a.b, key 'k' ",
            "presented 33, seen 34, class a.b, key 'k'\n",
            "presented 33, seen 34, class a.b, key 'k'\npresented 1, seen 2",
        ] {
            assert_eq!(stale_keys(broken), None, "{broken:?}");
        }
    }
}
