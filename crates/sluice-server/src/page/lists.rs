//! The pages that are lists: workers, workspaces, costs, events and settings.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use sluice_api::token::Token;
use sluice_api::usage::{Costs, CostsBy};
use sluice_api::workers::Workers;
use sluice_api::workspace::WorkspaceList;
use sluice_home::ask::CostsFilter;
use sluice_home::settings::config_list::{self, ListedSetting};
use sluice_store::Cursor;

use super::asked;
use super::frame::{Frame, page};
use super::task::EventLine;
use super::wording::{self, clock, cost, escape, length, tokens};
use crate::app::App;
use crate::follow::glob::Glob;

/// The most events of the page, the newest first.
const MOST_EVENTS: usize = 200;
/// How many of the newest events are looked through for those that fit.
const LOOKED_THROUGH: u64 = 4000;
/// The lengths of time that costs are shown for, in days.
const PERIODS: [u32; 4] = [1, 7, 30, 90];
/// The most worktrees, copies and leftovers of one table.
const MOST_LINES: usize = 300;

#[derive(Template)]
#[template(path = "workers.html")]
pub(super) struct WorkersPage {
    frame: Frame,
    it: Workers,
}

/// Answers `GET /workers` of a browser.
pub(super) async fn workers(State(app): State<Arc<App>>, frame: Frame) -> Response {
    match asked(&app, frame.visitor.who(), |service, who| service.workforce(who)).await {
        Ok(it) => page(Ok(WorkersPage { frame: frame.titled("Workers", "workers"), it })),
        Err(problem) => page::<WorkersPage>(Err((frame, problem))),
    }
}

#[derive(Template)]
#[template(path = "workspaces.html")]
pub(super) struct WorkspacesPage {
    frame: Frame,
    it: WorkspaceList,
    disks: Vec<(String, String, bool)>,
}

/// Answers `GET /workspaces` of a browser.
pub(super) async fn workspaces(State(app): State<Arc<App>>, frame: Frame) -> Response {
    match asked(&app, frame.visitor.who(), |service, _| service.workspaces(None)).await {
        Ok(mut it) => {
            it.workspaces.truncate(MOST_LINES);
            it.runs.truncate(MOST_LINES);
            it.kept.truncate(MOST_LINES);
            it.leftovers.truncate(MOST_LINES);
            let disks = it.disk.iter().map(|disk| (disk.path.clone(), wording::bytes(disk.free_bytes), disk.is_low));
            let disks = disks.collect();
            page(Ok(WorkspacesPage { frame: frame.titled("Workspaces", "workspaces"), it, disks }))
        }
        Err(problem) => page::<WorkspacesPage>(Err((frame, problem))),
    }
}

#[derive(Template)]
#[template(path = "costs.html")]
pub(super) struct CostsPage {
    frame: Frame,
    it: Costs,
    by: Vec<(String, &'static str, bool)>,
    periods: Vec<(String, u32, bool)>,
    rows: Vec<CostLine>,
    total: CostLine,
}

struct CostLine {
    name: String,
    link: Option<String>,
    attempts: u64,
    tokens: String,
    cost: String,
    /// Its part of the most expensive row, in hundredths.
    share: u32,
}

/// Answers `GET /costs` of a browser.
pub(super) async fn costs(State(app): State<Arc<App>>, frame: Frame) -> Response {
    let by = frame.query.get("by").and_then(CostsBy::read).unwrap_or(CostsBy::Project);
    let days = frame.query.get("days").and_then(|days| days.parse().ok()).filter(|days| PERIODS.contains(days));
    let days = days.unwrap_or(7);
    let found = asked(&app, frame.visitor.who(), move |service, _| {
        service.costs(CostsFilter { by, days: Some(days), project: None })
    });
    match found.await {
        Ok(it) => {
            let choice = |it: &CostsBy| (frame.query.with("/costs", "by", Some(it.word())), it.word(), *it == by);
            let period = |it: u32| (frame.query.with("/costs", "days", Some(&it.to_string())), it, it == days);
            let most = it.rows.iter().map(|row| weight(&row.sum)).fold(0.0, f64::max);
            page(Ok(CostsPage {
                by: CostsBy::ALL.iter().map(choice).collect(),
                periods: PERIODS.into_iter().map(period).collect(),
                rows: it.rows.iter().map(|row| CostLine::new(row, by, most)).collect(),
                total: CostLine::of("All together".to_owned(), None, &it.total, 0.0),
                it,
                frame: frame.titled("Costs", "costs"),
            }))
        }
        Err(problem) => page::<CostsPage>(Err((frame, problem))),
    }
}

fn weight(sum: &sluice_api::usage::UsageSum) -> f64 {
    sum.cost_usd.unwrap_or_else(|| sum.total_tokens.unwrap_or(0) as f64 / 1e6)
}

impl CostLine {
    fn new(row: &sluice_api::usage::CostRow, by: CostsBy, most: f64) -> CostLine {
        let name = if row.name.is_empty() { "not known".to_owned() } else { row.name.clone() };
        let link = match (by, &row.key) {
            (CostsBy::Task, Some(id)) => Some(format!("/tasks/{}", escape(id))),
            (CostsBy::Run, Some(id)) => Some(format!("/runs/{}", escape(id))),
            (CostsBy::Task | CostsBy::Run | CostsBy::Project | CostsBy::Day | CostsBy::Harness | CostsBy::Model, _) => {
                None
            }
        };
        CostLine::of(name, link, &row.sum, most)
    }

    fn of(name: String, link: Option<String>, sum: &sluice_api::usage::UsageSum, most: f64) -> CostLine {
        let share = if most > 0.0 { (weight(sum) / most * 100.0).round() as u32 } else { 0 };
        CostLine {
            name,
            link,
            attempts: sum.attempts,
            tokens: sum.total_tokens.map_or_else(|| "–".to_owned(), tokens),
            cost: sum.cost_usd.map_or_else(|| "–".to_owned(), cost),
            share,
        }
    }
}

#[derive(Template)]
#[template(path = "event_log.html")]
pub(super) struct EventsPage {
    frame: Frame,
    events: Vec<EventLine>,
    kind: String,
    about: String,
    problem: Option<String>,
}

/// Answers `GET /events` of a browser.
pub(super) async fn events(State(app): State<Arc<App>>, frame: Frame) -> Response {
    let kind = frame.query.get("type").unwrap_or_default().to_owned();
    let about = frame.query.get("correlation").unwrap_or_default().to_owned();
    let (pattern, problem) = match Some(kind.as_str()).filter(|kind| !kind.is_empty()).map(Glob::read).transpose() {
        Ok(pattern) => (pattern, None),
        Err(problem) => (None, Some(problem.message)),
    };
    let begins = about.clone();
    let found = asked(&app, frame.visitor.who(), move |service, _| {
        let end = service.home().tasks.end_of_log()?;
        let mut found = Vec::new();
        let mut at = Cursor(end.0.saturating_sub(LOOKED_THROUGH));
        loop {
            let read = service.events(at, MOST_EVENTS)?;
            let Some((last, _)) = read.last() else { break };
            at = *last;
            let fits = |event: &sluice_api::event::EventShown| {
                pattern.as_ref().is_none_or(|pattern| pattern.fits(&event.kind))
                    && event.correlation_id.starts_with(&begins)
            };
            found.extend(read.into_iter().map(|(_, event)| event).filter(fits));
            if at >= end {
                break;
            }
        }
        Ok(found)
    });
    match found.await {
        Ok(found) => {
            let events = found.iter().rev().take(MOST_EVENTS).map(EventLine::new).collect();
            page(Ok(EventsPage { frame: frame.titled("Events", "events"), events, kind, about, problem }))
        }
        Err(problem) => page::<EventsPage>(Err((frame, problem))),
    }
}

#[derive(Template)]
#[template(path = "settings.html")]
pub(super) struct SettingsPage {
    frame: Frame,
    settings: Vec<SettingLine>,
    tokens: Vec<Token>,
    version: &'static str,
    home: String,
    notes: Vec<String>,
}

struct SettingLine {
    key: String,
    value: String,
    origin: &'static str,
    about: String,
}

/// Answers `GET /settings` of a browser.
pub(super) async fn settings(State(app): State<Arc<App>>, frame: Frame) -> Response {
    let found = asked(&app, frame.visitor.who(), |service, who| {
        let places = &service.home().context.places;
        let listed = config_list::list(&places.config())?;
        // Only a person may see the tokens.
        let tokens = if who.is_person() { service.tokens(who)?.tokens } else { Vec::new() };
        let notes = [service.paused(), service.config_trouble()].into_iter().flatten();
        let damage = service.damage().into_iter().map(|(what, why)| format!("{what}: {why}"));
        Ok((listed, tokens, places.home().display().to_string(), notes.chain(damage).collect::<Vec<_>>()))
    });
    match found.await {
        Ok((listed, mut tokens, home, notes)) => {
            tokens.retain(|token| token.revoked_at.is_none());
            tokens.reverse();
            tokens.truncate(MOST_LINES);
            page(Ok(SettingsPage {
                settings: listed.into_iter().map(SettingLine::new).collect(),
                tokens,
                version: env!("CARGO_PKG_VERSION"),
                home,
                notes,
                frame: frame.titled("Settings", "settings"),
            }))
        }
        Err(problem) => page::<SettingsPage>(Err((frame, problem))),
    }
}

impl SettingLine {
    fn new(it: ListedSetting) -> SettingLine {
        let value = match &it.value {
            None => String::new(),
            Some(serde_json::Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        let origin = match it.from {
            config_list::SettingOrigin::File => "file",
            config_list::SettingOrigin::Default => "default",
            config_list::SettingOrigin::Environment => "environment",
        };
        SettingLine { key: it.key, value: wording::cut(&value, 200), origin, about: it.about }
    }
}

/// How long a worker has been silent, in words.
fn silent(seconds: &Option<u64>) -> String {
    seconds
        .map(|seconds| length(i64::try_from(seconds).unwrap_or(i64::MAX)))
        .unwrap_or_else(|| "never heard".to_owned())
}

fn at(time: &str) -> String {
    clock(time)
}
