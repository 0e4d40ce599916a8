//! What keys, commands and forms do.

mod forms;
mod opening;
mod orders;

use serde_json::json;
use sluice_api::attention::Attention;
use sluice_api::board::{BoardAction, SavedView};
use sluice_api::client::escape;

use super::asking::{Confirm, GraveDeed, LinePrompt, Purpose};
use super::facts::ScreenAsk;
use super::requests::{PersonRequest, RequestVerb};
use super::{AwaitedAnswer, DashboardCommand, DashboardScreen, EngineLink, ListSubject, Model, Overlay};
use crate::keys::{self, Deed, DiffDeed, Motion, OpenedPlace};
use crate::look::RowTone;
pub(super) use forms::{filled, said};
pub(super) use opening::{arrived, failed, settle_inbox};
pub(crate) use orders::COMMANDS;
pub(super) use orders::{completed, done, meant, order};

/// An option that says nothing without words.
const NEEDS_WORDS: &[&str] = &["request-changes"];

/// Options that end the work, throw it away or let it into the default branch. What is not known here is not asked for twice.
const GRAVE: &[&str] = &["abort", "cancel", "delete", "discard", "merge", "reject"];

/// An option that gives the terminal to the session.
const ATTACH: &str = "attach";

/// Does what a key means; `number` is the digit of a key that has one, from 0.
pub(super) fn perform(model: &mut Model, deed: Deed, number: usize) -> Vec<DashboardCommand> {
    let row = model.subject().map(|row| row.id.clone());
    match deed {
        Deed::Move(motion) => {
            super::motion::moved(model, motion);
            return Vec::new();
        }
        Deed::Back => return back(model),
        Deed::Help => model.overlay = Some(Overlay::Help { scroll: 0 }),
        Deed::Command => model.overlay = Some(Overlay::Prompt(LinePrompt::new(Purpose::Command, ""))),
        Deed::Filter => {
            let words = model.board.as_ref().map(|board| board.filter.filter.clone()).unwrap_or_default();
            model.overlay = Some(Overlay::Prompt(LinePrompt::new(Purpose::Filter, &words)));
        }
        Deed::SaveView => model.overlay = Some(Overlay::Prompt(LinePrompt::new(Purpose::SaveView, ""))),
        Deed::NextProject => model.board.iter_mut().for_each(super::board::BoardState::next_project),
        Deed::Fold => model.board.iter_mut().for_each(super::board::BoardState::fold),
        Deed::NextNeed => next_need(model),
        Deed::View => model.awaits = Some(AwaitedAnswer::View(number)),
        Deed::Start => forms::start(model),
        Deed::Create => forms::create(model),
        Deed::NextSum => opening::next_sum(model),
        Deed::Open(OpenedPlace::Workspaces) => opening::list(model, ListSubject::Workspaces),
        Deed::Choose => return choose(model, number),
        Deed::Reply => model.overlay = reply(model).map(Overlay::Prompt).or(model.overlay.take()),
        Deed::Undo => {
            let ended = |id: &String| model.board.as_ref().and_then(|it| it.row(id)).is_none_or(is_done);
            model.awaits = row.filter(ended).or(model.ended.clone()).map(AwaitedAnswer::Kept);
        }
        Deed::Enter => return row.map(|row| enter(model, &row)).unwrap_or_default(),
        Deed::Do(action) => return row.map(|row| order(model, &row, action)).unwrap_or_default(),
        Deed::Copy => return row.map(|row| copy(model, row)).unwrap_or_default(),
        Deed::Peek => row.into_iter().for_each(|id| peek(model, id)),
        Deed::Details => row.into_iter().for_each(|row| opening::details(model, row)),
        Deed::Open(place) => row.into_iter().for_each(|row| opening::open(model, row, place)),
        Deed::NextTab => opening::turn(model, true),
        Deed::PreviousTab => opening::turn(model, false),
        Deed::Edit => model.awaits = row.map(AwaitedAnswer::Worktree),
        Deed::Read(deed) => row.iter().for_each(|row| read_on(model, deed, row)),
    }
    Vec::new()
}

/// Whatever starts or shows the agent of a row.
fn enter(model: &mut Model, row: &str) -> Vec<DashboardCommand> {
    let actions = model.subject().map(|row| row.actions.clone()).unwrap_or_default();
    keys::entered(&actions).map(|action| order(model, row, action)).unwrap_or_default()
}

/// A look at a row, and at what it waits for now.
fn peek(model: &mut Model, id: String) {
    let row = model.board.as_ref().and_then(|board| board.row(&id));
    let attention = row.and_then(|row| row.attention.as_ref()).map(|note| note.id.clone());
    model.overlay = Some(Overlay::Peek { id, attention });
}

fn copy(model: &mut Model, row: String) -> Vec<DashboardCommand> {
    model.say(RowTone::Good, format!("copied {row}"));
    vec![DashboardCommand::Copy(row)]
}

fn is_done(row: &sluice_api::board::BoardRow) -> bool {
    row.group == sluice_api::board::BoardGroup::Done
}

/// What a person opens is asked for anew. While the engine is away nothing is opened: it would come late, over something else.
pub(super) fn begin_to_wait(model: &mut Model) {
    model.awaits.take_if(|_| model.link != EngineLink::Live);
    let awaited = model.awaits.as_ref().map(AwaitedAnswer::ask);
    model.facts.age_if(|ask| Some(ask) == awaited.as_ref());
}

/// What is done in a diff.
fn read_on(model: &mut Model, deed: DiffDeed, row: &str) {
    let ask = ScreenAsk::Changes(model.kind(row), row.to_owned());
    let Some(changes) = model.facts.changes(&ask) else { return };
    let reading = model.readings.entry(row.to_owned()).or_default();
    match deed {
        DiffDeed::NextFile => reading.next_file(changes, true),
        DiffDeed::PreviousFile => reading.next_file(changes, false),
        DiffDeed::Viewed => reading.toggle_viewed(changes),
        DiffDeed::NextPart => reading.next_part(changes),
        DiffDeed::Uncomment => {
            if let Some(spot) = reading.spot(changes) {
                reading.comments.remove(&spot);
            }
        }
        DiffDeed::Comment => {
            if let Some(spot) = reading.spot(changes) {
                let before = reading.comments.get(&spot).cloned().unwrap_or_default();
                model.overlay = Some(Overlay::Prompt(LinePrompt::new(Purpose::Comment(row.to_owned(), spot), &before)));
            }
        }
    }
}

fn back(model: &mut Model) -> Vec<DashboardCommand> {
    if model.overlay.take().is_some() || model.screens.pop().is_some() {
        return Vec::new();
    }
    let filtered = model.board.as_mut().filter(|board| !board.filter.shows_everything());
    match filtered {
        Some(board) => {
            board.set_filter(SavedView::default());
            Vec::new()
        }
        None => vec![DashboardCommand::Quit],
    }
}

pub(super) fn filter(model: &mut Model, words: &str) {
    if let Some(board) = &mut model.board {
        board.set_words(words);
    }
}

fn next_need(model: &mut Model) {
    if let Some(DashboardScreen::Inbox { .. }) = model.screens.last() {
        super::motion::moved(model, Motion::Down);
    } else if let Some(board) = &mut model.board {
        board.next_need();
    }
}

impl Model {
    /// What waits and is looked at in the inbox. When it has passed there is none, until the person moves on: a key that is meant for
    /// one never answers another.
    pub(crate) fn letter(&self) -> Option<&Attention> {
        let DashboardScreen::Inbox { at, .. } = self.screen() else { return None };
        self.facts.inbox(&ScreenAsk::Inbox)?.iter().find(|it| Some(&it.id) == at.as_ref())
    }
}

/// What can be chosen now: the id of the attention, the row that it is about, and the options.
pub(super) fn options(model: &Model) -> Option<(String, String, Vec<String>)> {
    if let Some(letter) = model.letter().filter(|_| model.overlay.is_none()) {
        let about = letter.task.as_ref().or(letter.run.as_ref()).cloned().unwrap_or_default();
        return Some((letter.id.clone(), about, letter.options.clone()));
    }
    let row = model.subject()?;
    let note = row.attention.as_ref()?;
    let is_seen = match &model.overlay {
        Some(Overlay::Peek { attention, .. }) => attention.as_ref() == Some(&note.id),
        Some(Overlay::Help { .. } | Overlay::Prompt(_) | Overlay::Form(_) | Overlay::Confirm(_)) | None => true,
    };
    is_seen.then(|| (note.id.clone(), row.id.clone(), note.choices.clone()))
}

fn choose(model: &mut Model, number: usize) -> Vec<DashboardCommand> {
    let Some((attention, row, options)) = options(model) else { return Vec::new() };
    let Some(option) = options.get(number).cloned() else { return Vec::new() };
    if option == ATTACH {
        model.overlay = None;
        return vec![DashboardCommand::Attach(row)];
    }
    if NEEDS_WORDS.contains(&option.as_str()) {
        let purpose = Purpose::Answer { attention, row, option: Some(option) };
        model.overlay = Some(Overlay::Prompt(LinePrompt::new(purpose, "")));
        return Vec::new();
    }
    if GRAVE.contains(&option.as_str()) {
        let what = format!("{option} {}", name_of(model, &row));
        let about = orders::about(model, &row, BoardAction::Answer);
        let deed = GraveDeed::Answer { attention, row, option };
        model.overlay = Some(Overlay::Confirm(Confirm { what, outcome: "It cannot be taken back.", about, deed }));
        return Vec::new();
    }
    model.overlay = None;
    answer(model, &attention, &row, &option, None)
}

/// The line in which a person replies: to what waits for words, else to the agent.
pub(super) fn reply(model: &Model) -> Option<LinePrompt> {
    let waits = options(model).filter(|(.., options)| options.is_empty());
    let row = model.subject();
    let takes_words = row.is_some_and(|row| row.actions.contains(&BoardAction::Answer));
    let purpose = match (waits, row) {
        (Some((attention, row, _)), _) if takes_words => Purpose::Answer { attention, row, option: None },
        (_, Some(row)) if row.actions.contains(&BoardAction::Nudge) => Purpose::Nudge(row.id.clone()),
        _ => return None,
    };
    Some(LinePrompt::new(purpose, ""))
}

/// Answers what waits for a person.
pub(super) fn answer(
    model: &mut Model,
    attention: &str,
    row: &str,
    option: &str,
    message: Option<&str>,
) -> Vec<DashboardCommand> {
    let path: Vec<String> = attention.split('/').map(escape).collect();
    let name = name_of(model, row);
    let request = PersonRequest {
        number: 0,
        what: format!("{option} {name}"),
        verb: RequestVerb::Post,
        path: format!("/v1/attention/{}", path.join("/")),
        body: json!({ "option": option, "message": message }),
        about: orders::about(model, row, BoardAction::Answer),
    };
    orders::send(model, request)
}

/// What a person calls a row.
pub(crate) fn name_of(model: &Model, id: &str) -> String {
    model.board.as_ref().and_then(|board| board.row(id)).map_or_else(|| id.to_owned(), |row| row.name.clone())
}

/// The field of a recipe's input.
fn field(input: &sluice_api::grimoire::GrimoireInput) -> super::asking::FormField {
    let default = match &input.default {
        serde_json::Value::Null => String::new(),
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let field = super::asking::FormField::new(&input.name, input.required && default.is_empty(), Vec::new(), &default);
    super::asking::FormField { is_text: input.kind == "string", ..field }
}
