//! Building a layer, and the mistakes that are found then.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use fence_core::{ClassName, Key};
use http::request::Parts;
use http::{HeaderName, Method, Response};

use super::layer::{FenceLayer, Linger, Settings};
use super::pattern::Pattern;
use super::rejection::Rejection;
use super::rule::{Compiled, KeySource, Rules};
use crate::header::FENCING_TOKEN;
use crate::problem::Problem;

/// Which requests are guarded, and where their class and key are.
///
/// A pattern is `/` and segments: `{name}` stands for one segment that is the key, `*` for one that is not, anything else
/// for itself. A rule covers every method that is not safe, unless [`Rule::methods`] names them.
#[derive(Clone, Debug)]
pub struct Rule {
    pattern: String,
    key: KeySource,
    methods: Option<Vec<Method>>,
    observed: bool,
}

impl Rule {
    /// The key is in the path, percent-decoded once. With several `{name}` it is their composite in the order of the
    /// pattern.
    pub fn by_path(class: ClassName, pattern: impl Into<String>) -> Rule {
        Rule::new(pattern, KeySource::Path(class))
    }

    /// The key is in a header that comes exactly once, percent-decoded once.
    pub fn by_header(class: ClassName, pattern: impl Into<String>, header: HeaderName) -> Rule {
        Rule::new(pattern, KeySource::Header(class, header))
    }

    /// Class and key are what a function finds in the request's head: method, URI, headers, extensions. It must decide by
    /// what the handler writes by, or the guard holds the wrong row.
    pub fn by_head(
        pattern: impl Into<String>,
        find: impl Fn(&Parts) -> Result<(ClassName, Key), Unnamed> + Send + Sync + 'static,
    ) -> Rule {
        Rule::new(pattern, KeySource::Head(HeadFn(Arc::new(find))))
    }

    /// Covers these methods alone, a safe one among them too if it is named. Another method on the same path needs a rule
    /// of its own.
    pub fn methods(mut self, methods: impl IntoIterator<Item = Method>) -> Rule {
        self.methods = Some(methods.into_iter().collect());
        self
    }

    /// Counts what this rule would refuse, and lets it through without a claim. See [`FenceLayerBuilder::observe`].
    pub fn observed(mut self) -> Rule {
        self.observed = true;
        self
    }

    fn new(pattern: impl Into<String>, key: KeySource) -> Rule {
        Rule {
            pattern: pattern.into(),
            key,
            methods: None,
            observed: false,
        }
    }
}

/// A request's head that names no class and key, and why, for the client to read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unnamed(pub String);

/// What [`Rule::by_head`] asks.
#[derive(Clone)]
pub(super) struct HeadFn(Arc<Find>);

type Find = dyn Fn(&Parts) -> Result<(ClassName, Key), Unnamed> + Send + Sync;

impl HeadFn {
    pub(super) fn find(&self, head: &Parts) -> Result<(ClassName, Key), Unnamed> {
        (self.0)(head)
    }
}

impl fmt::Debug for HeadFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HeadFn")
    }
}

/// Builds a [`FenceLayer`].
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct FenceLayerBuilder {
    rules: Vec<Rule>,
    exempt: Vec<(Method, String)>,
    settings: Settings,
}

impl FenceLayerBuilder {
    /// Adds a rule.
    pub fn rule(mut self, rule: Rule) -> FenceLayerBuilder {
        self.rules.push(rule);
        self
    }

    /// Guards the paths of a pattern, with the key in the path: [`Rule::by_path`] for every method that is not safe.
    pub fn guard(self, class: ClassName, pattern: impl Into<String>) -> FenceLayerBuilder {
        self.rule(Rule::by_path(class, pattern))
    }

    /// Lets requests of this method on the paths of a pattern through without a token, such as one that creates the row
    /// which later ones guard.
    pub fn exempt(mut self, method: Method, pattern: impl Into<String>) -> FenceLayerBuilder {
        self.exempt.push((method, pattern.into()));
        self
    }

    /// Turns an answer below 400 without a receipt for its claim into a 500 that names the route.
    pub fn strict(mut self) -> FenceLayerBuilder {
        self.settings.strict = true;
        self
    }

    /// Counts what would be refused, of every rule and where there is none, and lets it through without a claim: the first
    /// step of guarding a service that is in use. Nothing is guarded by such a layer. A request that would be let in carries
    /// its claim as ever; what strict mode would turn into a 500 is counted too.
    pub fn observe(mut self) -> FenceLayerBuilder {
        self.settings.observe = true;
        self
    }

    /// Sets how much of what is left of a request's body is read before the answer, and for how long.
    pub fn linger(mut self, linger: Linger) -> FenceLayerBuilder {
        self.settings.linger = linger;
        self
    }

    /// Words the layer's own refusals otherwise. An answer below 400 is not sent: the [`Problem`] is, in its place.
    pub fn answer_with(
        mut self,
        answer: impl Fn(&Rejection, &Problem) -> Response<Bytes> + Send + Sync + 'static,
    ) -> FenceLayerBuilder {
        self.settings.answer = Some(Answer(Arc::new(answer)));
        self
    }

    /// The layer.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], the first mistake found. The service must not start without the layer.
    pub fn build(self) -> Result<FenceLayer, ConfigError> {
        if self.rules.is_empty() && !self.settings.observe {
            return Err(ConfigError::NoRules);
        }
        let mut rules = Rules::default();
        for rule in self.rules {
            rules.guard(compile(rule)?)?;
        }
        for (method, pattern) in self.exempt {
            if method.is_safe() {
                return Err(ConfigError::NothingToExempt { method, pattern });
            }
            rules.exempt(method, Pattern::parse(&pattern)?)?;
        }
        Ok(FenceLayer::new(rules, self.settings))
    }
}

fn compile(rule: Rule) -> Result<Compiled, ConfigError> {
    let pattern = Pattern::parse(&rule.pattern)?;
    match &rule.key {
        KeySource::Path(_) if !pattern.names_a_key() => {
            return Err(ConfigError::NoKey {
                pattern: pattern.text,
            });
        }
        KeySource::Header(_, name) if *name == FENCING_TOKEN => {
            return Err(ConfigError::KeyIsToken {
                pattern: pattern.text,
            });
        }
        _ => {}
    }
    if rule.methods.as_ref().is_some_and(Vec::is_empty) {
        return Err(ConfigError::NoMethods {
            pattern: pattern.text,
        });
    }
    Ok(Compiled {
        pattern,
        methods: rule.methods,
        key: rule.key,
        observed: rule.observed,
    })
}

/// What [`FenceLayerBuilder::answer_with`] was given.
#[derive(Clone)]
pub(super) struct Answer(Arc<Word>);

type Word = dyn Fn(&Rejection, &Problem) -> Response<Bytes> + Send + Sync;

impl Answer {
    /// The answer, unless it would be taken for success.
    pub(super) fn word(&self, rejection: &Rejection, problem: &Problem) -> Option<Response<Bytes>> {
        let response = (self.0)(rejection, problem);
        (response.status().as_u16() >= 400).then_some(response)
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Answer")
    }
}

/// A mistake in what the layer was given. Mend it; the service must not start without the layer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A layer without rules refuses every mutating request. Give it one, or leave it out.
    #[error("the layer has no rule")]
    NoRules,
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
    /// The key is to be found in the header that holds the token. Name the header that holds the key.
    #[error("pattern {pattern:?} takes the token's header for the key")]
    KeyIsToken {
        /// The pattern.
        pattern: String,
    },
    /// The rule names methods, and none. Name one, or leave [`Rule::methods`] out.
    #[error("pattern {pattern:?} covers no method")]
    NoMethods {
        /// The pattern.
        pattern: String,
    },
    /// A safe method needs no token, and so no exemption.
    #[error("{method} {pattern} needs no exemption, the method is safe")]
    NothingToExempt {
        /// The method.
        method: Method,
        /// The pattern.
        pattern: String,
    },
    /// Some request matches both patterns, so that the rule would depend on their order.
    #[error("patterns {first:?} and {second:?} overlap")]
    Overlap {
        /// The one given first.
        first: String,
        /// The one given now; exemptions come after rules.
        second: String,
    },
}
