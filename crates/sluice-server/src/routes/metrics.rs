//! `/metrics`, and the span of every request: what is counted while requests are answered, and what is looked up when somebody wants to know. Labels are
//! routes, statuses and doors, never ids or paths as they were asked for: those have no end.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{self, IntoResponse, Response};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use sluice_api::Problem;
use sluice_home::ask::Census;
use sluice_telemetry::HttpRequestFacts;

use crate::answer::refuse;
use crate::app::request_span::answering;
use crate::app::{App, DurationLabels, RequestLabels};
use crate::caller::RequestCaller;
use crate::table::{RouteTable, get};

/// How the text is written: what everything that scrapes can read.
const FORM: &str = "text/plain; version=0.0.4; charset=utf-8";
const OPEN_FORM: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const NOWHERE: &str = "other";

#[derive(Clone)]
pub(crate) struct CountedDoor {
    pub(crate) app: Arc<App>,
    /// The scheme of its URLs: `http` or `https`.
    pub(crate) scheme: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VersionLabels {
    version: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabels {
    kind: &'static str,
    status: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabels {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DoorLabels {
    door: &'static str,
}

/// A folder of the home that can be a file system of its own: there are three.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FolderLabels {
    folder: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FateLabels {
    fate: &'static str,
}

pub(crate) fn table() -> RouteTable {
    RouteTable::new("home").add(get("/metrics", "Metrics for Prometheus").answers_as(FORM), metrics)
}

/// Counts a request when the head of its answer is there, and how long that took.
pub(crate) async fn count(State(door): State<CountedDoor>, request: Request, next: Next) -> Response {
    let CountedDoor { app, scheme } = door;
    let since = Instant::now();
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    // A method can be any word, and words have no end either.
    let known = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    let method = known.into_iter().find(|word| *word == request.method().as_str());
    let traceparent = request.headers().get("traceparent").and_then(|value| value.to_str().ok());
    let facts = HttpRequestFacts { method, scheme, route: route.as_deref() };
    let mut span = sluice_telemetry::span("request").request(&facts, traceparent);
    let response = answering(span.context(), next.run(request)).await;
    span.set("http.response.status_code", u32::from(response.status().as_u16()));
    if response.status().is_server_error() {
        span.fail(response.status().as_str());
    }
    drop(span);
    let (method, route) = (method.unwrap_or(NOWHERE).to_owned(), route.unwrap_or_else(|| NOWHERE.to_owned()));
    let labels = DurationLabels { method: method.clone(), route: route.clone() };
    app.counts.durations.get_or_create(&labels).observe(since.elapsed().as_secs_f64());
    let answered = RequestLabels { method, route, status: response.status().as_u16() };
    app.counts.requests.get_or_create(&answered).inc();
    response
}

async fn metrics(State(app): State<Arc<App>>, _: RequestCaller, headers: HeaderMap) -> response::Response {
    let accepts = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let is_open = accepts.into_iter().any(|accepts| accepts.contains("application/openmetrics-text"));
    let asked = app.clone();
    let census = tokio::task::spawn_blocking(move || asked.service.census()).await;
    match census.unwrap_or_else(|_| Err(Problem::fault("the metrics could not be looked up"))) {
        Ok(census) => told(&app, &census, is_open),
        Err(problem) => refuse(&problem),
    }
}

fn told(app: &App, census: &Census, is_open: bool) -> Response {
    let mut registry = Registry::with_prefix("sluice");
    let build: Family<VersionLabels, Gauge> = Family::default();
    build.get_or_create(&VersionLabels { version: env!("CARGO_PKG_VERSION") }).set(1);
    registry.register("build_info", "The version of the engine, as a label", build);
    registry.register("http_requests", "Requests, by route and status", app.counts.requests.clone());
    let durations = app.counts.durations.clone();
    registry.register_with_unit(
        "http_request_duration",
        "How long it took until the head of an answer was there, by route",
        Unit::Seconds,
        durations,
    );
    let open: Family<KindLabels, Gauge> = Family::default();
    for (kind, counted) in [("task", &census.tasks), ("run", &census.runs)] {
        for (status, count) in counted {
            open.get_or_create(&KindLabels { kind, status: status.clone() }).set(*count);
        }
    }
    registry.register("open", "Open tasks and runs, by status", open);
    let effects: Gauge = Gauge::default();
    effects.set(census.effects);
    registry.register("task_effects", "Effects of tasks that are asked for and not settled", effects);
    let attention: Family<ReasonLabels, Gauge> = Family::default();
    for (reason, count) in &census.attention {
        attention.get_or_create(&ReasonLabels { reason }).set(*count);
    }
    registry.register("attention", "What waits for a person, by reason", attention);
    let oldest: Gauge = Gauge::default();
    oldest.set(census.oldest_attention);
    registry.register_with_unit(
        "attention_oldest",
        "How long the oldest thing that waits for a person has waited",
        Unit::Seconds,
        oldest,
    );
    let faults: Gauge = Gauge::default();
    faults.set(census.faults);
    registry.register("faults", "List tasks and runs that stopped because the engine cannot read them", faults);
    let free: Family<FolderLabels, Gauge> = Family::default();
    for (folder, bytes) in &census.disk {
        free.get_or_create(&FolderLabels { folder: folder.clone() }).set(i64::try_from(*bytes).unwrap_or(i64::MAX));
    }
    registry.register_with_unit("disk_free", "Free space on the file systems of the home", Unit::Bytes, free);
    let (connections, followers): (Family<DoorLabels, Gauge>, Family<DoorLabels, Gauge>) = Default::default();
    for (door, (there, follow)) in [("socket", app.socket.present()), ("network", app.network.present())] {
        connections.get_or_create(&DoorLabels { door }).set(there);
        followers.get_or_create(&DoorLabels { door }).set(follow);
    }
    registry.register("connections", "Connections, by door", connections);
    registry.register("followers", "Those who follow the log, by door", followers);
    if let Some(counts) = sluice_telemetry::counts() {
        let spans: Family<FateLabels, Counter> = Family::default();
        let fates =
            [("delivered", counts.delivered), ("undelivered", counts.undelivered), ("overflowed", counts.overflowed)];
        for (fate, count) in fates {
            spans.get_or_create(&FateLabels { fate }).inc_by(count);
        }
        registry.register("spans", "Spans of traces, by what became of them", spans);
    }
    let mut text = String::new();
    if encode(&mut text, &registry).is_err() {
        return refuse(&Problem::fault("the metrics could not be written"));
    }
    let (text, form) = if is_open { (text, OPEN_FORM) } else { (classic(&text), FORM) };
    let mut response = text.into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(form));
    response
}

/// The older form of the same: a counter is called what its samples are called, and nothing marks the end.
fn classic(open: &str) -> String {
    let of_type = |line: &str| {
        let (name, kind) = line.strip_prefix("# TYPE ")?.split_once(' ')?;
        (kind == "counter").then(|| name.to_owned())
    };
    let counters: Vec<String> = open.lines().filter_map(of_type).collect();
    let mut text = String::with_capacity(open.len());
    for line in open.lines().filter(|line| *line != "# EOF") {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some(what), Some(name), Some(rest)) if counters.iter().any(|counter| counter == name) => {
                text.push_str(&format!("# {what} {name}_total {rest}\n"));
            }
            _ => text.push_str(&format!("{line}\n")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::classic;

    #[test]
    fn both_forms_say_the_same() {
        let open = "# HELP a_requests Requests.\n# TYPE a_requests counter\na_requests_total{x=\"# y\"} 1\n\
            # HELP a_open Open ones.\n# TYPE a_open gauge\na_open 2\n# EOF\n";
        let told = "# HELP a_requests_total Requests.\n# TYPE a_requests_total counter\na_requests_total{x=\"# y\"} 1\n\
            # HELP a_open Open ones.\n# TYPE a_open gauge\na_open 2\n";
        assert_eq!(classic(open), told);
    }
}
