//! Which requests need a token, and what they claim.

use std::sync::Arc;

use fence_core::{ClassName, Key};
use http::request::Parts;
use http::{HeaderName, Method};

use super::builder::{ConfigError, HeadFn};
use super::pattern::{Pattern, decode_bytes};
use super::presented::{Named, Presented};
use super::rejection::Rejection;
use crate::header::{self, HeaderError};

#[derive(Clone, Debug)]
pub(super) enum KeySource {
    Path(ClassName),
    Header(ClassName, HeaderName),
    Head(HeadFn),
}

/// A rule that was found to be in order.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) pattern: Pattern,
    /// Every method that is not safe, where there is nothing.
    pub(super) methods: Option<Vec<Method>>,
    pub(super) key: KeySource,
    pub(super) observed: bool,
}

/// What the rules say of a request.
pub(super) enum Found<'a> {
    /// It needs no token.
    Free,
    /// The rule of this number.
    Rule(usize, &'a Compiled),
    Nothing,
}

#[derive(Debug, Default)]
pub(super) struct Rules {
    guarded: Vec<Compiled>,
    exempt: Vec<(Method, Pattern)>,
}

impl Rules {
    pub(super) fn guard(&mut self, rule: Compiled) -> Result<(), ConfigError> {
        let before = self.guarded.iter().find(|before| {
            before.pattern.overlaps(&rule.pattern) && share_a_method(&before.methods, &rule.methods)
        });
        if let Some(before) = before {
            return Err(overlap(&before.pattern, &rule.pattern));
        }
        self.guarded.push(rule);
        Ok(())
    }

    pub(super) fn exempt(&mut self, method: Method, pattern: Pattern) -> Result<(), ConfigError> {
        let guarded = self
            .guarded
            .iter()
            .filter(|rule| rule.covers(&method))
            .map(|rule| &rule.pattern);
        let exempt = self.exempt.iter().filter(|(exempt, _)| *exempt == method);
        let mut before = guarded.chain(exempt.map(|(_, pattern)| pattern));
        if let Some(before) = before.find(|before| before.overlaps(&pattern)) {
            return Err(overlap(before, &pattern));
        }
        self.exempt.push((method, pattern));
        Ok(())
    }

    pub(super) fn find(&self, method: &Method, path: &str) -> Found<'_> {
        let mut rules = self.guarded.iter().enumerate();
        if let Some((number, rule)) =
            rules.find(|(_, rule)| rule.covers(method) && rule.pattern.matches(path))
        {
            return Found::Rule(number, rule);
        }
        let exempted = |(exempt, pattern): &(Method, Pattern)| exempt == method && pattern.matches(path);
        if method.is_safe() || self.exempt.iter().any(exempted) {
            return Found::Free;
        }
        Found::Nothing
    }

    pub(super) fn rule(&self, number: usize) -> &Compiled {
        &self.guarded[number]
    }

    /// What a request presents under a rule.
    pub(super) fn present(self: &Arc<Rules>, number: usize, head: &Parts) -> Result<Presented, Rejection> {
        let rule = self.rule(number);
        let header = header::only(&head.headers).map_err(Rejection::Header)?;
        let (token, grant) = header::read(header).map_err(Rejection::Header)?;
        drop(grant);
        Ok(Presented {
            rules: Arc::clone(self),
            rule: number,
            token,
            header: header.clone(),
            named: rule.named(head)?,
        })
    }
}

impl Compiled {
    fn covers(&self, method: &Method) -> bool {
        match &self.methods {
            None => !method.is_safe(),
            Some(methods) => methods.contains(method),
        }
    }

    /// The class and key of a request whose path matches this rule.
    fn named(&self, head: &Parts) -> Result<Named, Rejection> {
        match &self.key {
            KeySource::Path(class) => {
                match (self.pattern.plain_key(head.uri.path()), head.uri.path_and_query()) {
                    (Some(key), Some(path)) => {
                        Key::check(key).map_err(Rejection::Key)?;
                        Ok(Named::InPath(path.clone()))
                    }
                    _ => Ok(Named::Read(class.clone(), self.pattern.key(head.uri.path())?)),
                }
            }
            KeySource::Header(class, name) => {
                let mut values = head.headers.get_all(name).iter();
                match (values.next(), values.next()) {
                    (Some(value), None) => {
                        let text = decode_bytes(value.as_bytes())?;
                        Ok(Named::Read(
                            class.clone(),
                            Key::text(text).map_err(Rejection::Key)?,
                        ))
                    }
                    _ => Err(Rejection::KeyHeader {
                        name: name.clone(),
                        count: head.headers.get_all(name).iter().count(),
                    }),
                }
            }
            KeySource::Head(function) => {
                let (class, key) = function.find(head).map_err(Rejection::Unnamed)?;
                Ok(Named::Read(class, key))
            }
        }
    }
}

impl From<HeaderError> for Rejection {
    fn from(error: HeaderError) -> Rejection {
        Rejection::Header(error)
    }
}

fn share_a_method(first: &Option<Vec<Method>>, second: &Option<Vec<Method>>) -> bool {
    match (first, second) {
        (None, None) => true,
        (Some(named), None) | (None, Some(named)) => named.iter().any(|method| !method.is_safe()),
        (Some(first), Some(second)) => first.iter().any(|method| second.contains(method)),
    }
}

fn overlap(first: &Pattern, second: &Pattern) -> ConfigError {
    ConfigError::Overlap {
        first: first.text.clone(),
        second: second.text.clone(),
    }
}
