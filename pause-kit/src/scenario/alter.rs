//! Changing the `Fencing-Token` of a request.

use super::grants::Granted;
use crate::history::{Alteration, Op};
use crate::wire::http::with_field;

/// The field's name; fields are compared without regard to case.
const FIELD: &str = "Fencing-Token";

/// A request as it came to the path.
#[derive(Clone, Debug)]
pub(super) struct Original {
    pub(super) op: Op,
    /// What sends it on a connection of its own.
    pub(super) bytes: Vec<u8>,
}

/// How many requests each alteration makes of one.
pub(crate) const fn made(how: Alteration) -> usize {
    match how {
        Alteration::Nothing | Alteration::Stripped | Alteration::EqualToken => 1,
        Alteration::Twice => 3,
        Alteration::Malformed => 21,
        Alteration::Missing => 6,
    }
}

impl Original {
    /// The requests that an alteration makes of this one, which presents `own`; `next` is its successor's.
    pub(super) fn altered(&self, how: Alteration, own: &Granted, next: Option<&Granted>) -> Vec<Vec<u8>> {
        let field = |claim: &Granted| format!("\"{}\";grant=\"{}\"", claim.token, claim.grant);
        let mine = field(own);
        let fields: Vec<Vec<String>> = match (how, next) {
            (Alteration::Nothing, _) => return vec![self.bytes.clone()],
            (Alteration::Twice, Some(next)) => {
                let theirs = field(next);
                let joined = format!("{mine}, {theirs}");
                vec![
                    vec![mine.clone(), theirs.clone()],
                    vec![theirs, mine],
                    vec![joined],
                ]
            }
            (Alteration::EqualToken, Some(next)) => {
                vec![vec![format!("\"{}\";grant=\"{}\"", next.token, own.grant)]]
            }
            (Alteration::Twice | Alteration::EqualToken, None) => Vec::new(),
            (Alteration::Stripped, _) => vec![Vec::new()],
            (Alteration::Malformed, _) => malformed(own).into_iter().map(|field| vec![field]).collect(),
            (Alteration::Missing, _) => missing(own),
        };
        debug_assert!(fields.is_empty() || fields.len() == made(how));
        let made = fields.iter().map(|fields| with_field(&self.bytes, FIELD, fields));
        made.flatten().collect()
    }
}

/// Every kind of a field that holds no token, each as near to the right one as it can be.
fn malformed(own: &Granted) -> [String; made(Alteration::Malformed)] {
    let (token, grant) = (own.token.to_string(), own.grant.as_str());
    let with = |token: &str| format!("{token};grant=\"{grant}\"");
    let wide: String = token.chars().map(wide).collect();
    [
        with(&token),
        with(&format!("'{token}'")),
        with(&format!("\"{token}")),
        with(&format!("(\"{token}\")")),
        with(&format!(":{token}:")),
        with(&format!("\"0{token}\"")),
        with(&format!("\"+{token}\"")),
        with(&format!("\"-{token}\"")),
        with(&format!("\" {token}\"")),
        with(&format!("\"{token} \"")),
        with(&format!("\"{token}.0\"")),
        with(&format!("\"{:#x}\"", own.token.as_i64())),
        with(&format!("\"{:.6e}\"", own.token.as_i64() as f64)),
        with(&format!("\"{wide}\"")),
        with("\"0\""),
        with("\"9223372036854775808\""),
        with(&format!("\"{token}{token}\"")),
        with("\"\""),
        format!("\"{token}\";grant=\"{grant}\";grant=\"{grant}\""),
        format!("\"{token}\";grant=\"\""),
        format!("\"{token}\";grant=\"{}\"", "g".repeat(65)),
    ]
}

/// The same digit in another script.
fn wide(digit: char) -> char {
    let value = digit.to_digit(10).unwrap_or_default();
    char::from_u32(0xFF10 + value).unwrap_or(digit)
}

/// Every way not to say one's token: no field, an empty one, one of spaces, and each half of it alone.
fn missing(own: &Granted) -> Vec<Vec<String>> {
    let (token, grant) = (own.token, &own.grant);
    vec![
        Vec::new(),
        vec![String::new()],
        vec!["   ".to_owned()],
        vec![format!("\"{token}\"")],
        vec![format!(";grant=\"{grant}\"")],
        vec![format!("grant=\"{grant}\"")],
    ]
}

#[cfg(test)]
mod tests {
    use fence_core::{GrantId, Token};

    use super::*;

    fn granted(token: i64, grant: &str) -> Granted {
        Granted {
            token: Token::new(token).unwrap(),
            grant: GrantId::new(grant).unwrap(),
        }
    }

    fn altered(how: Alteration) -> Vec<String> {
        let bytes =
            b"POST /a HTTP/1.1\r\nfencing-TOKEN: \"41\";grant=\"a\"\r\ncontent-length: 4\r\n\r\n\r\n{}";
        let original = Original {
            op: Op::new("H1-write-1"),
            bytes: bytes.to_vec(),
        };
        let all = original.altered(how, &granted(41, "a"), Some(&granted(42, "b")));
        all.into_iter()
            .map(|one| String::from_utf8(one).unwrap())
            .collect()
    }

    #[test]
    fn only_the_field_is_changed_and_each_alteration_makes_as_many_as_it_says() {
        let with = |fields: &str| format!("POST /a HTTP/1.1\r\n{fields}content-length: 4\r\n\r\n\r\n{{}}");
        let (mine, theirs) = ("\"41\";grant=\"a\"", "\"42\";grant=\"b\"");
        let field = |text: &str| format!("Fencing-Token: {text}\r\n");
        assert_eq!(
            altered(Alteration::Twice),
            [
                with(&(field(mine) + &field(theirs))),
                with(&(field(theirs) + &field(mine))),
                with(&field(&format!("{mine}, {theirs}"))),
            ]
        );
        assert_eq!(altered(Alteration::Stripped), [with("")]);
        assert_eq!(
            altered(Alteration::EqualToken),
            [with(&field("\"42\";grant=\"a\""))]
        );
        assert_eq!(altered(Alteration::Missing)[1], with(&field("")));
        for how in [Alteration::Malformed, Alteration::Missing, Alteration::Nothing] {
            let mut all = altered(how);
            assert_eq!(all.len(), made(how), "{how:?}");
            all.sort();
            all.dedup();
            assert_eq!(all.len(), made(how), "two of {how:?} are the same");
        }
        assert_eq!(
            altered(Alteration::Malformed)[13],
            with(&field("\"４１\";grant=\"a\""))
        );
    }

    #[test]
    fn a_request_without_the_field_gets_one() {
        let original = Original {
            op: Op::new("H1-write-1"),
            bytes: b"POST /a HTTP/1.1\r\nhost: r\r\n\r\n".to_vec(),
        };
        assert_eq!(
            with_field(&original.bytes, FIELD, &["x".to_owned()]).unwrap(),
            b"POST /a HTTP/1.1\r\nhost: r\r\nFencing-Token: x\r\n\r\n"
        );
    }
}
