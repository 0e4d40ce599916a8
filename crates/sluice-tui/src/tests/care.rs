//! What cannot be taken back is asked for once more, and a key meets only what the person sees.

use serde_json::{Value, json};
use sluice_api::board::BoardRows;

use super::{PLAIN, dashboard, footer, over, press, samples, shown};
use crate::model::facts::{ScreenAsk, ScreenFact};
use crate::model::{DashboardCommand, DashboardMessage, Model, update};

const SIZE: (u16, u16) = (120, 40);

/// What is sent, as paths with bodies.
fn sent(commands: &[DashboardCommand]) -> Vec<String> {
    let text = |command: &DashboardCommand| {
        let DashboardCommand::Send(request) = command else { return None };
        Some(format!("{} {}", request.path, request.body))
    };
    commands.iter().filter_map(text).collect()
}

fn told(model: &mut Model, rows: Vec<Value>, gone: &[&str]) {
    let rows: BoardRows = serde_json::from_value(json!({ "cursor": 101, "rows": rows, "gone": gone })).unwrap();
    update(model, DashboardMessage::Rows(Box::new(rows)));
}

fn waiting(id: &str, attention: &str, choices: &[&str]) -> Value {
    let note = json!({ "id": attention, "reason": "question", "text": "Which one?", "since": "2026-11-18T11:56:00Z",
                       "choices": choices, "said_by": "engine" });
    samples::row(id, "latte", "needs_you", json!({ "attention": note, "actions": ["answer"] }))
}

#[test]
fn only_y_confirms() {
    for (key, action) in [("m", "merge"), ("x", "cancel"), ("D", "delete")] {
        let row = samples::row("k1", "latte", "working", json!({ "actions": [action] }));
        let mut model = over(samples::board_of(vec![row]), PLAIN, SIZE);
        for no in ["<enter>", "n", "<esc>", " "] {
            assert_eq!(press(&mut model, key), []);
            assert!(shown(&model).contains(&format!("{action} latte?")), "{}", shown(&model));
            assert_eq!(press(&mut model, no), [], "{key} {no}");
            assert!(model.overlay.is_none());
        }
        assert_eq!(sent(&press(&mut model, &format!("{key}y"))).len(), 1, "{key}");
    }
}

/// A name of any length leaves the keys of the question visible.
#[test]
fn a_long_name_does_not_hide_the_keys_of_a_question() {
    let row = samples::row("k1", &"latte-".repeat(50), "working", json!({ "actions": ["delete"] }));
    for columns in [20, 40, 80, 120] {
        let mut model = over(samples::board_of(vec![row.clone()]), PLAIN, (columns, 24));
        press(&mut model, "D");
        let picture = shown(&model);
        let question = picture.lines().nth(22).unwrap();
        assert!(question.starts_with("delete") && question.contains("[y]"), "{columns}: {question}");
    }
}

/// What changes while the question stands is not what was asked about.
#[test]
fn a_row_that_changed_under_the_question_is_left_alone() {
    let row = |since: &str| samples::row("k1", "latte", "working", json!({ "actions": ["merge"], "since": since }));
    let mut model = over(samples::board_of(vec![row("2026-11-18T11:50:00Z")]), PLAIN, SIZE);
    press(&mut model, "m");
    told(&mut model, vec![row("2026-11-18T11:59:00Z")], &[]);
    assert_eq!(press(&mut model, "y"), []);
    assert!(shown(&model).contains("merge latte: it has changed meanwhile; nothing was sent"), "{}", shown(&model));
    press(&mut model, "m");
    told(&mut model, Vec::new(), &["k1"]);
    assert_eq!(press(&mut model, "y"), []);
}

/// A row that ended is folded away: the footer has no key for it any more.
#[test]
fn the_footer_has_no_keys_of_a_row_that_is_not_shown() {
    let mut model = dashboard(PLAIN, SIZE);
    press(&mut model, "gj");
    assert!(footer(&model).contains("[m]erge"), "{}", footer(&model));
    told(&mut model, vec![samples::row("k2", "latte", "done", json!({ "actions": ["delete"] }))], &[]);
    let picture = shown(&model);
    assert!(!picture.contains("latte"), "{picture}");
    assert!(!footer(&model).contains("delete") && !footer(&model).contains("details"), "{}", footer(&model));
    assert_eq!(press(&mut model, "Dy"), []);
    // It is chosen again where it is shown again.
    press(&mut model, "z");
    assert!(footer(&model).contains("[i] details"), "{}", footer(&model));
}

#[test]
fn options_that_end_the_work_are_asked_for_once_more() {
    for option in ["abort", "cancel", "delete", "discard", "merge", "reject"] {
        let mut model = over(samples::board_of(vec![waiting("k1", "k1/1", &["retry", option])]), PLAIN, SIZE);
        assert_eq!(press(&mut model, " 2"), [], "{option}");
        assert!(shown(&model).contains(&format!("{option} latte?")), "{}", shown(&model));
        assert_eq!(press(&mut model, "<enter>"), []);
        let done = press(&mut model, " 2y");
        assert_eq!(sent(&done), [format!(r#"/v1/attention/k1/1 {{"option":"{option}","message":null}}"#)]);
        assert_eq!(sent(&press(&mut model, " 1")), [r#"/v1/attention/k1/1 {"option":"retry","message":null}"#]);
    }
}

/// What waits is replaced by something else while the person looks at it: the number does not answer the other.
#[test]
fn a_peek_answers_only_what_it_showed() {
    let mut model = over(samples::board_of(vec![waiting("k1", "k1/1", &["one", "two"])]), PLAIN, SIZE);
    press(&mut model, " ");
    told(&mut model, vec![waiting("k1", "k1/2", &["three", "four"])], &[]);
    assert_eq!(press(&mut model, "1"), []);
    assert!(shown(&model).contains("something else waits now"), "{}", shown(&model));
    assert_eq!(sent(&press(&mut model, "q 1")), [r#"/v1/attention/k1/2 {"option":"three","message":null}"#]);
}

/// The letters of an inbox, as an engine answers.
fn letters(model: &mut Model, ids: &[&str]) {
    let letter = |id: &&str| {
        json!({ "id": id, "kind": "task", "reason": "question", "task": "k1", "project": "coffee", "title": id,
                "text": format!("about {id}"), "since": "2026-11-18T11:48:00Z", "options": ["yes", "no"], "said_by": "engine" })
    };
    let all: Vec<Value> = ids.iter().map(letter).collect();
    let fact = ScreenFact::Inbox(serde_json::from_value(json!(all)).unwrap());
    update(model, DashboardMessage::Got(ScreenAsk::Inbox, Box::new(Ok(fact))));
}

/// The first question is answered elsewhere while the person reads it: the second does not slide under the finger.
#[test]
fn the_inbox_stays_with_what_was_read() {
    let mut model = dashboard(PLAIN, SIZE);
    press(&mut model, ":inbox<enter>");
    letters(&mut model, &["r1/2", "k1/7", "k1/8"]);
    assert!(shown(&model).contains("about r1/2"), "{}", shown(&model));
    letters(&mut model, &["k1/7", "k1/8"]);
    let picture = shown(&model);
    assert!(picture.contains("This is answered or has passed. [j] shows the next of 2 that wait."), "{picture}");
    assert_eq!(press(&mut model, "1"), []);
    assert!(!footer(&model).contains("choose"), "{}", footer(&model));
    press(&mut model, "j");
    assert!(shown(&model).contains("about k1/7"), "{}", shown(&model));
    assert_eq!(sent(&press(&mut model, "1")), [r#"/v1/attention/k1/7 {"option":"yes","message":null}"#]);
    letters(&mut model, &["k1/8"]);
    press(&mut model, "k");
    assert!(shown(&model).contains("about k1/8"), "{}", shown(&model));
    // Opened again, it begins with what waits then.
    press(&mut model, "q");
    model.facts.age_if(|_| true);
    let open = DashboardMessage::Key(crossterm::event::KeyCode::Enter.into());
    press(&mut model, ":inbox");
    update(&mut model, open);
    assert!(!shown(&model).contains("about k1/8"), "{}", shown(&model));
    letters(&mut model, &["k1/8"]);
    assert!(shown(&model).contains("about k1/8"), "{}", shown(&model));
    letters(&mut model, &[]);
    assert!(shown(&model).contains("Nothing waits for you."), "{}", shown(&model));
    letters(&mut model, &["k1/9"]);
    assert!(shown(&model).contains("This is answered or has passed."), "{}", shown(&model));
}
