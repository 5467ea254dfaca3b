//! The header `Fencing-Token`, and nothing else.

use std::borrow::Cow;
use std::convert::Infallible;

use fence_core::{Claim, GrantId, NameError, ParseTokenError, Token};
use http::{HeaderMap, HeaderName, HeaderValue};
use sfv::visitor::{ItemVisitor, ParameterVisitor};
use sfv::{BareItemFromInput, ItemSerializer, KeyRef, Parser, StringRef};

/// The header's name, `fencing-token`.
pub const FENCING_TOKEN: HeaderName = HeaderName::from_static("fencing-token");

/// What the header carries: `Fencing-Token: "562949953421399";grant="b2f1"`.
///
/// It is an RFC 9651 Item of type String that holds the token's text form. The parameter `grant`, at most once and itself
/// a String, holds the grant id. Other parameters are ignored, as RFC 9651 asks of a field that may grow. The header comes
/// once: two lines, or two values in one line, are refused whatever they hold, because any rule for choosing one of them
/// is a rule that an intermediary can turn against the holder.
///
/// ```
/// use fence_http::FencingToken;
/// use http::HeaderValue;
///
/// let header = FencingToken::parse(&HeaderValue::from_static(r#""562949953421399";grant="b2f1""#))?;
/// assert_eq!(header.token.as_i64(), 562_949_953_421_399);
/// assert_eq!(header.grant_id.as_ref().map(|id| id.as_str()), Some("b2f1"));
///
/// let bare = FencingToken::parse(&HeaderValue::from_static("562949953421399"));
/// assert_eq!(bare.unwrap_err().to_string(), "a fencing token is a quoted string, not a bare number");
/// # Ok::<(), fence_http::HeaderError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FencingToken {
    /// The token.
    pub token: Token,
    /// The id of the grant that it came with. Whether a class needs one is the resource's to decide.
    pub grant_id: Option<GrantId>,
}

impl FencingToken {
    /// Reads the one header of a request.
    ///
    /// # Errors
    ///
    /// [`HeaderError`] when there is none, more than one, or one that is not in the form above.
    pub fn from_headers(headers: &HeaderMap) -> Result<FencingToken, HeaderError> {
        only(headers).and_then(FencingToken::parse)
    }

    /// Reads a single value.
    ///
    /// # Errors
    ///
    /// [`HeaderError`], but for `Missing`.
    pub fn parse(value: &HeaderValue) -> Result<FencingToken, HeaderError> {
        let (token, grant) = read(value)?;
        let grant_id = grant.map(|id| GrantId::new(id).map_err(|source| HeaderError::Grant { source }));
        Ok(FencingToken {
            token,
            grant_id: grant_id.transpose()?,
        })
    }

    /// The value to send.
    pub fn to_value(&self) -> HeaderValue {
        let token = self.token.to_string();
        let item = ItemSerializer::new().bare_item(text(&token));
        let serialized = match &self.grant_id {
            None => item.finish(),
            Some(grant_id) => item.parameter(GRANT, text(grant_id.as_str())).finish(),
        };
        HeaderValue::try_from(serialized).expect("a serialized structured field is visible ASCII")
    }
}

impl From<&Claim> for FencingToken {
    fn from(claim: &Claim) -> FencingToken {
        FencingToken {
            token: claim.token,
            grant_id: claim.grant_id.clone(),
        }
    }
}

/// Why the header was refused. The caller must send what its grant gave, once, as it was given; nothing is repaired.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// There is no header. A proxy may have dropped it: `Connection: fencing-token` makes one do so.
    #[error("no fencing token")]
    Missing,
    /// Two headers, or two values in one. Send one.
    #[error("more than one fencing token")]
    MoreThanOne,
    /// Not a structured field Item at all. Send a quoted string.
    #[error("the value is no structured field item: {found}")]
    NoItem {
        /// What the parser found, in its words.
        found: String,
    },
    /// A number without quotes. Quote it: a structured field's integer ends at 15 digits.
    #[error("a fencing token is a quoted string, not a bare number")]
    BareNumber {
        /// The number, where it would be a token if it were quoted.
        token: Option<Token>,
    },
    /// Another type of Item: a word, a date, a boolean. Send a quoted string.
    #[error("a fencing token is a quoted string")]
    NotAString,
    /// A string, but not a token's text form.
    #[error("the string is no token")]
    Token {
        /// What is wrong with it.
        source: ParseTokenError,
    },
    /// The parameter `grant` is not a quoted string.
    #[error("the grant parameter is a quoted string")]
    GrantNotAString,
    /// The parameter `grant` is there twice.
    #[error("more than one grant parameter")]
    GrantTwice,
    /// The parameter `grant` is no grant id.
    #[error("the grant parameter is no grant id")]
    Grant {
        /// What is wrong with it.
        source: NameError,
    },
}

/// The header that a request made under this claim carries.
///
/// Read the token from the hold first, and send at once: a token is read when work starts.
pub fn header_value(claim: &Claim) -> HeaderValue {
    FencingToken::from(claim).to_value()
}

const GRANT: &KeyRef = sfv::key_ref("grant");

/// The one header of a request.
pub(crate) fn only(headers: &HeaderMap) -> Result<&HeaderValue, HeaderError> {
    let mut values = headers.get_all(FENCING_TOKEN).iter();
    match (values.next(), values.next()) {
        (None, _) => Err(HeaderError::Missing),
        (Some(value), None) => Ok(value),
        (Some(_), Some(_)) => Err(HeaderError::MoreThanOne),
    }
}

/// Reads a value, and allocates nothing where it is in its form: this is done for every guarded request.
pub(crate) fn read(value: &HeaderValue) -> Result<(Token, Option<Cow<'_, str>>), HeaderError> {
    match Parser::new(value.as_bytes()).parse_item_with_visitor(Fields::default()) {
        // By its own text: the parser cannot hold all the digits of a token, and forgets leading zeros.
        _ if bare(value).is_some() => Err(HeaderError::BareNumber { token: bare(value) }),
        Ok(fields) => fields.check(),
        Err(_) if is_list(value) => Err(HeaderError::MoreThanOne),
        Err(error) => Err(HeaderError::NoItem {
            found: error.to_string(),
        }),
    }
}

/// Collects what the parser saw. It fails on nothing, so that syntax errors later in the value are still found; what was
/// seen is judged by [`Fields::check`].
#[derive(Default)]
struct Fields<'a> {
    token: Option<Bare<'a>>,
    grant: Option<Bare<'a>>,
    more_grants: bool,
}

enum Bare<'a> {
    Text(Cow<'a, str>),
    Number,
    Other,
}

impl<'a> Fields<'a> {
    fn check(self) -> Result<(Token, Option<Cow<'a, str>>), HeaderError> {
        let token = match self.token {
            Some(Bare::Text(text)) => text.parse().map_err(|source| HeaderError::Token { source })?,
            Some(Bare::Number) => return Err(HeaderError::BareNumber { token: None }),
            Some(Bare::Other) | None => return Err(HeaderError::NotAString),
        };
        let grant = match self.grant {
            _ if self.more_grants => return Err(HeaderError::GrantTwice),
            None => None,
            Some(Bare::Text(text)) => {
                GrantId::check(&text).map_err(|source| HeaderError::Grant { source })?;
                Some(text)
            }
            Some(_) => return Err(HeaderError::GrantNotAString),
        };
        Ok((token, grant))
    }
}

impl<'de> ItemVisitor<'de> for Fields<'de> {
    type Out = Fields<'de>;
    type Error = Infallible;

    fn bare_item(
        mut self,
        item: BareItemFromInput<'de>,
    ) -> Result<impl ParameterVisitor<'de, Out = Fields<'de>>, Infallible> {
        self.token = Some(Bare::from(item));
        Ok(self)
    }
}

impl<'de> ParameterVisitor<'de> for Fields<'de> {
    type Out = Fields<'de>;
    type Error = Infallible;

    fn parameter(&mut self, name: &'de KeyRef, value: BareItemFromInput<'de>) -> Result<(), Infallible> {
        if name == GRANT {
            self.more_grants = self.grant.is_some();
            self.grant.get_or_insert(Bare::from(value));
        }
        Ok(())
    }

    fn finish(self) -> Result<Fields<'de>, Infallible> {
        Ok(self)
    }
}

impl<'a> From<BareItemFromInput<'a>> for Bare<'a> {
    fn from(item: BareItemFromInput<'a>) -> Bare<'a> {
        match item {
            BareItemFromInput::String(Cow::Borrowed(text)) => Bare::Text(Cow::Borrowed(text.as_str())),
            BareItemFromInput::String(Cow::Owned(text)) => Bare::Text(Cow::Owned(text.as_str().to_owned())),
            BareItemFromInput::Integer(_) | BareItemFromInput::Decimal(_) => Bare::Number,
            _ => Bare::Other,
        }
    }
}

/// The token that a value would be if its number were quoted; what follows the number, such as a grant, is not looked at.
fn bare(value: &HeaderValue) -> Option<Token> {
    let number = value.to_str().ok()?.split(';').next()?.trim_matches(' ');
    // Looked at first, because a refusal to parse keeps the text.
    let digits = number.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| number.parse().ok()).flatten()
}

/// Whether a value that is no Item is several, as a proxy joins repeated headers.
fn is_list(value: &HeaderValue) -> bool {
    value.as_bytes().contains(&b',')
        && Parser::new(value.as_bytes())
            .parse_list_with_visitor(sfv::visitor::Ignored)
            .is_ok()
}

fn text(value: &str) -> &StringRef {
    StringRef::from_str(value).expect("tokens and grant ids are visible ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(value: &[u8]) -> Result<FencingToken, HeaderError> {
        FencingToken::parse(&HeaderValue::from_bytes(value).expect("a header value"))
    }

    #[test]
    fn only_one_clean_value_passes() {
        let more = Err(HeaderError::MoreThanOne);
        assert_eq!(parse(br#""40", "1""#), more);
        assert_eq!(parse(b"1, 40"), more);
        let number = |token: Option<i64>| {
            let token = token.map(|token| Token::new(token).expect("in range"));
            Err(HeaderError::BareNumber { token })
        };
        assert_eq!(parse(b"40"), number(Some(40)));
        assert_eq!(parse(b" 40 ;grant=\"a\""), number(Some(40)));
        assert_eq!(parse(b"9223372036854775807"), number(Some(i64::MAX)));
        for no_token in [&b"1.5"[..], b"0", b"-40", b"040"] {
            assert_eq!(parse(no_token), number(None), "{no_token:?}");
        }
        assert_eq!(parse(b"token40"), Err(HeaderError::NotAString));
        assert_eq!(parse(b"@40"), Err(HeaderError::NotAString));
        assert_eq!(
            parse(br#""40";grant="a";grant="a""#),
            Err(HeaderError::GrantTwice)
        );
        assert_eq!(parse(br#""40";grant=a"#), Err(HeaderError::GrantNotAString));
        assert_eq!(parse(br#""40";grant"#), Err(HeaderError::GrantNotAString));
        for broken in [
            &b""[..],
            b"40,",
            br#""40","#,
            br#""40"#,
            br#"40""#,
            br#""40" x"#,
            br#""40";"#,
            br#""40";Grant="a""#,
            br#"("40")"#,
            b"9223372036854775808",
            b"'40'",
            b"\xc2\xa040",
            b"+40",
        ] {
            assert!(
                matches!(parse(broken), Err(HeaderError::NoItem { .. })),
                "{broken:?}: {:?}",
                parse(broken)
            );
        }
        for no_token in [
            r#""""#,
            r#""0""#,
            r#""040""#,
            r#""+40""#,
            r#""-40""#,
            r#"" 40""#,
            r#""40 ""#,
            r#""4e1""#,
            r#""40.0""#,
            r#""0x28""#,
            r#""9223372036854775808""#,
            r#""\"40\"""#,
        ] {
            let refused = parse(no_token.as_bytes());
            assert!(
                matches!(refused, Err(HeaderError::Token { .. })),
                "{no_token}: {refused:?}"
            );
        }
        for no_grant in [r#""40";grant="""#, r#""40";grant="a b""#, r#""40";grant="a/b""#] {
            let refused = parse(no_grant.as_bytes());
            assert!(
                matches!(refused, Err(HeaderError::Grant { .. })),
                "{no_grant}: {refused:?}"
            );
        }
    }

    #[test]
    fn spaces_around_the_item_and_unknown_parameters_are_nothing() {
        let plain = parse(br#""40";grant="a""#).expect("the plain form");
        assert_eq!(parse(br#"  "40"; grant="a"  "#), Ok(plain.clone()));
        assert_eq!(parse(br#""40";later=7;grant="a";x"#), Ok(plain));
    }

    #[test]
    fn two_lines_are_refused_in_either_order() {
        for lines in [
            [r#""40""#, r#""1""#],
            [r#""1""#, r#""40""#],
            [r#""40""#, r#""40""#],
        ] {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(FENCING_TOKEN, HeaderValue::from_static(line));
            }
            assert_eq!(
                FencingToken::from_headers(&headers),
                Err(HeaderError::MoreThanOne)
            );
        }
    }

    #[test]
    fn an_underscore_or_nothing_is_a_missing_header() {
        let mut headers = HeaderMap::new();
        assert_eq!(FencingToken::from_headers(&headers), Err(HeaderError::Missing));
        headers.insert("fencing_token", HeaderValue::from_static(r#""40""#));
        assert_eq!(FencingToken::from_headers(&headers), Err(HeaderError::Missing));
    }

    proptest! {
        #[test]
        fn what_is_sent_is_what_is_read(number in 1..=i64::MAX, grant in proptest::option::of("[A-Za-z0-9._:-]{1,64}")) {
            let sent = FencingToken {
                token: Token::new(number).expect("in range"),
                grant_id: grant.map(|id| GrantId::new(id).expect("the grammar of a grant id")),
            };
            prop_assert_eq!(FencingToken::parse(&sent.to_value()), Ok(sent));
        }

        #[test]
        fn whatever_is_read_is_the_one_canonical_text(value in "[\" 0-9;=a-z,+-]{0,24}") {
            if let Ok(header) = parse(value.as_bytes()) {
                let quoted = format!("\"{}\"", header.token);
                prop_assert!(value.trim_start().starts_with(&quoted), "{} was read as {}", value, header.token);
            }
        }
    }
}
