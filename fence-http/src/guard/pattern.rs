//! Patterns of paths, and the keys in them.

use std::borrow::Cow;

use fence_core::{Key, KeyError};
use percent_encoding::percent_decode;

use super::builder::ConfigError;
use super::rejection::Rejection;

/// `/` and segments: `{name}` is one that is the key, `*` one that is not, anything else stands for itself.
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
    pub(super) fn parse(text: &str) -> Result<Pattern, ConfigError> {
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

    pub(super) fn names_a_key(&self) -> bool {
        self.segments.contains(&Segment::Key)
    }

    pub(super) fn matches(&self, path: &str) -> bool {
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

    /// The key's segment, where it is the only one and there is nothing to decode: then the path itself holds the key.
    pub(super) fn plain_key<'a>(&self, path: &'a str) -> Option<&'a str> {
        let mut keys = self.key_parts(path);
        match (keys.next(), keys.next()) {
            (Some(key), None) if !key.contains('%') => Some(key),
            _ => None,
        }
    }

    pub(super) fn key(&self, path: &str) -> Result<Key, Rejection> {
        let keys: Vec<Cow<'_, str>> = self.key_parts(path).map(decode).collect::<Result<_, _>>()?;
        let key: Result<Key, KeyError> = match &keys[..] {
            [key] => Key::text(key.as_ref()),
            parts => Key::composite(&parts.iter().map(AsRef::as_ref).collect::<Vec<_>>()),
        };
        key.map_err(Rejection::Key)
    }

    fn key_parts<'a>(&self, path: &'a str) -> impl Iterator<Item = &'a str> {
        let parts = path.strip_prefix('/').unwrap_or_default().split('/');
        let both = self.segments.iter().zip(parts);
        both.filter(|(segment, _)| **segment == Segment::Key)
            .map(|(_, part)| part)
    }

    pub(super) fn overlaps(&self, other: &Pattern) -> bool {
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
pub(super) fn decode(text: &str) -> Result<Cow<'_, str>, Rejection> {
    decode_bytes(text.as_bytes())
}

pub(super) fn decode_bytes(bytes: &[u8]) -> Result<Cow<'_, str>, Rejection> {
    percent_decode(bytes)
        .decode_utf8()
        .map_err(|_| Rejection::KeyNotUtf8)
}
