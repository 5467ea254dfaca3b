use std::sync::Arc;
use std::time::Duration;

use fence_core::ClassName;
use http::{HeaderName, Method};
use tower::Layer;

use super::rule::{ConfigError, KeySource, Rules};
use super::service::Guard;

/// Layer that requires a fencing token of every mutating request. See the [module](crate::guard) for the exact rules.
///
/// A new layer has no rules and refuses every mutating request.
#[derive(Clone, Debug, Default)]
pub struct FenceLayer {
    rules: Rules,
    settings: Settings,
}

impl FenceLayer {
    /// A layer without rules.
    pub fn new() -> FenceLayer {
        FenceLayer::default()
    }

    /// Guards the paths of a pattern, with the key in the path.
    ///
    /// A pattern is `/` and segments: `{name}` stands for one segment that is the key, `*` for one that is not, anything
    /// else for itself. With several `{name}` the key is their composite in the order of the pattern.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] when the pattern is malformed, names no key, or overlaps one given before.
    pub fn guard(mut self, class: ClassName, pattern: &str) -> Result<FenceLayer, ConfigError> {
        self.rules.guard(class, pattern, KeySource::Path)?;
        Ok(self)
    }

    /// Guards the paths of a pattern, with the key in a header that comes exactly once.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] when the pattern is malformed or overlaps one given before.
    pub fn guard_by_header(
        mut self,
        class: ClassName,
        pattern: &str,
        header: HeaderName,
    ) -> Result<FenceLayer, ConfigError> {
        self.rules.guard(class, pattern, KeySource::Header(header))?;
        Ok(self)
    }

    /// Lets requests of this method on the paths of a pattern through without a token, such as one that creates the row
    /// which later ones guard.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] when the pattern is malformed or overlaps one given before.
    pub fn exempt(mut self, method: Method, pattern: &str) -> Result<FenceLayer, ConfigError> {
        self.rules.exempt(method, pattern)?;
        Ok(self)
    }

    /// Turns an answer below 400 without a receipt for its claim into a 500 that names the route.
    pub fn strict(mut self) -> FenceLayer {
        self.settings.strict = true;
        self
    }

    /// Sets how long the rest of a refused request's body is read before the answer.
    pub fn linger(mut self, linger: Linger) -> FenceLayer {
        self.settings.linger = linger;
        self
    }
}

impl<S> Layer<S> for FenceLayer {
    type Service = Guard<S>;

    fn layer(&self, inner: S) -> Guard<S> {
        Guard::new(inner, Arc::new(self.rules.clone()), self.settings)
    }
}

/// How much of a refused request's body is read and thrown away before the answer goes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Linger {
    /// At most this many bytes, 32 MiB by default. A body that announces more is not read at all. With 0 none is.
    pub max_bytes: u64,
    /// At most this long, 10 s by default.
    pub max_time: Duration,
}

impl Default for Linger {
    fn default() -> Linger {
        Linger {
            max_bytes: 32 << 20,
            max_time: Duration::from_secs(10),
        }
    }
}

/// What is not a rule.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Settings {
    pub(super) strict: bool,
    pub(super) linger: Linger,
}
