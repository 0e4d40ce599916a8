//! The dashboard without a terminal and without an engine: a board and keys in, pictures and commands out.

mod care;
mod keys;
mod late;
mod pictures;
mod requests;
mod samples;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;

use crate::look::TerminalLook;
use crate::model::facts::ScreenFact;
use crate::model::{DashboardCommand, DashboardMessage, Model, update};
use crate::view;

/// The looks that a terminal can have: all, ASCII alone, no colours.
const PLAIN: TerminalLook = TerminalLook { ascii: false, colour: true };
const ASCII: TerminalLook = TerminalLook { ascii: true, colour: false };
const COLOURLESS: TerminalLook = TerminalLook { ascii: false, colour: false };

/// A dashboard over the sample board, of this size.
fn dashboard(look: TerminalLook, size: (u16, u16)) -> Model {
    over(samples::board(), look, size)
}

fn over(board: sluice_api::board::Board, look: TerminalLook, (columns, rows): (u16, u16)) -> Model {
    let mut model = Model::new(look, "/home/ada/coffee".to_owned(), false, samples::now());
    update(&mut model, DashboardMessage::Resized(columns, rows));
    let commands = update(&mut model, DashboardMessage::Board(Box::new(board)));
    answer(&mut model, commands);
    model
}

/// Presses keys, one for each letter; `<…>` is a key with a name. Questions for screens are answered from the samples; the other
/// commands are given back.
fn press(model: &mut Model, keys: &str) -> Vec<DashboardCommand> {
    let mut rest = keys;
    let mut done = Vec::new();
    while let Some(first) = rest.chars().next() {
        let (code, length) = match rest.strip_prefix('<').and_then(|it| it.split_once('>')) {
            Some((name, _)) => (named(name), name.len() + 2),
            None => (KeyCode::Char(first), first.len_utf8()),
        };
        rest = &rest[length..];
        let commands = update(model, DashboardMessage::Key(KeyEvent::new(code, KeyModifiers::NONE)));
        done.extend(answer(model, commands));
    }
    done
}

fn named(name: &str) -> KeyCode {
    match name {
        "enter" => KeyCode::Enter,
        "esc" => KeyCode::Esc,
        "tab" => KeyCode::Tab,
        "down" => KeyCode::Down,
        other => panic!("no key is called {other}"),
    }
}

/// Answers what screens ask from the samples, until they have all; gives the rest.
fn answer(model: &mut Model, commands: Vec<DashboardCommand>) -> Vec<DashboardCommand> {
    let mut rest = Vec::new();
    let mut open = commands;
    while let Some(command) = open.pop() {
        match command {
            DashboardCommand::Fetch(ask) => {
                let fact: ScreenFact = samples::fact(&ask);
                open.extend(update(model, DashboardMessage::Got(ask, Box::new(Ok(fact)))));
            }
            other => rest.push(other),
        }
    }
    rest
}

/// What the terminal shows.
fn drawn(model: &Model) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(model.size.0, model.size.1)).unwrap();
    terminal.draw(|frame| view::draw(frame, model)).unwrap();
    terminal.backend().buffer().clone()
}

/// The same as text.
fn shown(model: &Model) -> String {
    let buffer = drawn(model);
    let line = |row: u16| {
        let mut line = String::new();
        let mut column = 0;
        while column < buffer.area.width {
            let symbol = buffer[(column, row)].symbol();
            line.push_str(symbol);
            column += u16::try_from(crate::text::width(symbol).max(1)).unwrap();
        }
        line.trim_end().to_owned()
    };
    (0..buffer.area.height).map(line).collect::<Vec<_>>().join("\n")
}

/// The last line of the terminal.
fn footer(model: &Model) -> String {
    shown(model).lines().last().unwrap_or_default().to_owned()
}
