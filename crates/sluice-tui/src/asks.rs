//! What screens ask of the engine, and under which route.

use serde::de::DeserializeOwned;
use serde_json::Value;
use sluice_api::Client;
use sluice_api::attention::AttentionList;
use sluice_api::board::{BoardRowKind, Views};
use sluice_api::client::escape;
use sluice_api::diff::TaskLog;
use sluice_api::event::EventShown;
use sluice_api::grimoire::GrimoireList;
use sluice_api::problem::Problem;
use sluice_api::shown::{RunAnswer, RunLog};
use sluice_api::task::{History, TaskAnswer};

use crate::model::facts::{ScreenAsk, ScreenFact};
use crate::model::requests::{PersonRequest, RequestVerb};

/// The most lines of a log that are asked for.
const LOG_LINES: usize = 1_000;

/// The most events that are read for a list of them.
const MOST_EVENTS: usize = 500;

/// How far back the list of events begins.
const EVENTS_SINCE: &str = "2h";

fn of(kind: BoardRowKind, id: &str, what: &str) -> String {
    let id = escape(id);
    match kind {
        BoardRowKind::Task => format!("/v1/lifecycle/tasks/{id}{what}"),
        BoardRowKind::Run => format!("/v1/recipe/runs/{id}{what}"),
    }
}

/// Asks for what a screen shows.
pub(crate) fn fetch(client: &Client, ask: &ScreenAsk) -> Result<ScreenFact, Problem> {
    match ask {
        ScreenAsk::Task(id) => {
            client.get(&of(BoardRowKind::Task, id, "")).map(|it: TaskAnswer| ScreenFact::Task(Box::new(it.task)))
        }
        ScreenAsk::Run(id) => {
            client.get(&of(BoardRowKind::Run, id, "")).map(|it: RunAnswer| ScreenFact::Run(Box::new(it.run)))
        }
        ScreenAsk::Screen(kind, id) => got(client, &of(*kind, id, "/screen"), ScreenFact::Screen),
        ScreenAsk::Changes(kind, id) => got(client, &of(*kind, id, "/changes"), |it| ScreenFact::Changes(Box::new(it))),
        ScreenAsk::File(id) => got(client, &of(BoardRowKind::Task, id, "/file"), ScreenFact::File),
        ScreenAsk::History(BoardRowKind::Task, id) => {
            got(client, &of(BoardRowKind::Task, id, "/history"), |it: History| ScreenFact::History(it.events))
        }
        ScreenAsk::History(kind @ BoardRowKind::Run, id) => events(client, &of(*kind, id, "/events")),
        ScreenAsk::Log(BoardRowKind::Task, id) => {
            let path = of(BoardRowKind::Task, id, &format!("/log?lines={LOG_LINES}"));
            got(client, &path, |it: TaskLog| ScreenFact::Log(it.log))
        }
        ScreenAsk::Log(kind @ BoardRowKind::Run, id) => {
            got(client, &of(*kind, id, "/log"), |it: RunLog| ScreenFact::Log(it.log))
        }
        ScreenAsk::StepLog(id, step) => {
            let path = of(BoardRowKind::Run, id, &format!("/log?step={}", escape(step)));
            got(client, &path, |it: RunLog| ScreenFact::Log(it.log))
        }
        ScreenAsk::Usage(kind, id) => got(client, &of(*kind, id, "/usage"), ScreenFact::Usage),
        ScreenAsk::Timeline(id) => got(client, &of(BoardRowKind::Run, id, "/timeline"), ScreenFact::Timeline),
        ScreenAsk::Inbox => got(client, "/v1/attention", |it: AttentionList| ScreenFact::Inbox(it.attention)),
        ScreenAsk::Workers => got(client, "/v1/workers", ScreenFact::Workers),
        ScreenAsk::Workspaces => got(client, "/v1/workspaces", |it| ScreenFact::Workspaces(Box::new(it))),
        ScreenAsk::Costs(by) => got(client, &format!("/v1/costs?by={by}"), ScreenFact::Costs),
        ScreenAsk::Schedules => got(client, "/v1/schedules", ScreenFact::Schedules),
        ScreenAsk::Events => events(client, &format!("/v1/events?since={EVENTS_SINCE}")),
        ScreenAsk::Views => got(client, "/v1/views", |it: Views| ScreenFact::Views(it.views)),
        ScreenAsk::Recipes(project) => {
            let path = format!("/grimoires?project={}", escape(project));
            got(client, &path, |it: GrimoireList| ScreenFact::Recipes(it.grimoires))
        }
    }
}

fn got<T: DeserializeOwned>(
    client: &Client,
    path: &str,
    made: impl FnOnce(T) -> ScreenFact,
) -> Result<ScreenFact, Problem> {
    client.get(path).map(made)
}

/// Events as lines; the newest of them.
fn events(client: &Client, path: &str) -> Result<ScreenFact, Problem> {
    let mut events: Vec<EventShown> = Vec::new();
    client.lines(path, |line| {
        events.extend(serde_json::from_str::<EventShown>(line));
        if events.len() > 2 * MOST_EVENTS {
            events.drain(..MOST_EVENTS);
        }
        Ok(true)
    })?;
    let over = events.len().saturating_sub(MOST_EVENTS);
    Ok(ScreenFact::History(events.split_off(over)))
}

/// Has the engine do what a person wants.
pub(crate) fn send(client: &Client, request: &PersonRequest) -> Result<Value, Problem> {
    match request.verb {
        RequestVerb::Post => client.post(&request.path, &request.body),
        RequestVerb::Put => client.put(&request.path, &request.body),
        RequestVerb::Delete => client.delete_with(&request.path, &request.body),
    }
}
