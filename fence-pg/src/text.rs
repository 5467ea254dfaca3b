//! The statements of the mark guard as plain text, for a driver that sends several at once in no other way.

use fence_core::Claim;

use crate::mark::{ADMIT, ADMIT_MANY, COMMIT, RAISE_MARK};

/// The admission of these claims, its parameters put into the text.
pub(crate) fn admission_text(claims: &[Claim]) -> String {
    match claims {
        [claim] => bound(ADMIT, &parameters(claim)),
        _ => {
            let list = |kind: &str, item: fn(&Claim) -> String| {
                let items: Vec<String> = claims.iter().map(item).collect();
                format!("ARRAY[{}]::{kind}[]", items.join(", "))
            };
            let parameters = [
                list("text", |claim| literal(claim.class.as_str())),
                list("text", |claim| literal(claim.key.as_str())),
                list("bigint", |claim| claim.token.to_string()),
                list("text", grant_id),
            ];
            bound(ADMIT_MANY, &parameters)
        }
    }
}

/// The raising of the mark, its parameters put into the text.
pub(crate) fn raise_text(claim: &Claim) -> String {
    bound(RAISE_MARK, &parameters(claim))
}

/// A whole guarded write as one text: BEGIN, admission, the write, the look, COMMIT.
pub(crate) fn at_once_text(begin: &str, claim: &Claim, write: &str) -> String {
    // On a line of its own, so that a comment at the end of the write does not swallow what follows.
    format!(
        "{begin}; {}; {write}\n; {COMMIT}",
        admission_text(std::slice::from_ref(claim))
    )
}

/// A text as an SQL literal, right whatever `standard_conforming_strings` is.
pub(crate) fn literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if quoted.contains('\\') {
        format!("E'{}'", quoted.replace('\\', "\\\\"))
    } else {
        format!("'{quoted}'")
    }
}

fn parameters(claim: &Claim) -> [String; 4] {
    [
        literal(claim.class.as_str()),
        literal(claim.key.as_str()),
        claim.token.to_string(),
        grant_id(claim),
    ]
}

fn grant_id(claim: &Claim) -> String {
    claim
        .grant_id
        .as_ref()
        .map_or_else(|| "NULL".to_owned(), |id| literal(id.as_str()))
}

fn bound(statement: &str, parameters: &[String; 4]) -> String {
    let (before, after) = statement
        .split_once("$1, $2, $3, $4")
        .expect("each statement of this module has these parameters");
    format!("{before}{}{after}", parameters.join(", "))
}

#[cfg(test)]
mod tests {
    use fence_core::{ClassName, GrantId, Key, Token};

    use super::*;
    use crate::Isolation;
    use crate::mark::STILL_OPEN;

    fn claim(key: &str) -> Claim {
        Claim {
            class: ClassName::new("paydb.account").expect("a name"),
            key: Key::text(key).expect("a key"),
            token: Token::new(281_474_976_710_690).expect("a token"),
            grant_id: Some(GrantId::new("b2f1").expect("a grant id")),
        }
    }

    #[test]
    fn the_emitted_sql_is_the_one_on_file() {
        let one = claim("acct-1");
        let without = Claim {
            grant_id: None,
            ..claim("it's a \\ key")
        };
        for (emitted, on_file) in [
            (ADMIT.to_owned(), include_str!("../tests/emitted/mark_admit.sql")),
            (
                ADMIT_MANY.to_owned(),
                include_str!("../tests/emitted/mark_admit_many.sql"),
            ),
            (
                RAISE_MARK.to_owned(),
                include_str!("../tests/emitted/mark_raise.sql"),
            ),
            (
                STILL_OPEN.to_owned(),
                include_str!("../tests/emitted/mark_commit_check.sql"),
            ),
            (
                raise_text(&one),
                include_str!("../tests/emitted/mark_raise_text.sql"),
            ),
            (
                admission_text(&[one.clone(), without]),
                include_str!("../tests/emitted/mark_admit_many_text.sql"),
            ),
            (
                at_once_text(
                    Isolation::default().begin_sql(),
                    &one,
                    "DELETE FROM transfer -- all",
                ),
                include_str!("../tests/emitted/mark_at_once.sql"),
            ),
        ] {
            assert_eq!(on_file.trim_end(), format!("{emitted};"));
        }
    }
}
