//! Traces of this process, for whoever a person names. A collector that cannot be used is written down and done without:
//! it must not keep the engine from working.

use sluice_api::client::Outside;
use sluice_home::settings::config::HomeConfig;
use sluice_telemetry::{SpanExportGuard, TelemetrySettings};

/// Hands traces on as long as what is returned lives; `None` if no collector is set.
pub fn traces(config: &HomeConfig) -> Option<SpanExportGuard> {
    let unusable = |why: &str| tracing::warn!("no traces are delivered: {why}");
    let variable = |name: &str| std::env::var(name).ok();
    let settings = TelemetrySettings::read(variable, config.telemetry.endpoint.as_deref());
    let settings = settings.inspect_err(|why| unusable(why)).ok()??;
    let collector = Outside::at(&settings.endpoint, &settings.headers);
    let collector = collector.inspect_err(|problem| unusable(&problem.message)).ok()?;
    tracing::info!("traces go to {}", collector.host());
    settings.notes.iter().for_each(|note| tracing::warn!("traces: {note}"));
    let deliver = move |body| collector.post(body).map_err(|problem| problem.message);
    sluice_telemetry::begin(settings.resource, Box::new(deliver), move |words| tracing::warn!("{words}"))
}
