//! What a server says beside its answers: the driver hands it on as events of `tracing`.

use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use tracing_core::field::{Field, Visit};
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::{Event, Level, Metadata, Subscriber, dispatcher};

use crate::say;

/// The target under which sqlx hands on a server's notices.
const TARGET: &str = "sqlx::postgres::notice";

/// The notices that came so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notices(Arc<Mutex<Vec<String>>>);

impl Notices {
    /// Listens from now on, for the rest of the process.
    pub(crate) fn listen() -> Notices {
        let notices = Notices::default();
        let dispatch = dispatcher::Dispatch::new(notices.clone());
        // It fails where somebody listens already, and a command connects once.
        let _ = dispatcher::set_global_default(dispatch);
        notices
    }

    /// Takes what came since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Shows what came since the last call to the person at the terminal, and returns it.
    pub(crate) fn tell(&self) -> Vec<String> {
        let notices = self.take();
        for notice in &notices {
            say::remark(&format!("notice: {notice}"));
        }
        notices
    }
}

impl Subscriber for Notices {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == TARGET && *metadata.level() <= Level::INFO
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(message.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The field `message` of an event.
struct Message(String);

impl Visit for Message {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.0.push_str(value);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            // Writing to a String does not fail.
            let _ = write!(self.0, "{value:?}");
        }
    }
}
