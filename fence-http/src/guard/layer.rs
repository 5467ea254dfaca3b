use std::sync::Arc;
use std::time::Duration;

use tower::Layer;

use super::body::Spare;
use super::builder::{Answer, FenceLayerBuilder};
use super::count::Counts;
use super::rule::Rules;
use super::service::Guard;

/// Layer that requires a fencing token of every mutating request. See the [module](crate::guard) for the exact rules.
#[derive(Clone, Debug)]
pub struct FenceLayer {
    rules: Arc<Rules>,
    settings: Arc<Settings>,
}

impl FenceLayer {
    /// Begins one.
    pub fn builder() -> FenceLayerBuilder {
        FenceLayerBuilder::default()
    }

    /// What the layer has refused, and what it would have refused while it observed.
    pub fn counts(&self) -> Counts {
        self.settings.counts.clone()
    }

    pub(super) fn new(rules: Rules, settings: Settings) -> FenceLayer {
        FenceLayer {
            rules: Arc::new(rules),
            settings: Arc::new(settings),
        }
    }
}

impl<S> Layer<S> for FenceLayer {
    type Service = Guard<S>;

    fn layer(&self, inner: S) -> Guard<S> {
        Guard::new(inner, Arc::clone(&self.rules), Arc::clone(&self.settings))
    }
}

/// How much of a body that nobody has read is read and thrown away before the answer goes out, whatever the answer.
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
#[derive(Debug, Default)]
pub(super) struct Settings {
    pub(super) strict: bool,
    pub(super) observe: bool,
    pub(super) linger: Linger,
    pub(super) answer: Option<Answer>,
    pub(super) counts: Counts,
    pub(super) spare: Spare,
}

impl Clone for Settings {
    /// Two layers of one builder count apart.
    fn clone(&self) -> Settings {
        Settings {
            answer: self.answer.clone(),
            counts: Counts::default(),
            spare: Spare::default(),
            ..*self
        }
    }
}
