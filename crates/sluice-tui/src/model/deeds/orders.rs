//! Requests to the engine, made of what a person wants done with a row; and the commands that are typed after `:`.

use serde_json::{Value, json};
use sluice_api::board::{BoardAction, BoardRow, BoardRowKind};
use sluice_api::client::escape;

use super::name_of;
use crate::look::RowTone;
use crate::model::asking::{Confirm, GraveDeed, LinePrompt, Purpose};
use crate::model::requests::{MOST_REQUESTS, PersonRequest, RequestAbout, RequestVerb};
use crate::model::{DashboardCommand, Model, Overlay};

/// The commands that can be typed, with what they do.
pub(crate) const COMMANDS: &[(&str, &str)] = &[
    ("inbox", "what waits for you, one at a time"),
    ("workers", "workers, leases and pools"),
    ("workspaces", "worktrees and kept work"),
    ("costs", "what agents have used up"),
    ("events", "what happens, as it happens"),
    ("doctor", "check that everything is there"),
    ("create", "create a task"),
    ("start", "start a recipe"),
    ("schedules", "recipes that repeat, and when"),
    ("help", "every key"),
    ("quit", "the end"),
];

/// The command that begins like this, if it is one.
pub(crate) fn completed(begun: &str) -> String {
    let fits = |(name, _): &&(&str, &str)| name.starts_with(begun.trim());
    COMMANDS.iter().find(fits).map_or_else(|| begun.to_owned(), |(name, _)| (*name).to_owned())
}

/// The row of a request, as it is now.
pub(super) fn about(model: &Model, id: &str, action: BoardAction) -> Option<RequestAbout> {
    model.board.as_ref()?.row(id).map(|row| RequestAbout::new(row, action))
}

/// A person wants something done with a row. What cannot be taken back is asked for once more; what needs words asks for them.
pub(crate) fn order(model: &mut Model, id: &str, action: BoardAction) -> Vec<DashboardCommand> {
    let id = id.to_owned();
    match action {
        BoardAction::Cancel | BoardAction::Delete => confirm(model, id, action, "Its uncommitted work is kept."),
        BoardAction::Merge => confirm(model, id, action, "Its work goes into the default branch."),
        BoardAction::RequestChanges => prompt(model, Purpose::RequestChanges(id)),
        BoardAction::Nudge => prompt(model, Purpose::Nudge(id)),
        BoardAction::Attach => {
            model.overlay = None;
            vec![DashboardCommand::Attach(id)]
        }
        BoardAction::Answer => {
            super::peek(model, id);
            Vec::new()
        }
        BoardAction::CreatePr
        | BoardAction::Spawn
        | BoardAction::Respawn
        | BoardAction::Approve
        | BoardAction::Retry => ask_for(model, &id, action),
    }
}

fn confirm(model: &mut Model, row: String, action: BoardAction, outcome: &'static str) -> Vec<DashboardCommand> {
    let what = format!("{action} {}", name_of(model, &row));
    let about = about(model, &row, action);
    let deed = GraveDeed::Act { row, action };
    model.overlay = Some(Overlay::Confirm(Confirm { what, outcome, about, deed }));
    Vec::new()
}

/// What was asked for once more is meant. It is done to the row as the person saw it, or not at all.
pub(crate) fn meant(model: &mut Model, confirm: Confirm) -> Vec<DashboardCommand> {
    let Confirm { what, outcome: _, about, deed } = confirm;
    let row = |about: &RequestAbout| model.board.as_ref().and_then(|board| board.row(&about.id));
    let holds = |about: &RequestAbout| row(about).is_some_and(|row| about.still_holds(row));
    let waits = |attention: &str| row_waits_for(about.as_ref().and_then(row), attention);
    let is_same = match &deed {
        GraveDeed::Act { .. } => about.as_ref().is_some_and(holds),
        GraveDeed::Answer { attention, .. } => about.as_ref().is_none_or(|about| holds(about) && waits(attention)),
    };
    if !is_same {
        model.say(RowTone::Needs, format!("{what}: it has changed meanwhile; nothing was sent"));
        return Vec::new();
    }
    match deed {
        GraveDeed::Act { row, action } => ask_for(model, &row, action),
        GraveDeed::Answer { attention, row, option } => super::answer(model, &attention, &row, &option, None),
    }
}

fn row_waits_for(row: Option<&BoardRow>, attention: &str) -> bool {
    row.and_then(|row| row.attention.as_ref()).is_some_and(|note| note.id == attention)
}

fn prompt(model: &mut Model, purpose: Purpose) -> Vec<DashboardCommand> {
    model.overlay = Some(Overlay::Prompt(LinePrompt::new(purpose, "")));
    Vec::new()
}

/// Asks the engine to do something with a row.
pub(crate) fn ask_for(model: &mut Model, id: &str, action: BoardAction) -> Vec<DashboardCommand> {
    let (verb, path) = way(model.kind(id), id, action);
    let body = match (action, model.kind(id)) {
        (BoardAction::Cancel | BoardAction::Delete, BoardRowKind::Task) => Value::Null,
        (BoardAction::Cancel | BoardAction::Delete, BoardRowKind::Run)
        | (
            BoardAction::Merge
            | BoardAction::CreatePr
            | BoardAction::Spawn
            | BoardAction::Respawn
            | BoardAction::Attach
            | BoardAction::Approve
            | BoardAction::RequestChanges
            | BoardAction::Answer
            | BoardAction::Nudge
            | BoardAction::Retry,
            BoardRowKind::Task | BoardRowKind::Run,
        ) => json!({}),
    };
    let what = format!("{action} {}", name_of(model, id));
    let about = about(model, id, action);
    send(model, PersonRequest { number: 0, what, verb, path, body, about })
}

/// Asks the engine to do something with words.
pub(super) fn ask_with(model: &mut Model, id: &str, action: BoardAction, body: Value) -> Vec<DashboardCommand> {
    let (verb, path) = way(model.kind(id), id, action);
    let what = format!("{action} {}", name_of(model, id));
    let about = about(model, id, action);
    send(model, PersonRequest { number: 0, what, verb, path, body, about })
}

/// The route of an action.
fn way(kind: BoardRowKind, id: &str, action: BoardAction) -> (RequestVerb, String) {
    let id = escape(id);
    let task = |word: &str| (RequestVerb::Post, format!("/v1/lifecycle/tasks/{id}/{word}"));
    let run = |word: &str| (RequestVerb::Post, format!("/v1/recipe/runs/{id}/{word}"));
    match (action, kind) {
        (BoardAction::Merge, BoardRowKind::Task) => task("merge"),
        (BoardAction::Merge, BoardRowKind::Run) => run("merge"),
        (BoardAction::Cancel, BoardRowKind::Task) => task("cancel"),
        (BoardAction::Cancel, BoardRowKind::Run) => (RequestVerb::Delete, format!("/v1/recipe/runs/{id}")),
        (BoardAction::Delete, BoardRowKind::Task) => (RequestVerb::Delete, format!("/v1/lifecycle/tasks/{id}")),
        (BoardAction::Delete, BoardRowKind::Run) => run("delete"),
        (BoardAction::Retry, _) => run("retry"),
        (BoardAction::CreatePr, _) => task("create-pr"),
        (BoardAction::Spawn, _) => task("spawn"),
        (BoardAction::Respawn, _) => task("respawn"),
        (BoardAction::Approve, _) => task("approve"),
        (BoardAction::RequestChanges, _) => task("request-changes"),
        (BoardAction::Nudge, _) => task("nudge"),
        // These two are not asked of the engine in this way.
        (BoardAction::Attach | BoardAction::Answer, _) => task("attach"),
    }
}

/// Sends a request, or keeps it while the engine is away.
pub(super) fn send(model: &mut Model, request: PersonRequest) -> Vec<DashboardCommand> {
    if model.requests.is_full() {
        model.say(RowTone::Bad, format!("{}: {MOST_REQUESTS} requests wait for an answer already", request.what));
        return Vec::new();
    }
    let is_away = model.is_away();
    let request = model.requests.add(request, is_away);
    let waits = if is_away { "kept until the engine is back" } else { "asked" };
    model.say(RowTone::Waits, format!("{}: {waits}", request.what));
    if is_away { Vec::new() } else { vec![DashboardCommand::Send(request)] }
}

/// A request was carried out: what waited for it is done with.
pub(crate) fn done(model: &mut Model, request: &PersonRequest) {
    let Some(about) = &request.about else { return };
    match about.action() {
        BoardAction::RequestChanges => {
            if let Some(reading) = model.readings.get_mut(&about.id) {
                reading.comments.clear();
            }
        }
        BoardAction::Cancel | BoardAction::Delete => model.ended = Some(about.id.clone()),
        BoardAction::Merge
        | BoardAction::CreatePr
        | BoardAction::Spawn
        | BoardAction::Respawn
        | BoardAction::Attach
        | BoardAction::Approve
        | BoardAction::Answer
        | BoardAction::Nudge
        | BoardAction::Retry => {}
    }
}
