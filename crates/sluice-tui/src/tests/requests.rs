//! What the person asked for while the engine was away, and rows that change under the choice.

use serde_json::{Value, json};
use sluice_api::board::{BoardGroup, BoardRows};
use sluice_api::client::GONE;
use sluice_api::problem::{Problem, ProblemStatus};

use super::{PLAIN, dashboard, press, samples, shown};
use crate::model::{DashboardCommand, DashboardMessage, Model, update};

const SIZE: (u16, u16) = (120, 40);

fn gone() -> Problem {
    Problem::new(ProblemStatus::Unavailable, GONE, "no engine answers")
}

fn paths(commands: &[DashboardCommand]) -> Vec<String> {
    let path = |command: &'_ DashboardCommand| {
        let DashboardCommand::Send(request) = command else { return None };
        Some(request.path.clone())
    };
    commands.iter().filter_map(path).collect()
}

/// The engine is back, with this board.
fn back(model: &mut Model, board: sluice_api::board::Board) -> Vec<DashboardCommand> {
    update(model, DashboardMessage::Board(Box::new(board)))
}

#[test]
fn a_key_that_is_pressed_while_the_engine_is_away_is_not_lost() {
    let mut model = dashboard(PLAIN, SIZE);
    update(&mut model, DashboardMessage::Away(gone()));
    assert_eq!(press(&mut model, "jmy"), []);
    assert!(shown(&model).contains("1 asked for and kept until it is back"), "{}", shown(&model));
    let commands = back(&mut model, samples::board());
    assert_eq!(paths(&commands), ["/v1/lifecycle/tasks/k2/merge"]);
}

#[test]
fn a_request_whose_answer_was_lost_is_sent_again_only_if_nothing_came_of_it() {
    let mut model = dashboard(PLAIN, SIZE);
    let sent = press(&mut model, "jmy");
    let number = match &sent[..] {
        [DashboardCommand::Send(request)] => request.number,
        other => panic!("{other:?}"),
    };
    update(&mut model, DashboardMessage::Answered(number, Box::new(Err(gone()))));
    update(&mut model, DashboardMessage::Away(gone()));
    let commands = back(&mut model.clone(), samples::board());
    assert_eq!(paths(&commands), ["/v1/lifecycle/tasks/k2/merge"]);
    // It was carried out before the engine went away.
    let mut board = samples::board();
    let row = board.rows.iter_mut().find(|row| row.id == "k2").unwrap();
    (row.status, row.since, row.group) = ("done".to_owned(), "2026-11-18T11:59:59Z".to_owned(), BoardGroup::Done);
    let commands = back(&mut model, board);
    assert_eq!(paths(&commands), Vec::<String>::new());
    assert!(shown(&model).contains("look whether it was done"), "{}", shown(&model));
}

/// A row that goes away under the person's finger is not replaced by another: the next key does nothing.
#[test]
fn a_key_never_meets_another_row_than_the_one_that_was_looked_at() {
    let mut model = dashboard(PLAIN, SIZE);
    press(&mut model, "j");
    assert_eq!(model.subject().unwrap().id, "k2");
    let gone: BoardRows = serde_json::from_value(news(Vec::new(), &["k2"])).unwrap();
    update(&mut model, DashboardMessage::Rows(Box::new(gone)));
    assert!(model.subject().is_none());
    assert_eq!(press(&mut model, "my"), []);
    // What has come to its place is next.
    press(&mut model, "j");
    assert_eq!(model.subject().unwrap().id, "k1");
}

fn news(rows: Vec<Value>, gone: &[&str]) -> Value {
    let counts = json!({ "needs_you": 0, "working": 0, "queued": 0, "in_review": 0, "ready_to_merge": 0, "done_today": 0,
                         "merged_today": 0, "cancelled_today": 0 });
    json!({ "cursor": 101, "counts": counts, "rows": rows, "gone": gone })
}

#[test]
fn rows_that_change_stay_chosen_and_are_counted() {
    let mut model = dashboard(PLAIN, SIZE);
    press(&mut model, "j");
    let row = samples::row("k2", "latte", "working", json!({ "alive": true }));
    let rows: BoardRows = serde_json::from_value(news(vec![row], &[])).unwrap();
    update(&mut model, DashboardMessage::Rows(Box::new(rows)));
    assert_eq!(model.subject().unwrap().id, "k2");
    let picture = shown(&model);
    assert!(picture.contains("▲3 need you") && picture.contains("NEEDS YOU (3)"), "{picture}");
}

#[test]
fn a_refusal_is_told_with_the_way_out() {
    let mut model = dashboard(PLAIN, SIZE);
    let sent = press(&mut model, "jmy");
    let problem = Problem::new(ProblemStatus::Refused, "stale_verdict", "the verdict is older than the work")
        .hint("review it again");
    if let [DashboardCommand::Send(request)] = &sent[..] {
        update(&mut model, DashboardMessage::Answered(request.number, Box::new(Err(problem))));
    }
    assert!(
        shown(&model).contains("✗ merge latte: the verdict is older than the work (review it again)"),
        "{}",
        shown(&model)
    );
}
