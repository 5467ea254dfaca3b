//! Which requests need a token, and where their key is.

use std::borrow::Cow;

use fence_core::{ClassName, Key};
use http::{HeaderMap, HeaderName, Method};
use percent_encoding::percent_decode;

use super::rejection::Rejection;

/// A pattern that the layer cannot use. Mend it; the service must not start without it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A pattern begins with `/`.
    #[error("pattern {pattern:?} does not begin with /")]
    NotAbsolute {
        /// The pattern.
        pattern: String,
    },
    /// A segment is `{name}`, `*`, or a text without `{`, `}`, `*`, `?` and `#`.
    #[error("pattern {pattern:?} has a malformed segment {segment:?}")]
    MalformedSegment {
        /// The pattern.
        pattern: String,
        /// The segment.
        segment: String,
    },
    /// The key is to be found in the path, and the pattern has no `{name}`.
    #[error("pattern {pattern:?} has no {{name}} that is the key")]
    NoKey {
        /// The pattern.
        pattern: String,
    },
    /// Some path matches both patterns, so that the rule would depend on their order.
    #[error("patterns {first:?} and {second:?} overlap")]
    Overlap {
        /// The one given first.
        first: String,
        /// The one given now.
        second: String,
    },
}

#[derive(Clone, Debug)]
pub(super) enum KeySource {
    Path,
    Header(HeaderName),
}

#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) class: ClassName,
    pub(super) pattern: Pattern,
    key: KeySource,
}

/// What the rules say of a request whose method is not safe.
pub(super) enum Found<'a> {
    Exempt,
    Rule(&'a Rule),
    Nothing,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Rules {
    guarded: Vec<Rule>,
    exempt: Vec<(Method, Pattern)>,
}

impl Rules {
    pub(super) fn guard(
        &mut self,
        class: ClassName,
        pattern: &str,
        key: KeySource,
    ) -> Result<(), ConfigError> {
        let pattern = Pattern::parse(pattern)?;
        if matches!(key, KeySource::Path) && !pattern.segments.contains(&Segment::Key) {
            return Err(ConfigError::NoKey {
                pattern: pattern.text,
            });
        }
        self.reject_overlap(&pattern, None)?;
        self.guarded.push(Rule { class, pattern, key });
        Ok(())
    }

    pub(super) fn exempt(&mut self, method: Method, pattern: &str) -> Result<(), ConfigError> {
        let pattern = Pattern::parse(pattern)?;
        self.reject_overlap(&pattern, Some(&method))?;
        self.exempt.push((method, pattern));
        Ok(())
    }

    pub(super) fn find(&self, method: &Method, path: &str) -> Found<'_> {
        let exempted = |(exempt, pattern): &(Method, Pattern)| exempt == method && pattern.matches(path);
        if self.exempt.iter().any(exempted) {
            return Found::Exempt;
        }
        match self.guarded.iter().find(|rule| rule.pattern.matches(path)) {
            Some(rule) => Found::Rule(rule),
            None => Found::Nothing,
        }
    }

    /// A guarded pattern covers every method; exemptions overlap each other within one method only.
    fn reject_overlap(&self, pattern: &Pattern, method: Option<&Method>) -> Result<(), ConfigError> {
        let guarded = self.guarded.iter().map(|rule| &rule.pattern);
        let exempt = self
            .exempt
            .iter()
            .filter(|(exempt, _)| method.is_none_or(|method| exempt == method))
            .map(|(_, pattern)| pattern);
        match guarded.chain(exempt).find(|before| before.overlaps(pattern)) {
            None => Ok(()),
            Some(before) => Err(ConfigError::Overlap {
                first: before.text.clone(),
                second: pattern.text.clone(),
            }),
        }
    }
}

impl Rule {
    /// The key of a request whose path matches this rule.
    pub(super) fn key(&self, path: &str, headers: &HeaderMap) -> Result<Key, Rejection> {
        match &self.key {
            KeySource::Path => self.pattern.key(path),
            KeySource::Header(name) => {
                let values: Vec<_> = headers.get_all(name).iter().collect();
                match values[..] {
                    [value] => Key::text(decode(value.as_bytes())?).map_err(Rejection::Key),
                    _ => Err(Rejection::KeyHeader {
                        name: name.clone(),
                        count: values.len(),
                    }),
                }
            }
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Pattern {
    pub(super) text: String,
    segments: Vec<Segment>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Literal(String),
    Key,
    Any,
}

impl Pattern {
    fn parse(text: &str) -> Result<Pattern, ConfigError> {
        let Some(rest) = text.strip_prefix('/') else {
            return Err(ConfigError::NotAbsolute {
                pattern: text.to_owned(),
            });
        };
        let segments: Option<Vec<Segment>> = rest.split('/').map(Segment::parse).collect();
        match segments {
            Some(segments) => Ok(Pattern {
                text: text.to_owned(),
                segments,
            }),
            None => Err(ConfigError::MalformedSegment {
                pattern: text.to_owned(),
                segment: rest
                    .split('/')
                    .find(|segment| Segment::parse(segment).is_none())
                    .unwrap_or_default()
                    .to_owned(),
            }),
        }
    }

    fn matches(&self, path: &str) -> bool {
        let Some(rest) = path.strip_prefix('/') else {
            return false;
        };
        let mut parts = rest.split('/');
        let all = self.segments.iter().all(|segment| match (segment, parts.next()) {
            (_, None) => false,
            (Segment::Literal(literal), Some(part)) => literal == part,
            (Segment::Key | Segment::Any, Some(_)) => true,
        });
        all && parts.next().is_none()
    }

    fn key(&self, path: &str) -> Result<Key, Rejection> {
        let parts = path.strip_prefix('/').unwrap_or_default().split('/');
        let keys: Vec<Cow<'_, str>> = self
            .segments
            .iter()
            .zip(parts)
            .filter(|(segment, _)| **segment == Segment::Key)
            .map(|(_, part)| decode(part.as_bytes()))
            .collect::<Result<_, _>>()?;
        match &keys[..] {
            [key] => Key::text(key.as_ref()),
            parts => Key::composite(&parts.iter().map(AsRef::as_ref).collect::<Vec<_>>()),
        }
        .map_err(Rejection::Key)
    }

    fn overlaps(&self, other: &Pattern) -> bool {
        let both = |(a, b): (&Segment, &Segment)| match (a, b) {
            (Segment::Literal(a), Segment::Literal(b)) => a == b,
            _ => true,
        };
        self.segments.len() == other.segments.len() && self.segments.iter().zip(&other.segments).all(both)
    }
}

impl Segment {
    fn parse(text: &str) -> Option<Segment> {
        if text == "*" {
            return Some(Segment::Any);
        }
        if let Some(name) = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) {
            let plain = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            return plain.then_some(Segment::Key);
        }
        (!text.contains(['{', '}', '*', '?', '#'])).then(|| Segment::Literal(text.to_owned()))
    }
}

/// Percent-decodes once. `%` that begins no pair of hexadecimal digits stands for itself, as routers read it.
fn decode(bytes: &[u8]) -> Result<Cow<'_, str>, Rejection> {
    percent_decode(bytes)
        .decode_utf8()
        .map_err(|_| Rejection::KeyNotUtf8)
}
