//! Keys: what the row does not allow is in no footer and does nothing, and what keys do.

use serde_json::json;
use sluice_api::board::{BoardAction, SavedView};

use super::{PLAIN, dashboard, footer, over, press, samples, shown};
use crate::keys::{self, Deed, TABLE};
use crate::model::facts::ScreenAsk;
use crate::model::{DashboardCommand, DashboardScreen, Model};

const SIZE: (u16, u16) = (200, 60);

/// A board with one task that allows this.
fn allowing(actions: &[&str]) -> Model {
    let row = samples::row("k1", "latte", "working", json!({ "status": "fermenting", "actions": actions }));
    over(samples::board_of(vec![row]), PLAIN, SIZE)
}

/// What is sent, as `VERB path`.
fn sent(commands: &[DashboardCommand]) -> Vec<String> {
    let text = |command: &DashboardCommand| {
        let DashboardCommand::Send(request) = command else { return None };
        Some(format!("{:?} {} {}", request.verb, request.path, request.body))
    };
    commands.iter().filter_map(text).collect()
}

/// In a workflow of one's own that has no way to `done` or `cancelled`, merge and cancel are not there.
#[test]
fn keys_that_the_row_does_not_allow_are_absent_and_do_nothing() {
    let mut model = allowing(&[]);
    let before = shown(&model);
    for binding in TABLE.iter().filter(|it| matches!(it.deed, Deed::Do(_) | Deed::Enter)) {
        if binding.scopes.contains(&model.scope()) {
            assert!(!footer(&model).contains(&keys::hint(binding)), "{}", footer(&model));
            let key = if binding.deed == Deed::Enter { "<enter>".to_owned() } else { keys::label(binding.key) };
            assert_eq!(press(&mut model, &key), [], "{key}");
            assert_eq!(shown(&model), before, "{key}");
        }
    }
}

#[test]
fn each_action_brings_its_key_and_no_other() {
    for action in BoardAction::ALL {
        let model = allowing(&[action.word()]);
        let acts = |it: &&keys::KeyBinding| matches!(it.deed, Deed::Do(_));
        let possible: Vec<Deed> = crate::model::possible(&model).into_iter().filter(acts).map(|it| it.deed).collect();
        match action {
            // What waits is answered where it is looked at.
            BoardAction::Answer | BoardAction::Spawn => assert_eq!(possible, []),
            action => assert_eq!(possible, [Deed::Do(*action)]),
        }
    }
}

#[test]
fn enter_attaches_or_starts_what_can_be_started() {
    assert_eq!(press(&mut allowing(&["attach", "respawn"]), "<enter>"), [DashboardCommand::Attach("k1".to_owned())]);
    let sent = |actions: &[&str]| sent(&press(&mut allowing(actions), "<enter>")).join("");
    assert_eq!(sent(&["respawn", "spawn"]), "Post /v1/lifecycle/tasks/k1/respawn {}");
    assert_eq!(sent(&["spawn"]), "Post /v1/lifecycle/tasks/k1/spawn {}");
}

#[test]
fn what_cannot_be_taken_back_is_asked_for_once_more() {
    let mut model = allowing(&["cancel", "delete"]);
    assert_eq!(press(&mut model, "xn"), []);
    assert_eq!(sent(&press(&mut model, "xy")), ["Post /v1/lifecycle/tasks/k1/cancel null"]);
    assert_eq!(sent(&press(&mut model, "Dy")), ["Delete /v1/lifecycle/tasks/k1 null"]);
}

#[test]
fn what_waits_is_answered_by_its_number() {
    let mut model = dashboard(PLAIN, SIZE);
    // The run that waits is the oldest, and so the first.
    assert_eq!(sent(&press(&mut model, " 2")), [r#"Post /v1/attention/r1/2 {"option":"skip","message":null}"#]);
    // The session of a dialog is attached to, not answered.
    press(&mut model, "j");
    press(&mut model, "j");
    assert_eq!(press(&mut model, " 1"), [DashboardCommand::Attach("k1".to_owned())]);
    assert!(model.overlay.is_none());
}

#[test]
fn words_go_with_the_option_that_needs_them() {
    let mut model = dashboard(PLAIN, SIZE);
    let done = press(&mut model, "j 2milk last<enter>");
    assert_eq!(sent(&done), [r#"Post /v1/attention/k2/3 {"option":"request-changes","message":"milk last"}"#]);
}

#[test]
fn comments_at_lines_become_one_request_for_changes() {
    let mut model = dashboard(PLAIN, SIZE);
    let done = press(&mut model, "jdjjjcno milk<enter>jcsteam later<enter><tab>cwhole file<enter>Xplease<enter>");
    assert_eq!(
        sent(&done),
        [concat!(
            r#"Post /v1/lifecycle/tasks/k2/request-changes {"message":"please","comments":["#,
            r#"{"file":"README.md","line":11,"text":"steam later"},"#,
            r#"{"file":"README.md","line":11,"removed":true,"text":"no milk"},"#,
            r#"{"file":"src/pour.rs","text":"whole file"}]}"#
        )]
    );
    assert!(!model.readings["k2"].comments.is_empty(), "they stay until the engine has them");
}

#[test]
fn a_file_that_is_viewed_is_folded_until_it_changes() {
    let mut model = dashboard(PLAIN, SIZE);
    press(&mut model, "jdv");
    let picture = shown(&model);
    assert!(picture.contains("[x] M README.md") && picture.contains("M README.md  +2 −1  viewed"), "{picture}");
    let ask = ScreenAsk::Changes(sluice_api::board::BoardRowKind::Task, "k2".to_owned());
    let mut changes = model.facts.changes(&ask).unwrap().clone();
    changes.committed.files[0].hunks[0].lines[2].text = "    froth();".to_owned();
    let news = crate::model::facts::ScreenFact::Changes(Box::new(changes));
    crate::model::update(&mut model, crate::model::DashboardMessage::Got(ask, Box::new(Ok(news))));
    assert!(shown(&model).contains("[ ] M README.md"));
}

#[test]
fn a_filter_and_saved_views_choose_rows() {
    let mut model = dashboard(PLAIN, SIZE);
    press(&mut model, "/lat<enter>");
    assert!(shown(&model).contains("latte") && !shown(&model).contains("fix-login"));
    press(&mut model, "q");
    assert!(shown(&model).contains("fix-login"));
    press(&mut model, "1");
    assert!(shown(&model).contains("nightly") && !shown(&model).contains("fix-login"), "{}", shown(&model));
    press(&mut model, "q9");
    assert!(shown(&model).contains("there is no view 9"));
    press(&mut model, "f");
    let done = press(&mut model, "Sapi again<enter>");
    assert!(sent(&done)[0].starts_with("Put /v1/views"), "{done:?}");
}

#[test]
fn forms_are_filled_in_and_sent() {
    let mut model = dashboard(PLAIN, SIZE);
    let done = press(&mut model, "cmocha<enter>Make mocha<enter><enter>demo<enter>");
    assert_eq!(
        sent(&done),
        [r#"Post /v1/lifecycle/tasks {"project":"api","branch":"mocha","summary":"Make mocha","harness":"demo"}"#]
    );
    let done = press(&mut model, "b<enter>nightly<enter>main<enter><enter>");
    assert_eq!(
        sent(&done),
        [r#"Post /workflows {"grimoire":"nightly","input":{"branch":"main","depth":2},"project":"api"}"#]
    );
}

#[test]
fn kept_work_is_restored_into_a_folder() {
    let mut model = dashboard(PLAIN, SIZE);
    model.ended = Some("k1".to_owned());
    let done = press(&mut model, "u<enter>");
    assert_eq!(sent(&done), [r#"Post /v1/workspaces/restore {"task":"k1","into":"/home/ada/fix-login-restored"}"#]);
}

#[test]
fn screens_are_left_in_the_order_in_which_they_were_opened() {
    let mut model = dashboard(PLAIN, SIZE);
    press(&mut model, "jid");
    assert!(matches!(model.screen(), DashboardScreen::Diff { .. }));
    press(&mut model, "q");
    assert!(matches!(model.screen(), DashboardScreen::Detail { .. }));
    press(&mut model, "q");
    assert_eq!(press(&mut model, "q"), [DashboardCommand::Quit]);
}

/// The page in the manual has every key as the table has it.
#[test]
fn the_manual_has_the_keys_of_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/dashboard.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (start, end) = ("<!-- keys -->\n\n", "<!-- end of keys -->");
    let before = page.split(start).next().unwrap();
    let after = page.split(end).nth(1).unwrap();
    let made = format!("{before}{start}{}{end}{after}", keys::manual());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &made).unwrap();
    }
    assert_eq!(page, made, "UPDATE_DOCS=1 writes docs/dashboard.md again");
}

/// A run is found by its recipe and its project, also where its task is hidden or it would be folded.
#[test]
fn a_filter_shows_the_runs_that_it_names() {
    let mut model = dashboard(PLAIN, SIZE);
    assert!(!shown(&model).contains("checks"), "it is folded: {}", shown(&model));
    press(&mut model, "/checks<enter>");
    let picture = shown(&model);
    assert!(picture.contains("checks") && picture.contains("WORKING (1)"), "{picture}");
    press(&mut model, "q/coffee<enter>");
    let picture = shown(&model);
    assert!(picture.contains("  checks") && picture.contains("latte"), "{picture}");
    // By its group, where its task is in another.
    press(&mut model, "q");
    let mut board = samples::board();
    let task = board.rows.iter_mut().find(|row| row.id == "k6").unwrap();
    task.group = sluice_api::board::BoardGroup::NeedsYou;
    let mut model = over(board, PLAIN, SIZE);
    let working = SavedView { groups: vec![sluice_api::board::BoardGroup::Working], ..SavedView::default() };
    model.board.as_mut().unwrap().set_filter(working);
    assert!(shown(&model).contains("checks"), "{}", shown(&model));
}

/// A view that asks for what has ended shows it, as the page does.
#[test]
fn a_view_of_what_has_ended_is_not_folded() {
    let mut model = dashboard(PLAIN, SIZE);
    let done = SavedView { groups: vec![sluice_api::board::BoardGroup::Done], ..SavedView::default() };
    model.board.as_mut().unwrap().set_filter(done);
    assert!(shown(&model).contains("espresso"), "{}", shown(&model));
}
