//! Texts with placeholders.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// A text in which `{name}` stands for a value that only the run knows.
///
/// A placeholder is a lower case name of letters, digits, `_`, `.` and `-` in braces; any other brace is itself, so that
/// JSON can be written as it is. A brace before one of the names below must close after it. The names:
///
/// | name | value |
/// |---|---|
/// | `fence` | the running `fence` executable |
/// | `bin` | the folder of that executable |
/// | `etcd.TIER` | the endpoint of that tier's lock store, `http://127.0.0.1:PORT` |
/// | `prefix` | the key prefix of this half in every lock store |
/// | `database_url` | the half's own database, through the kit's path where there is one |
/// | `resource` | where the resource is reached, `127.0.0.1:PORT`, through the kit's path |
/// | `port` | a free port of 127.0.0.1, for a resource that is told where to listen |
/// | `key`, `other`, `bystander` | three keys of the class, drawn from the seed |
/// | `amount` | a number, 1 to 999, drawn from the seed |
/// | `ttl` | the class's time to live |
/// | `id` | an id of one write of the kit's own |
/// | `journal` | a file of this holder's own, for what must outlive its process |
/// | `n` | the drawn number within `keys` |
///
/// ```
/// use pause_kit::target::{ParseTemplateError, Template, Values};
///
/// let body: Template = r#"{"id":"{key}"}"#.parse()?;
/// let values = Values::default().with("key", "acct-1");
/// assert_eq!(body.fill(&values)?, r#"{"id":"acct-1"}"#);
/// let typo = "{kye}".parse::<Template>().unwrap_err();
/// assert_eq!(typo, ParseTemplateError::Unknown { word: "kye".to_owned() });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    text: String,
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Value(String),
}

const NAMES: [&str; 14] = [
    "fence",
    "bin",
    "prefix",
    "database_url",
    "resource",
    "port",
    "key",
    "other",
    "bystander",
    "amount",
    "ttl",
    "id",
    "journal",
    "n",
];

impl Template {
    /// The text with every placeholder replaced.
    ///
    /// # Errors
    ///
    /// [`MissingValue`] when this place has no such value, such as `{resource}` before the resource was started.
    pub fn fill(&self, values: &Values) -> Result<String, MissingValue> {
        let mut filled = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Value(name) => {
                    filled.push_str(values.values.get(name).ok_or_else(|| MissingValue {
                        name: name.clone(),
                        text: self.text.clone(),
                    })?);
                }
            }
        }
        Ok(filled)
    }

    /// The names of the placeholders, in order, repeated as often as they stand there.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::Value(name) => Some(name.as_str()),
        })
    }

    /// The text as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl FromStr for Template {
    type Err = ParseTemplateError;

    fn from_str(text: &str) -> Result<Template, ParseTemplateError> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            plain.push_str(&rest[..open]);
            let after = &rest[open + 1..];
            match after
                .find('}')
                .map(|close| &after[..close])
                .filter(|word| is_name(word))
            {
                Some(word) if is_placeholder(word) => {
                    pieces.push(Piece::Text(std::mem::take(&mut plain)));
                    pieces.push(Piece::Value(word.to_owned()));
                    rest = &after[word.len() + 1..];
                }
                Some(word) => {
                    return Err(ParseTemplateError::Unknown {
                        word: word.to_owned(),
                    });
                }
                None if is_placeholder(leading_name(after)) => {
                    return Err(ParseTemplateError::NotClosed {
                        word: leading_name(after).to_owned(),
                    });
                }
                None => {
                    plain.push('{');
                    rest = after;
                }
            }
        }
        plain.push_str(rest);
        pieces.push(Piece::Text(plain));
        Ok(Template {
            text: text.to_owned(),
            pieces,
        })
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<'de> serde::Deserialize<'de> for Template {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Template, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The values that stand for placeholders at one place of a run.
#[derive(Clone, Debug, Default)]
pub struct Values {
    values: BTreeMap<String, String>,
}

impl Values {
    /// These values and one more; a value of the same name is replaced.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Values {
        self.values.insert(name.into(), value.into());
        self
    }
}

/// A text that means a placeholder and has none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseTemplateError {
    /// No placeholder has this name. Correct it.
    #[error("no placeholder is called {{{word}}}; there are {}, {{etcd.TIER}}", listed())]
    Unknown {
        /// The name that was written.
        word: String,
    },
    /// A brace and the name of a placeholder, without the brace that ends it. Close it, or part the two where the brace stands
    /// for itself.
    #[error("{{{word} is not closed; write {{{word}}}, or a space after a brace that stands for itself")]
    NotClosed {
        /// The name after the brace.
        word: String,
    },
}

/// A placeholder without a value at this place. Use another one, or move the text to a later step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{{{name}}} has no value yet in {text:?}")]
pub struct MissingValue {
    /// The placeholder's name.
    pub name: String,
    /// The text in which it stands.
    pub text: String,
}

fn is_placeholder(word: &str) -> bool {
    NAMES.contains(&word) || word.starts_with("etcd.")
}

fn is_name(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_lowercase()) && leading_name(word).len() == word.len()
}

/// As much of the text's beginning as may stand in a name.
fn leading_name(text: &str) -> &str {
    let of_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.-".contains(c);
    &text[..text.find(|c| !of_name(c)).unwrap_or(text.len())]
}

fn listed() -> String {
    NAMES.map(|name| format!("{{{name}}}")).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_that_hold_no_name_stand_for_themselves() {
        for text in ["{", "}", "{}", "{\"a\":1}", "{ key }", "{Key}", "a{{b"] {
            let template: Template = text.parse().unwrap();
            assert_eq!(template.fill(&Values::default()).unwrap(), text);
        }
    }

    #[test]
    fn a_placeholder_directly_inside_json_braces_is_filled() {
        let template: Template = "{{key}{other}}x{key}".parse().unwrap();
        let values = Values::default().with("key", "1").with("other", "2");
        assert_eq!(template.fill(&values).unwrap(), "{12}x1");
        assert_eq!(template.names().collect::<Vec<_>>(), ["key", "other", "key"]);
    }

    #[test]
    fn a_known_name_after_a_brace_that_is_not_closed_is_named() {
        for (text, word) in [
            ("{ttl", "ttl"),
            ("--ttl={ttl ", "ttl"),
            ("{key {other}", "key"),
            ("{\"id\":\"{key\"}", "key"),
            ("http://{resource/", "resource"),
            ("{etcd.entity,{prefix}", "etcd.entity"),
            ("{{key", "key"),
        ] {
            let error = text.parse::<Template>().unwrap_err();
            assert_eq!(
                error,
                ParseTemplateError::NotClosed {
                    word: word.to_owned()
                },
                "{text}"
            );
            assert_eq!(
                error.to_string(),
                format!(
                    "{{{word} is not closed; write {{{word}}}, or a space after a brace that stands for itself"
                ),
                "{text}"
            );
        }
        for text in ["{keys", "{tt", "{ ttl", "{\"key\":1}", "{Ttl", "{n1", "{"] {
            let template: Template = text.parse().unwrap();
            assert_eq!(template.fill(&Values::default()).unwrap(), text);
        }
    }

    #[test]
    fn a_value_that_looks_like_a_placeholder_is_not_filled_again() {
        let template: Template = "{key}".parse().unwrap();
        let values = Values::default().with("key", "{other}").with("other", "no");
        assert_eq!(template.fill(&values).unwrap(), "{other}");
    }

    #[test]
    fn a_missing_value_names_the_placeholder_and_its_text() {
        let template: Template = "http://{resource}/".parse().unwrap();
        let error = template.fill(&Values::default()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "{resource} has no value yet in \"http://{resource}/\""
        );
    }
}
