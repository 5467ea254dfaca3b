//! Recognising a holder's requests on its path.

use std::time::Instant;

use crate::path::{ConnectionNumber, Log};
use crate::run::RunError;
use crate::target::{ClassProof, Template, Values};
use crate::wire::http::{Exchange, Headers, exchanges};

use super::half::filled;

/// What the requests of a front look like, for one key.
#[derive(Clone, Debug)]
pub(crate) struct Forms {
    write: (String, String),
    raise: (String, String),
    read: Option<(String, String)>,
    /// The header that holds a write's id.
    id: Option<String>,
    /// The member of each object in a read's answer that is a write's id.
    member: String,
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Raises the mark.
    Raise,
    /// Writes.
    Write,
    /// Reads the writes.
    Read,
}

/// A request of one of the forms.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) kind: Kind,
    pub(crate) connection: ConnectionNumber,
    pub(crate) exchange: Exchange,
    /// The write's id.
    pub(crate) id: Option<String>,
    /// The token and the grant id in `Fencing-Token`, letter for letter.
    pub(crate) presented: (Option<String>, Option<String>),
    /// When the path cut the connection off.
    pub(crate) cut: Option<Instant>,
    /// The ids that a read's answer shows; none when it is no whole answer with 2xx.
    pub(crate) shown: Option<Vec<String>>,
}

impl Forms {
    /// The forms of a class that has a front.
    pub(crate) fn of(proof: &ClassProof, values: &Values) -> Result<Option<Forms>, RunError> {
        let Some(front) = &proof.front else {
            return Ok(None);
        };
        let id = front
            .write
            .headers
            .iter()
            .find(|(_, value)| value.as_str() == "{id}")
            .map(|(name, _)| name.clone());
        let path = |template: &Template| filled(template, values);
        Ok(Some(Forms {
            write: (front.write.method.clone(), path(&front.write.path)?),
            raise: (front.raise.method.clone(), path(&front.raise.path)?),
            read: match &proof.read.path {
                Some(template) => Some(("GET".to_owned(), path(template)?)),
                None => None,
            },
            id,
            member: proof.read.id.clone().unwrap_or_default(),
        }))
    }

    fn kind(&self, exchange: &Exchange) -> Option<Kind> {
        let is = |(method, path): &(String, String)| {
            *method == exchange.request.method && *path == exchange.request.target
        };
        match () {
            () if is(&self.write) => Some(Kind::Write),
            () if is(&self.raise) => Some(Kind::Raise),
            () if self.read.as_ref().is_some_and(is) => Some(Kind::Read),
            () => None,
        }
    }
}

/// The requests on a path that have one of the forms, in the order in which they began.
pub(crate) fn seen(log: &Log, forms: &Forms) -> Vec<Seen> {
    let mut all = Vec::new();
    for connection in log.connections() {
        // What is no HTTP is nothing that the forms describe; the run then misses a request, and says which.
        for exchange in exchanges(connection).unwrap_or_default() {
            let Some(kind) = forms.kind(&exchange) else {
                continue;
            };
            let headers = &exchange.request.headers;
            let id = forms
                .id
                .as_deref()
                .and_then(|name| headers.only(name))
                .map(str::to_owned);
            let presented = claims(headers);
            let shown = match (&exchange.answer, kind) {
                (Some(answer), Kind::Read) if answer.complete && answer.status / 100 == 2 => {
                    ids(&answer.body, &forms.member)
                }
                _ => None,
            };
            all.push(Seen {
                kind,
                connection: connection.number,
                id,
                presented,
                cut: connection.cut,
                shown,
                exchange,
            });
        }
    }
    all.sort_by_key(|seen| seen.exchange.request.began);
    all
}

/// The ids in a JSON answer: an array of objects, or an object that holds one array.
pub(crate) fn ids(body: &[u8], member: &str) -> Option<Vec<String>> {
    let answer: serde_json::Value = serde_json::from_slice(body).ok()?;
    let items = match &answer {
        serde_json::Value::Array(items) => items,
        serde_json::Value::Object(members) => members.values().find_map(|value| value.as_array())?,
        _ => return None,
    };
    items
        .iter()
        .map(|item| Some(item.get(member)?.as_str()?.to_owned()))
        .collect()
}

/// Token and grant id as a request presents them; where it does so several times, all of them, joined by commas.
fn claims(headers: &Headers) -> (Option<String>, Option<String>) {
    let fields = headers
        .all("fencing-token")
        .filter_map(|field| std::str::from_utf8(field).ok());
    let (tokens, grants): (Vec<_>, Vec<_>) = fields.flat_map(|field| field.split(',')).map(presented).unzip();
    let joined = |texts: Vec<Option<String>>| {
        let texts: Vec<String> = texts.into_iter().flatten().collect();
        (!texts.is_empty()).then(|| texts.join(", "))
    };
    (joined(tokens), joined(grants))
}

/// Token and grant id of `"42";grant="b2f1"`, letter for letter and without judging them.
fn presented(field: &str) -> (Option<String>, Option<String>) {
    let quoted = |text: &str| {
        let (_, rest) = text.split_once('"')?;
        rest.split_once('"').map(|(inner, _)| inner.to_owned())
    };
    let (item, parameters) = field.split_once(';').unwrap_or((field, ""));
    let grant = parameters.trim_start().strip_prefix("grant=").and_then(quoted);
    (quoted(item), grant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_field_is_taken_apart_letter_for_letter() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(presented("\"42\";grant=\"b2f1\""), (some("42"), some("b2f1")));
        assert_eq!(presented("\"007\"; grant=\"a\""), (some("007"), some("a")));
        assert_eq!(presented("\"42\""), (some("42"), None));
        assert_eq!(presented("42"), (None, None));
    }

    #[test]
    fn ids_are_found_in_a_bare_array_and_in_one_inside_an_object() {
        let some = Some(vec!["g:1".to_owned()]);
        assert_eq!(ids(br#"[{"k":"g:1"}]"#, "k"), some);
        assert_eq!(ids(br#"{"n":1,"transfers":[{"k":"g:1"}]}"#, "k"), some);
        assert_eq!(ids(br#"[{"other":"g:1"}]"#, "k"), None);
        assert_eq!(ids(b"[]", "k"), Some(Vec::new()));
        assert_eq!(ids(b"no", "k"), None);
    }
}
