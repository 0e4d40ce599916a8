//! Up and down: on the board by rows, in a diff by lines, elsewhere by what the screen lists.

use super::facts::ScreenAsk;
use super::{DashboardScreen, Model};
use crate::keys::Motion;
use crate::view;

/// By how many lines a key moves.
fn distance(model: &Model, motion: Motion) -> isize {
    let page = isize::try_from(model.size.1.saturating_sub(6).max(1)).unwrap_or(1);
    // No list has so many lines.
    let all = isize::MAX / 2;
    match motion {
        Motion::Up => -1,
        Motion::Down => 1,
        Motion::PageUp => -page,
        Motion::PageDown => page,
        Motion::Top => -all,
        Motion::Bottom => all,
    }
}

pub(super) fn moved(model: &mut Model, motion: Motion) {
    let by = distance(model, motion);
    let height = usize::from(model.size.1);
    let ids: Vec<String> = letters(model);
    let lines = view::scrolled_lines(model);
    let Some(screen) = model.screens.last_mut() else {
        if let Some(board) = &mut model.board {
            board.step(by);
        }
        return;
    };
    match screen {
        DashboardScreen::Board => {}
        DashboardScreen::Detail { scroll, .. } | DashboardScreen::List { scroll, .. } => {
            // The last page stays full.
            let last = lines.saturating_sub(height.saturating_sub(8));
            *scroll = scroll.saturating_add_signed(by).min(last);
        }
        DashboardScreen::Run { step, scroll, .. } => {
            *step = step.saturating_add_signed(by).min(lines.saturating_sub(1));
            *scroll = 0;
        }
        DashboardScreen::Inbox { at, place } => {
            // From one that has passed, down leads to what has come to its place.
            let to = match at.as_ref().and_then(|at| ids.iter().position(|id| id == at)) {
                Some(now) => now.saturating_add_signed(by),
                None if by > 0 => place.saturating_add_signed(by - 1),
                None => place.saturating_add_signed(by),
            };
            *place = to.min(ids.len().saturating_sub(1));
            *at = ids.get(*place).cloned();
        }
        DashboardScreen::Diff { id } => {
            let id = id.clone();
            let ask = ScreenAsk::Changes(model.kind(&id), id.clone());
            if let Some(changes) = model.facts.changes(&ask) {
                model.readings.entry(id).or_default().step(changes, by);
            }
        }
    }
}

/// The ids of what waits, the oldest first.
pub(super) fn letters(model: &Model) -> Vec<String> {
    model.facts.inbox(&ScreenAsk::Inbox).into_iter().flatten().map(|it| it.id.clone()).collect()
}
