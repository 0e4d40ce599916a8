//! Traces of this process, for whoever a person names. A collector that cannot be used is written down and done without:
//! it must not keep the engine from working.

use std::sync::Arc;

use sluice_api::client::Outside;
use sluice_home::config::HomeConfig;
use sluice_home::log::HomeLog;
use sluice_telemetry::{SpanContext, SpanExportGuard, TelemetrySettings};

tokio::task_local! {
    /// The span of the request that is answered, for what it starts.
    static REQUEST: Option<SpanContext>;
}

/// The span of the request that this answers, if it has one.
pub(crate) fn request_span() -> Option<SpanContext> {
    REQUEST.try_with(|span| *span).ok().flatten()
}

/// Answers a request that has this span.
pub(crate) async fn answering<T>(span: Option<SpanContext>, answer: impl Future<Output = T>) -> T {
    REQUEST.scope(span, answer).await
}

/// Hands traces on as long as what is returned lives; `None` if nobody wants them.
pub fn traces(config: &HomeConfig, log: &Arc<HomeLog>) -> Option<SpanExportGuard> {
    let unusable = |why: &str| log.line(&format!("no traces are delivered: {why}"));
    let variable = |name: &str| std::env::var(name).ok();
    let settings = TelemetrySettings::read(variable, config.telemetry.endpoint.as_deref());
    let settings = settings.inspect_err(|why| unusable(why)).ok()??;
    let collector = Outside::at(&settings.endpoint, &settings.headers);
    let collector = collector.inspect_err(|problem| unusable(&problem.message)).ok()?;
    log.line(&format!("traces go to {}", collector.host()));
    settings.notes.iter().for_each(|note| log.line(&format!("traces: {note}")));
    let told = log.clone();
    let deliver = move |body| collector.post(body).map_err(|problem| problem.message);
    sluice_telemetry::begin(settings.resource, Box::new(deliver), move |words| told.line(words))
}
