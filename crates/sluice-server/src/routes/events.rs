//! The log of everything, as lines of JSON: what there is, and with `follow` what comes.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Query, State};
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;
use sluice_api::Problem;
use sluice_home::duration;
use sluice_store::Cursor;

use crate::answer::refuse;
use crate::app::App;
use crate::caller::RequestCaller;
use crate::follow::glob::{Glob, LONGEST_PATTERN};
use crate::follow::{EventFilter, FollowReader, FollowSource, end_of_log};

/// Which events to read.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct EventsQuery {
    /// Only events whose type matches this pattern; `*` stands for anything.
    #[serde(rename = "type")]
    #[schemars(length(max = LONGEST_PATTERN))]
    kind: Option<String>,
    /// Only events since a time, or since how long ago: `90s`, `5m`, `2h`, `7d`.
    since: Option<String>,
    /// Only events of tasks and runs whose id begins with this.
    correlation: Option<String>,
    /// Keep the connection open and send new events.
    follow: bool,
    /// Only events that happen from now on.
    new: bool,
    /// Only events after this position in the log, such as `cursor` of the board or `seq` of an event; not with `new`.
    after: Option<u64>,
}

pub(crate) async fn events(
    State(app): State<Arc<App>>,
    caller: RequestCaller,
    Query(asked): Query<EventsQuery>,
) -> Response {
    let after = match (asked.new, asked.after) {
        (true, None) => end_of_log(app.clone()).await,
        (true, Some(_)) => {
            Err(Problem::bad_request("`new` and `after` exclude each other").hint("leave one of them out"))
        }
        (false, after) => Ok(after.map(Cursor).unwrap_or_default()),
    };
    let begun = after.and_then(|after| {
        let source = FollowSource::Everything { after, wanted: Arc::new(understood(&asked)?) };
        FollowReader::begin(app, caller, source, asked.follow)
    });
    match begun {
        Ok(reading) => reading.lines(),
        Err(problem) => refuse(&problem),
    }
}

fn understood(asked: &EventsQuery) -> Result<EventFilter, Problem> {
    Ok(EventFilter {
        kind: asked.kind.as_deref().map(Glob::read).transpose()?,
        since: asked.since.as_deref().map(moment).transpose()?,
        correlation: asked.correlation.clone(),
    })
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
        Problem::bad_request(format!("`{text}` is not a time"))
            .hint("write 2026-11-15, 2026-11-15T12:00:00Z, or how long ago: 90s, 5m, 2h, 7d")
    };
    let ago = duration::read(text, Duration::MAX).map_err(|_| wrong())?;
    let since = jiff::Timestamp::now().checked_sub(ago).map_err(|_| wrong())?;
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
        assert_eq!(at("2026-13-15"), Err("`2026-13-15` is not a time".into()));
    }

    #[test]
    fn times() {
        assert_eq!(moment("2026-11-15T12:00:00Z").ok().as_deref(), Some("2026-11-15T12:00:00.000Z"));
        assert!(
            moment("5m").is_ok()
                && moment("1h30m").is_ok()
                && moment("é").is_err()
                && moment("").is_err()
                && moment("5y").is_err()
        );
    }
}
