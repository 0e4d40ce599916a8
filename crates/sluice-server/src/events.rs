//! The log of everything, as lines of JSON: what there is, and with `follow` what comes.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures_util::stream;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use sluice_api::Problem;
use sluice_store::Cursor;
use tokio::sync::{OwnedSemaphorePermit, watch};

use crate::answer::refuse;
use crate::caller::Caller;
use crate::feed::{PAGE, Told};
use crate::routes::LINES;
use crate::run::App;

/// Which events somebody wants.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Filters {
    /// Only those whose type fits; `*` stands for anything.
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    /// Only those since a time, or since how long ago: `90s`, `5m`, `2h`, `7d`.
    pub(crate) since: Option<String>,
    /// Only those of what begins with this id.
    pub(crate) correlation: Option<String>,
    /// Also those that come.
    pub(crate) follow: bool,
}

/// Somebody who reads the log, and how far they have come.
pub(crate) struct Reading {
    app: Arc<App>,
    caller: Caller,
    wanted: Filters,
    after: Cursor,
    news: watch::Receiver<u64>,
    /// Their place among those who follow.
    _place: Option<OwnedSemaphorePermit>,
}

pub(crate) async fn events(State(app): State<Arc<App>>, caller: Caller, Query(wanted): Query<Filters>) -> Response {
    let reading = match Reading::begin(app, caller, wanted, Cursor::default()) {
        Ok(reading) => reading,
        Err(problem) => return refuse(&problem),
    };
    let lines = stream::unfold(reading, |mut reading| async move {
        let mut lines = Vec::new();
        for told in reading.next().await? {
            lines.extend_from_slice(&told.line);
            lines.push(b'\n');
        }
        Some((Ok::<Bytes, std::io::Error>(lines.into()), reading))
    });
    let mut response = Response::new(Body::from_stream(lines));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(LINES));
    response
}

impl Reading {
    /// Begins to read after a place in the log.
    pub(crate) fn begin(app: Arc<App>, caller: Caller, wanted: Filters, after: Cursor) -> Result<Reading, Problem> {
        app.touch();
        let wanted = Filters { since: wanted.since.as_deref().map(moment).transpose()?, ..wanted };
        let place = match wanted.follow.then(|| app.place(&caller)) {
            None => None,
            Some(Some(place)) => Some(place),
            Some(None) => {
                let problem = Problem::unavailable("too many follow the log already");
                return Err(problem.hint("ask without `follow`, or try again later"));
            }
        };
        Ok(Reading { news: app.news(), app, caller, wanted, after, _place: place })
    }

    /// The next events; `None` when there are no more and nobody waits for more.
    pub(crate) async fn next(&mut self) -> Option<Vec<Arc<Told>>> {
        loop {
            // What happens from here on is news.
            self.news.borrow_and_update();
            let page = self.page().await?;
            let last = page.last().map(|told| told.cursor);
            let events: Vec<Arc<Told>> = page.into_iter().filter(|told| fits(&self.wanted, &told.event)).collect();
            self.after = last.unwrap_or(self.after);
            if !events.is_empty() {
                return Some(events);
            }
            if last.is_some() {
                continue;
            }
            if !self.wanted.follow || self.app.is_stopping() {
                return None;
            }
            tokio::select! {
                heard = self.news.changed() => heard.ok()?,
                () = self.app.ends() => {}
            }
        }
    }

    /// What comes next: from what is ready, else from the log.
    async fn page(&self) -> Option<Vec<Arc<Told>>> {
        // A token that is revoked meanwhile opens nothing more.
        if !self.app.still_lets_in(&self.caller) {
            return None;
        }
        if let Some(ready) = self.app.feed.after(self.after).filter(|_| self.wanted.follow) {
            return Some(ready);
        }
        let _turn = self.app.reading.acquire().await.ok()?;
        let (app, after) = (self.app.clone(), self.after);
        let read = move || app.service.events(after, PAGE).ok();
        let page = tokio::task::spawn_blocking(read).await.ok()??;
        Some(page.into_iter().map(|(cursor, event)| Told::new(cursor, event)).collect())
    }
}

impl App {
    /// A place among those who follow the log through the same door.
    pub(crate) fn place(&self, caller: &Caller) -> Option<OwnedSemaphorePermit> {
        let room = match caller {
            Caller::Process(_) => &self.socket,
            Caller::Bearer(_) => &self.network,
        };
        room.followers.clone().try_acquire_owned().ok()
    }
}

fn fits(wanted: &Filters, event: &Value) -> bool {
    let text = |key: &str| event[key].as_str().unwrap_or_default();
    wanted.kind.as_deref().is_none_or(|pattern| matches(pattern, text("type")))
        && wanted.since.as_deref().is_none_or(|since| text("time") >= since)
        && wanted.correlation.as_deref().is_none_or(|begins| text("correlation_id").starts_with(begins))
}

/// Whether a text fits a pattern in which `*` stands for anything.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => text.strip_prefix(start).is_some_and(|left| {
            (0..=left.len()).filter(|at| left.is_char_boundary(*at)).any(|at| matches(rest, &left[at..]))
        }),
    }
}

/// A time, or how long ago, as events have it.
fn moment(text: &str) -> Result<String, Problem> {
    if let Ok(time) = text.parse::<jiff::Timestamp>() {
        return Ok(format!("{time:.3}"));
    }
    // A day, or a time without a zone, is of the zone that events are told in.
    let utc = text.parse::<jiff::civil::DateTime>().ok().and_then(|time| time.to_zoned(jiff::tz::TimeZone::UTC).ok());
    if let Some(time) = utc {
        return Ok(format!("{:.3}", time.timestamp()));
    }
    let wrong = || {
        Problem::bad_request(format!("`{text}` is no time"))
            .hint("say 2026-11-15, 2026-11-15T12:00:00Z, or how long ago: 90s, 5m, 2h, 7d")
    };
    let (number, unit) = text.split_at(text.len() - text.chars().last().map_or(0, char::len_utf8));
    let number: i64 = number.parse().map_err(|_| wrong())?;
    let seconds = match unit {
        "s" => number,
        "m" => number.saturating_mul(60),
        "h" => number.saturating_mul(3600),
        "d" => number.saturating_mul(86_400),
        _ => return Err(wrong()),
    };
    let since = jiff::Timestamp::now().checked_sub(jiff::SignedDuration::from_secs(seconds)).map_err(|_| wrong())?;
    Ok(format!("{since:.3}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_a_time_too() {
        let at = |text: &str| moment(text).map_err(|problem| problem.message);
        assert_eq!(at("2026-11-15"), Ok("2026-11-15T00:00:00.000Z".into()));
        assert_eq!(at("2026-11-15T12:30:00"), Ok("2026-11-15T12:30:00.000Z".into()));
        assert_eq!(at("2026-11-15T12:30:00+01:00"), Ok("2026-11-15T11:30:00.000Z".into()));
        assert_eq!(at("2026-13-15"), Err("`2026-13-15` is no time".into()));
    }

    #[test]
    fn patterns() {
        for (pattern, text, fit) in [
            ("task.*", "task.created", true),
            ("*", "", true),
            ("*.created", "task.created", true),
            ("task.created", "task.created", true),
            ("task", "task.created", false),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "aXbY", false),
        ] {
            assert_eq!(matches(pattern, text), fit, "{pattern} {text}");
        }
    }

    #[test]
    fn times() {
        assert_eq!(moment("2026-11-15T12:00:00Z").ok().as_deref(), Some("2026-11-15T12:00:00.000Z"));
        assert!(moment("5m").is_ok() && moment("é").is_err() && moment("").is_err() && moment("5y").is_err());
    }
}
