//! Answers that come late, in another order, or not at all.

use serde_json::{Value, json};
use sluice_api::board::{Board, BoardRows, SavedView};
use sluice_api::client::{GONE, SILENT};
use sluice_api::problem::{Problem, ProblemStatus};

use super::{PLAIN, answer, dashboard, over, press, samples, shown};
use crate::model::facts::{ScreenAsk, ScreenFact};
use crate::model::{DashboardCommand, DashboardMessage, Model, update};

const SIZE: (u16, u16) = (120, 40);

/// Presses keys without answering what they ask for.
fn unanswered(model: &mut Model, keys: &str) -> Vec<DashboardCommand> {
    let pressed = |key: char| {
        let event = crossterm::event::KeyCode::Char(key).into();
        update(model, DashboardMessage::Key(event))
    };
    keys.chars().flat_map(pressed).collect()
}

fn got(model: &mut Model, ask: ScreenAsk) -> Vec<DashboardCommand> {
    let fact = samples::fact(&ask);
    update(model, DashboardMessage::Got(ask, Box::new(Ok(fact))))
}

/// The form of a recipe that comes after the person has opened something else stays away.
#[test]
fn a_late_answer_replaces_nothing_that_was_opened_meanwhile() {
    for (keys, ask) in [
        ("u", ScreenAsk::Workspaces),
        ("1", ScreenAsk::Views),
        ("o", ScreenAsk::Task("k2".to_owned())),
        (":start", ScreenAsk::Recipes("api".to_owned())),
    ] {
        let mut model = dashboard(PLAIN, SIZE);
        model.ended = Some("k1".to_owned());
        press(&mut model, "gj");
        match keys.strip_prefix(':') {
            // The first form names the project; its answer is the choice of a recipe.
            Some(_) => {
                press(&mut model, "b");
                let enter = crossterm::event::KeyCode::Enter.into();
                update(&mut model, DashboardMessage::Key(enter));
            }
            None => drop(unanswered(&mut model, keys)),
        }
        assert!(model.awaits.is_some(), "{keys}");
        unanswered(&mut model, "c");
        let before = shown(&model);
        assert!(before.contains("create a task"), "{before}");
        assert_eq!(got(&mut model, ask), [], "{keys}");
        assert_eq!(shown(&model), before, "{keys}");
    }
}

#[test]
fn what_cannot_be_fetched_is_told_and_not_waited_for() {
    for (keys, ask, told) in [
        ("u", ScreenAsk::Workspaces, "the kept work of fix-login: the disk is gone (look at it)"),
        ("1", ScreenAsk::Views, "the saved views: the disk is gone (look at it)"),
        ("o", ScreenAsk::Task("k2".to_owned()), "the worktree of latte: the disk is gone (look at it)"),
    ] {
        let mut model = dashboard(PLAIN, SIZE);
        model.ended = Some("k1".to_owned());
        press(&mut model, "gj");
        unanswered(&mut model, keys);
        let problem = Problem::new(ProblemStatus::Fault, "fault", "the disk is gone").hint("look at it");
        update(&mut model, DashboardMessage::Got(ask, Box::new(Err(problem))));
        assert!(model.awaits.is_none());
        assert!(shown(&model).contains(told), "{}", shown(&model));
    }
}

/// `:start` a second time asks for the recipes again, although they are known.
#[test]
fn recipes_are_asked_for_again() {
    let mut model = dashboard(PLAIN, SIZE);
    for _ in 0..2 {
        press(&mut model, ":start<enter><enter>");
        assert!(shown(&model).contains("start a recipe in"), "{}", shown(&model));
        press(&mut model, "<esc>");
    }
}

fn views(names: &[&str]) -> ScreenFact {
    let view = |name: &&str| SavedView { name: (*name).to_owned(), filter: (*name).to_owned(), ..SavedView::default() };
    ScreenFact::Views(names.iter().map(view).collect())
}

/// The page has saved a view since the dashboard read them: both are there afterwards.
#[test]
fn a_view_is_added_to_those_that_are_there_now() {
    let mut model = dashboard(PLAIN, SIZE);
    press(&mut model, "1");
    press(&mut model, "Smine");
    let commands = update(&mut model, DashboardMessage::Key(crossterm::event::KeyCode::Enter.into()));
    assert_eq!(commands, [DashboardCommand::Fetch(ScreenAsk::Views)]);
    let of_page = views(&["the api", "of the page"]);
    let commands = update(&mut model, DashboardMessage::Got(ScreenAsk::Views, Box::new(Ok(of_page))));
    let [DashboardCommand::Send(request)] = &commands[..] else { panic!("{commands:?}") };
    let names: Vec<&Value> = request.body["views"].as_array().unwrap().iter().map(|view| &view["name"]).collect();
    assert_eq!(names, ["the api", "of the page", "mine"]);
}

#[test]
fn a_view_is_not_saved_where_the_others_cannot_be_read() {
    let mut model = dashboard(PLAIN, SIZE);
    press(&mut model, "Smine");
    update(&mut model, DashboardMessage::Key(crossterm::event::KeyCode::Enter.into()));
    let problem = Problem::new(ProblemStatus::Fault, "fault", "the file is broken");
    let commands = update(&mut model, DashboardMessage::Got(ScreenAsk::Views, Box::new(Err(problem))));
    assert_eq!(commands, []);
    assert!(shown(&model).contains("the view mine is not saved: the file is broken"), "{}", shown(&model));
}

fn board_at(cursor: u64, group: &str) -> Board {
    Board { cursor, ..samples::board_of(vec![samples::row("k1", "latte", group, json!({}))]) }
}

fn rows_at(cursor: u64, rows: Vec<Value>, gone: &[&str]) -> DashboardMessage {
    let rows: BoardRows = serde_json::from_value(json!({ "cursor": cursor, "rows": rows, "gone": gone })).unwrap();
    DashboardMessage::Rows(Box::new(rows))
}

/// Answers overtake each other; what is shown never goes back.
#[test]
fn an_older_answer_does_not_replace_a_newer_one() {
    let row = |group: &str| samples::row("k1", "latte", group, json!({}));
    let mut model = over(board_at(10, "working"), PLAIN, SIZE);
    update(&mut model, rows_at(12, vec![row("needs_you")], &[]));
    update(&mut model, rows_at(11, vec![row("queued")], &[]));
    assert!(shown(&model).contains("NEEDS YOU (1)") && shown(&model).contains("▲1 need you"), "{}", shown(&model));
    // A whole board that was asked for before.
    update(&mut model, DashboardMessage::Renewed(Box::new(board_at(11, "queued"))));
    assert!(shown(&model).contains("NEEDS YOU (1)") && shown(&model).contains("▲1 need you"), "{}", shown(&model));
    update(&mut model, DashboardMessage::Renewed(Box::new(board_at(12, "in_review"))));
    assert!(shown(&model).contains("IN REVIEW (1)"), "{}", shown(&model));
    // What is gone does not come back.
    update(&mut model, rows_at(14, Vec::new(), &["k1"]));
    update(&mut model, rows_at(13, vec![row("working")], &[]));
    update(&mut model, DashboardMessage::Renewed(Box::new(board_at(13, "working"))));
    assert!(!shown(&model).contains("latte"), "{}", shown(&model));
    // An engine that is back may have another log.
    update(&mut model, DashboardMessage::Board(Box::new(board_at(3, "working"))));
    assert!(shown(&model).contains("WORKING (1)"), "{}", shown(&model));
}

/// The engine went away and is back before the answer of a request is known to be lost: the board is read again, and the request is
/// sent again.
#[test]
fn a_request_that_is_lost_after_the_engine_is_back_does_not_hang() {
    let mut model = dashboard(PLAIN, SIZE);
    let sent = press(&mut model, "gjA");
    let [DashboardCommand::Send(request)] = &sent[..] else { panic!("{sent:?}") };
    let gone = || Problem::new(ProblemStatus::Unavailable, GONE, "no engine answers");
    let commands = update(&mut model, DashboardMessage::Answered(request.number, Box::new(Err(gone()))));
    assert_eq!(commands, [DashboardCommand::ReadAgain]);
    let commands = update(&mut model, DashboardMessage::Board(Box::new(samples::board())));
    let again = answer(&mut model, commands);
    assert_eq!(again, [DashboardCommand::Send(request.clone())]);
    // An engine that goes away whenever it hears it is not told a third time.
    update(&mut model, DashboardMessage::Answered(request.number, Box::new(Err(gone()))));
    let commands = update(&mut model, DashboardMessage::Board(Box::new(samples::board())));
    assert_eq!(answer(&mut model, commands), []);
    assert!(shown(&model).contains("look whether it was done"), "{}", shown(&model));
}

#[test]
fn an_engine_that_is_stopped_is_told_of() {
    let mut model = dashboard(PLAIN, SIZE);
    let silent = Problem::new(ProblemStatus::Unavailable, SILENT, "it is there and does not answer");
    update(&mut model, DashboardMessage::Away(silent));
    let picture = shown(&model);
    assert!(picture.lines().next().unwrap().contains("engine does not answer"), "{picture}");
    assert!(!picture.contains("engine away"), "{picture}");
    update(&mut model, DashboardMessage::Board(Box::new(samples::board())));
    assert!(shown(&model).contains("the engine is back"), "{}", shown(&model));
}

#[test]
fn a_board_that_cannot_be_read_is_told_of() {
    let mut model = dashboard(PLAIN, SIZE);
    let problem = Problem::new(ProblemStatus::Fault, "fault", "the store is damaged");
    update(&mut model, DashboardMessage::Unread(problem));
    assert!(shown(&model).contains("the board may be old: the store is damaged"), "{}", shown(&model));
    update(&mut model, DashboardMessage::Renewed(Box::new(samples::board())));
    assert!(!shown(&model).contains("may be old"), "{}", shown(&model));
}

/// Of rows that are gone nothing is kept but the comments of a few.
#[test]
fn what_was_read_of_rows_that_are_gone_is_forgotten() {
    let mut model = dashboard(PLAIN, SIZE);
    press(&mut model, "gjdv");
    for number in 0..200 {
        let reading = model.readings.entry(format!("old{number}")).or_default();
        if number % 2 == 0 {
            reading.comments.insert(("a.rs".to_owned(), None), "why?".to_owned());
        }
    }
    update(&mut model, DashboardMessage::Renewed(Box::new(samples::board())));
    assert!(model.readings.contains_key("k2") && model.readings.len() == 33, "{}", model.readings.len());
}
