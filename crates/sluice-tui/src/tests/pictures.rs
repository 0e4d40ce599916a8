//! Pictures of every screen at three sizes, with and without what not every terminal can show.

use ratatui::style::Color;
use serde_json::json;
use sluice_api::problem::Problem;

use super::{ASCII, COLOURLESS, PLAIN, dashboard, drawn, over, press, samples, shown};
use crate::look::TerminalLook;
use crate::model::{DashboardMessage, Model, update};

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (200, 60)];

/// Every screen, and the keys that lead there from the board.
const SCREENS: &[(&str, &str)] = &[
    ("board", ""),
    ("board_unfolded", "zGk"),
    ("peek", "gj "),
    ("help", "?"),
    ("detail_terminal", "gji"),
    ("detail_diff", "gji<tab>"),
    ("detail_file", "gjt"),
    ("detail_log", "gjl"),
    ("detail_history", "gjh"),
    ("detail_graph", "gjv"),
    ("detail_steps", "gjh<tab><tab>"),
    ("detail_usage", "gjh<tab><tab><tab>"),
    ("diff", "gjdjjjjcmilk goes last<enter>"),
    ("diff_since", "gjds"),
    ("run", "gi"),
    ("inbox", ":inbox<enter>"),
    ("workers", ":workers<enter>"),
    ("workspaces", "w"),
    ("costs", ":costs<enter>s"),
    ("schedules", ":schedules<enter>"),
    ("events", ":events<enter>"),
    ("create", "c"),
    ("start", "b<enter>nightly<enter>"),
    ("command", ":wo"),
    ("filter", "/lat"),
    ("view", "1"),
    ("comment", "gjdjjcmilk"),
    ("request_changes", "gjXsteam it"),
    ("answer", "gj 2milk last"),
    ("nudge", "/pager<enter>Nfaster"),
    ("save_view", "Smine"),
    ("restore", "zGu"),
    ("confirm", "gjx"),
    ("confirm_merge", "gjm"),
    ("confirm_answer", "g 3"),
];

fn at(keys: &str, look: TerminalLook, size: (u16, u16)) -> Model {
    let mut model = dashboard(look, size);
    press(&mut model, keys);
    model
}

#[test]
fn every_screen_at_every_size() {
    for (name, keys) in SCREENS {
        for size in SIZES {
            let picture = shown(&at(keys, PLAIN, size));
            insta::assert_snapshot!(format!("{name}_{}x{}", size.0, size.1), picture);
        }
    }
}

#[test]
fn every_screen_in_ascii() {
    for (name, keys) in SCREENS {
        for size in SIZES {
            let picture = shown(&at(keys, ASCII, size));
            assert!(picture.is_ascii(), "{name} at {size:?}:\n{picture}");
            insta::assert_snapshot!(format!("{name}_ascii_{}x{}", size.0, size.1), picture);
        }
    }
}

/// Without colours nothing is lost: the shapes say the same.
#[test]
fn no_screen_has_a_colour_where_none_is_wanted() {
    for (name, keys) in SCREENS {
        for size in SIZES {
            let model = at(keys, COLOURLESS, size);
            let is_coloured = |cell: &ratatui::buffer::Cell| cell.fg != Color::Reset || cell.bg != Color::Reset;
            assert!(!drawn(&model).content.iter().any(is_coloured), "{name} at {size:?}");
            assert_eq!(shown(&model), shown(&at(keys, PLAIN, size)), "{name} at {size:?}");
        }
    }
}

/// Sixteen colours: none of them is an index or a mixture.
#[test]
fn no_screen_needs_more_than_sixteen_colours() {
    for (name, keys) in SCREENS {
        for cell in &drawn(&at(keys, PLAIN, SIZES[1])).content {
            for colour in [cell.fg, cell.bg] {
                assert!(!matches!(colour, Color::Rgb(..) | Color::Indexed(_)), "{name}: {colour:?}");
            }
        }
    }
}

#[test]
fn an_engine_that_is_away_is_told_of() {
    for (look, name) in [(PLAIN, "away"), (ASCII, "away_ascii")] {
        for size in SIZES {
            let mut model = dashboard(look, size);
            update(&mut model, DashboardMessage::Away(Problem::unavailable("no engine answers at the socket")));
            press(&mut model, "gjmy");
            insta::assert_snapshot!(format!("{name}_{}x{}", size.0, size.1), shown(&model));
        }
    }
}

#[test]
fn an_empty_board_teaches() {
    for (look, name) in [(PLAIN, "empty"), (ASCII, "empty_ascii")] {
        for size in SIZES {
            let empty = over(samples::board_of(Vec::new()), look, size);
            insta::assert_snapshot!(format!("{name}_{}x{}", size.0, size.1), shown(&empty));
        }
    }
}

#[test]
fn a_terminal_of_any_size_is_drawn() {
    for (_, keys) in SCREENS {
        for size in [(1, 1), (19, 3), (20, 4), (30, 8), (400, 5), (81, 100)] {
            drawn(&at(keys, PLAIN, size));
        }
    }
}

/// Whatever agents write in any field, no cell of the terminal holds anything but a character that is shown.
#[test]
fn hostile_text_does_nothing_but_appear() {
    let hostile = "\u{1b}]0;owned\u{7}\u{1b}[2J\r\n\u{202e}\u{9b}31m<b>漢字\u{200b}\u{fe0f}";
    let text = format!("{hostile}{}", "x".repeat(100_000));
    let row = samples::row(
        "k1",
        &text,
        "needs_you",
        json!({
            "summary": text, "project": text, "workflow": text, "status": text, "text": text, "harness": text, "model": text,
            "pr_url": text, "step": text, "actions": ["answer", "nudge", "request_changes"],
            "attention": { "id": "k1/1", "reason": "question", "text": text, "since": text, "choices": [text, text],
                           "said_by": "screen" },
            "since": text,
        }),
    );
    for size in SIZES {
        for (name, keys) in SCREENS {
            let mut model = over(samples::board_of(vec![row.clone()]), PLAIN, size);
            press(&mut model, keys);
            for cell in &drawn(&model).content {
                let is_fit = |letter: char| !letter.is_control() && letter != '\u{202e}' && letter != '\u{200b}';
                assert!(cell.symbol().chars().all(is_fit), "{name} at {size:?}: {:?}", cell.symbol());
            }
        }
    }
}

/// 5,000 tasks are drawn as fast as 50: only what is seen is made.
#[test]
fn a_large_board_is_drawn_where_the_choice_is() {
    let rows = (0..5_000).map(|at| samples::row(&format!("k{at:04}"), &format!("task-{at:04}"), "working", json!({})));
    let mut model = over(samples::board_of(rows.collect()), PLAIN, SIZES[0]);
    press(&mut model, "G");
    assert!(shown(&model).contains("task-4999"), "{}", shown(&model));
    press(&mut model, "g");
    assert!(shown(&model).contains("task-0000"));
}

#[test]
fn the_board_once_and_in_a_few_characters() {
    let plain = crate::once(samples::board(), ASCII, 80);
    assert!(plain.is_ascii() && plain.lines().all(|line| line.len() <= 80), "{plain}");
    assert!(plain.contains("NEEDS YOU (4)"), "{plain}");
    assert_eq!(crate::short(&samples::board(), PLAIN), "▲4 ●3 $4.12");
    assert_eq!(crate::short(&samples::board(), ASCII), "!4 *3 $4.12");
}
