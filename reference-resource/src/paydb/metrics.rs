//! Counters for Prometheus, in the OpenMetrics text form.

use std::sync::Arc;
use std::time::Instant;

use fence_core::{Claim, ClassName};
use fence_http::ProblemKind;
use fence_pg::GuardError;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

/// What is counted. The labels are classes, kinds of problem, methods and statuses: no client makes their number grow.
#[derive(Clone, Debug)]
pub(super) struct Metrics(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    registry: Registry,
    answers: Family<Answered, Counter>,
    refusals: Family<Refused, Counter>,
    raised: Family<Class, Counter>,
    blocked: Family<Waited, Histogram, fn() -> Histogram>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    method: &'static str,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Refused {
    class: String,
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Class {
    class: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Waited {
    class: String,
    outcome: &'static str,
}

impl Metrics {
    pub(super) fn new() -> Metrics {
        let mut inner = Inner {
            registry: Registry::with_prefix("paydb"),
            answers: Family::default(),
            refusals: Family::default(),
            raised: Family::default(),
            // 1 ms to 4 s: an admission waits for 2 s at most.
            blocked: Family::new_with_constructor(|| Histogram::new(exponential_buckets(0.001, 2.0, 13))),
        };
        let registry = &mut inner.registry;
        registry.register("answers", "Requests by method and status", inner.answers.clone());
        registry.register(
            "fence_refusals",
            "Requests that the guard refused, at the door or in the transaction, by reason and by the class of their rule",
            inner.refusals.clone(),
        );
        registry.register(
            "fence_marks_raised",
            "Committed requests to raise a mark, repeated ones too; a transfer that raises it is not counted",
            inner.raised.clone(),
        );
        registry.register_with_unit(
            "fence_blocked",
            "How long transactions waited until they were admitted, replayed, refused or given up as blocked",
            Unit::Seconds,
            inner.blocked.clone(),
        );
        Metrics(Arc::new(inner))
    }

    /// The page that Prometheus reads.
    pub(super) fn page(&self) -> String {
        let mut page = String::new();
        encode(&mut page, &self.0.registry).expect("a text takes what is written to it");
        page
    }

    pub(super) fn answered(&self, method: &http::Method, status: u16) {
        let method = match method.as_str() {
            "GET" => "GET",
            "HEAD" => "HEAD",
            "POST" => "POST",
            "PUT" => "PUT",
            "PATCH" => "PATCH",
            "DELETE" => "DELETE",
            "OPTIONS" => "OPTIONS",
            _ => "other",
        };
        self.0.answers.get_or_create(&Answered { method, status }).inc();
    }

    /// A refusal of the guard, of a request for this class; of none where no rule covers the request.
    pub(super) fn refused(&self, class: Option<&ClassName>, kind: ProblemKind) {
        let reason = reason(kind);
        let class = class.map(ToString::to_string).unwrap_or_default();
        self.0.refusals.get_or_create(&Refused { class, reason }).inc();
    }

    pub(super) fn raised(&self, claim: &Claim) {
        let class = claim.class.to_string();
        self.0.raised.get_or_create(&Class { class }).inc();
    }

    /// An admission that is waited for from now on.
    pub(super) fn admission(&self, claim: &Claim) -> Admission<'_> {
        Admission {
            metrics: self,
            class: claim.class.to_string(),
            began: Instant::now(),
        }
    }
}

/// An admission that is waited for.
pub(super) struct Admission<'a> {
    metrics: &'a Metrics,
    class: String,
    began: Instant,
}

impl Admission<'_> {
    pub(super) fn ended<T>(self, outcome: Result<T, GuardError>) -> Result<T, GuardError> {
        let label = Waited {
            class: self.class,
            outcome: match &outcome {
                Ok(_) => "admitted",
                Err(GuardError::Refused(_)) => "refused",
                Err(GuardError::Blocked { .. }) => "blocked",
                Err(_) => "failed",
            },
        };
        let waited = self.began.elapsed().as_secs_f64();
        self.metrics.0.blocked.get_or_create(&label).observe(waited);
        outcome
    }
}

/// The last part of the problem's name.
pub(super) fn reason(kind: ProblemKind) -> &'static str {
    kind.uri().rsplit(':').next().unwrap_or_default()
}
