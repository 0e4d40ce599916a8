//! The span of the request that is being answered: what it starts has that as its cause.

use sluice_telemetry::SpanContext;

tokio::task_local! {
    static REQUEST: Option<SpanContext>;
}

/// The span of the request that this answers, if it has one.
pub(crate) fn request_span() -> Option<SpanContext> {
    REQUEST.try_with(|span| *span).ok().flatten()
}

pub(crate) async fn answering<T>(span: Option<SpanContext>, answer: impl Future<Output = T>) -> T {
    REQUEST.scope(span, answer).await
}
