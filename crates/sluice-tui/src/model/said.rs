//! What the engine says, and what follows from it.

use jiff::Timestamp;
use serde_json::Value;
use sluice_api::board::{BOARD_IDS, Board, BoardRows};
use sluice_api::client::{GONE, SILENT};
use sluice_api::event::EventShown;
use sluice_api::problem::{Problem, ProblemStatus};
use sluice_api::task::TaskAnswer;

use super::board::BoardState;
use super::facts::{ScreenAsk, ScreenFact};
use super::{DashboardCommand, EngineLink, MOST_EVENTS, Model, deeds};
use crate::look::RowTone;

/// The most rows that are on no board whose comments are kept.
const MOST_LEFT_READINGS: usize = 32;

/// Every so many seconds the rows of living agents are looked at.
const LOOK_EVERY: u32 = 5;

/// A second has passed. What a terminal shows makes no events: the one that is looked at is asked for again, and at times the last
/// lines on the board. Nothing else is.
pub(super) fn tick(model: &mut Model, now: Timestamp) -> Vec<DashboardCommand> {
    model.now = now;
    model.facts.age_if(|ask| matches!(ask, ScreenAsk::Screen(..)));
    model.looked += 1;
    if model.looked < LOOK_EVERY || !model.screens.is_empty() || model.link != EngineLink::Live {
        return Vec::new();
    }
    model.looked = 0;
    let rows = usize::from(model.size.1).min(BOARD_IDS);
    let alive = model.board.as_ref().map(|board| board.alive(rows)).unwrap_or_default();
    if alive.is_empty() { Vec::new() } else { vec![DashboardCommand::Look(alive)] }
}

/// The whole board, while the engine is there.
pub(super) fn renewed(model: &mut Model, board: Board) -> Vec<DashboardCommand> {
    model.unread = None;
    match &mut model.board {
        Some(state) => state.replace(board),
        None => model.board = Some(BoardState::new(board, None)),
    }
    forget_readings(model);
    Vec::new()
}

/// What a person has read of rows that are on no board any more is forgotten; of comments that wait the last are kept.
fn forget_readings(model: &mut Model) {
    let Some(board) = &model.board else { return };
    let mut kept = 0;
    model.readings.retain(|id, reading| {
        let is_there = board.row(id).is_some();
        kept += usize::from(!is_there && !reading.comments.is_empty());
        is_there || (!reading.comments.is_empty() && kept <= MOST_LEFT_READINGS)
    });
}

/// The engine is there, and does not tell how the board is. It is asked again; until then the person knows.
pub(super) fn unread(model: &mut Model, problem: &Problem) -> Vec<DashboardCommand> {
    let hint = problem.hint.iter().map(|hint| format!(" ({hint})")).collect::<String>();
    model.unread = Some(format!("{}{hint}", problem.message));
    Vec::new()
}

/// The whole board: the engine is there, perhaps again. Whatever was known before may be old.
pub(super) fn board(model: &mut Model, board: Board) -> Vec<DashboardCommand> {
    let was_away = model.is_away();
    model.board = Some(BoardState::new(board, model.board.as_ref()));
    model.link = EngineLink::Live;
    model.unread = None;
    forget_readings(model);
    model.facts.age_if(|_| true);
    if was_away {
        model.say(RowTone::Good, "the engine is back");
    }
    let Some(board) = &model.board else { return Vec::new() };
    let recovered = model.requests.recover(|id| board.row(id));
    if let Some(dropped) = recovered.dropped.last() {
        let text = format!("{}: the engine went away; look whether it was done before you ask again", dropped.what);
        model.say(RowTone::Needs, text);
    }
    recovered.again.into_iter().map(DashboardCommand::Send).collect()
}

pub(super) fn rows(model: &mut Model, rows: BoardRows) -> Vec<DashboardCommand> {
    model.unread = None;
    let ids: Vec<String> = rows.rows.iter().map(|row| row.id.clone()).chain(rows.gone.iter().cloned()).collect();
    if let Some(board) = &mut model.board {
        board.renew(rows);
    }
    model.facts.age(&ids.iter().map(String::as_str).collect::<Vec<_>>());
    Vec::new()
}

pub(super) fn happened(model: &mut Model, events: Vec<EventShown>) -> Vec<DashboardCommand> {
    let ids: Vec<&str> = events.iter().map(|event| event.correlation_id.as_str()).collect();
    model.facts.age(&ids);
    model.events.extend(events);
    let over = model.events.len().saturating_sub(MOST_EVENTS);
    model.events.drain(..over);
    Vec::new()
}

pub(super) fn away(model: &mut Model, problem: Problem) -> Vec<DashboardCommand> {
    model.link = EngineLink::Away { is_silent: problem.code == SILENT, why: problem.message };
    // What was to be opened would come late, over something else.
    model.awaits = None;
    Vec::new()
}

pub(super) fn got(model: &mut Model, ask: ScreenAsk, answer: Result<ScreenFact, Problem>) -> Vec<DashboardCommand> {
    let problem = answer.as_ref().err().cloned();
    model.facts.take(ask.clone(), answer);
    match problem {
        None => {
            deeds::settle_inbox(model);
            deeds::arrived(model, &ask)
        }
        // What a screen shows is asked for again with everything else when the engine is back. What was to be opened is not.
        Some(problem) => {
            deeds::failed(model, &ask, &problem);
            Vec::new()
        }
    }
}

/// Whether the engine was not there, or went away.
fn is_away(problem: &Problem) -> bool {
    problem.status == ProblemStatus::Unavailable && [GONE, SILENT].contains(&problem.code.as_str())
}

pub(super) fn answered(model: &mut Model, number: u64, answer: Result<Value, Problem>) -> Vec<DashboardCommand> {
    match answer {
        Err(problem) if is_away(&problem) => {
            if let Some(what) = model.requests.lost(number).map(|request| request.what.clone()) {
                model.say(RowTone::Needs, format!("{what}: kept until the engine is back"));
            }
            // It may be back already: then no other board comes that shows what became of it.
            if model.link == EngineLink::Live {
                return vec![DashboardCommand::ReadAgain];
            }
        }
        Err(problem) => {
            let what = model.requests.answered(number).map(|request| request.what).unwrap_or_default();
            let hint = problem.hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
            let tone = if problem.status == ProblemStatus::Accepted { RowTone::Waits } else { RowTone::Bad };
            model.say(tone, format!("{what}: {}{hint}", problem.message));
        }
        Ok(value) => {
            let Some(request) = model.requests.answered(number) else { return Vec::new() };
            deeds::done(model, &request);
            model.say(RowTone::Good, told(&request.what, &value));
        }
    }
    Vec::new()
}

/// What came of a request, in one line.
fn told(what: &str, value: &Value) -> String {
    let Ok(answer) = serde_json::from_value::<TaskAnswer>(value.clone()) else { return format!("{what}: done") };
    let running = if answer.still_running { ", still running" } else { "" };
    let notes: String = answer.notes.iter().map(|note| format!("; {note}")).collect();
    format!("{what}: {}{running}{notes}", answer.task.status)
}
