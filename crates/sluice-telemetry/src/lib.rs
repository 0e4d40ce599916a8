//! Traces: what took how long, told to a collector of OpenTelemetry if somebody wants that.
//!
//! A span is made where something begins, and ends when it is dropped. Nobody waits for a collector: spans go into a queue
//! of a limited length, and one thread hands them on in the form of OTLP/HTTP with JSON. What does not fit is counted and
//! forgotten. Without a collector a span is nothing, and costs the look whether there is one.
//!
//! What is done for a task or a run is one trace, whatever engine or worker does it: the ids of the trace and of its root are
//! made of the name of the stream. Traces are linked with what led to them.
//!
//! The form is written by hand. The crates of OpenTelemetry bring fifty others with them, among them a second HTTP client
//! and a second library of cryptography in C, for one request with a JSON body. No socket is opened here: whoever begins
//! says how a body is delivered.

mod context;
mod form;
mod queue;
mod settings;
mod span;

use std::sync::{Arc, OnceLock};

pub use context::{SpanContext, caused_by};
use queue::SpanQueue;
pub use queue::{SpanCounts, SpanDelivery};
pub use settings::TelemetrySettings;
pub use span::{HttpRequestFacts, SpanValue, TraceSpan};

/// Where spans go; empty as long as no collector is set.
static QUEUE: OnceLock<Arc<SpanQueue>> = OnceLock::new();

/// Spans are handed on as long as this lives. When it is dropped those that wait are handed on, for a short time.
#[must_use = "spans are handed on as long as this lives"]
pub struct SpanExportGuard(Arc<SpanQueue>);

impl Drop for SpanExportGuard {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Begins to hand spans on, for this process. `None` if that has been begun already, or there is no room for its thread.
///
/// `resource` is what this process says about itself. `deliver` is given one body after the other, on a thread of its own, and may take its time. `tell` hears when bodies
/// begin to fail, and when they arrive again.
pub fn begin(
    resource: Vec<(String, String)>,
    deliver: SpanDelivery,
    tell: impl Fn(&str) + Send + 'static,
) -> Option<SpanExportGuard> {
    let queue = SpanQueue::start(resource, deliver, tell)?;
    match QUEUE.set(queue.clone()) {
        Ok(()) => Some(SpanExportGuard(queue)),
        Err(unused) => {
            unused.end();
            None
        }
    }
}

/// Something begins here, on this machine.
pub fn span(name: &'static str) -> TraceSpan {
    TraceSpan::new(QUEUE.get(), name)
}

/// Whether spans go anywhere. What is not cheap to find out for one is spared without.
pub fn is_wanted() -> bool {
    QUEUE.get().is_some()
}

/// What became of the spans so far; `None` if no collector is set.
pub fn counts() -> Option<SpanCounts> {
    QUEUE.get().map(|queue| queue.counts())
}
