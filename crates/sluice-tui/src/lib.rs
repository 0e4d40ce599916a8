//! The terminal dashboard: what needs a person, and what to press.
//!
//! It is a client of the API and nothing else. It knows no state by name: what can be done with a task or a run is told by its row,
//! and the one table in `keys` makes of that the footer, the help and what keys do. `model` is a machine, `view` draws it, `link`
//! follows the engine, `app` is the loop around them.

mod app;
mod asks;
mod attach;
mod keys;
mod link;
mod look;
mod model;
mod terminal;
mod text;
mod view;

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use sluice_api::board::Board;

pub use app::Dashboard;
pub use keys::manual;
pub use link::Finder;
pub use look::TerminalLook;

/// The whole board as text, for a terminal of so many columns.
pub fn once(board: Board, look: TerminalLook, columns: u16) -> String {
    let mut model = model::Model::new(look, String::new(), false, Timestamp::now());
    model::update(&mut model, model::DashboardMessage::Board(Box::new(board)));
    view::once(&model, columns)
}

/// The board in a few characters, for a status line: `▲4 ●5 $4.12`.
pub fn short(board: &Board, look: TerminalLook) -> String {
    let counts = &board.counts;
    let needs = counts.need_person();
    let cost = board.today.cost_usd.map(|cost| format!(" {}", text::money(cost))).unwrap_or_default();
    let glyph = |tone| look.glyph(tone);
    let working = counts.working + counts.in_review;
    format!("{}{needs} {}{working}{cost}", glyph(look::RowTone::Needs), glyph(look::RowTone::Works))
}
