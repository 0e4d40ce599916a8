//! What a key means: to what stands over the screen, else by the table of keys.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind};
use sluice_api::board::{BoardGroup, BoardRow, BoardRowKind};

use super::asking::{FormKey, Purpose};
use super::{DashboardCommand, DashboardScreen, Model, Overlay, deeds};
use crate::keys::{self, Deed, KeyBinding, TABLE, When};

pub(super) fn key(model: &mut Model, key: KeyEvent) -> Vec<DashboardCommand> {
    if key.kind == KeyEventKind::Release {
        return Vec::new();
    }
    // A person who presses another key does not wait any more for what the last one opens.
    model.awaits = None;
    let commands = heard(model, key);
    deeds::begin_to_wait(model);
    commands
}

fn heard(model: &mut Model, key: KeyEvent) -> Vec<DashboardCommand> {
    match model.overlay.take() {
        None => pressed(model, key),
        Some(Overlay::Peek { id, attention }) => {
            model.overlay = Some(Overlay::Peek { id, attention });
            pressed(model, key)
        }
        Some(Overlay::Help { scroll }) => {
            let last = crate::view::help_lines(model).saturating_sub(1);
            let scroll = match keys::named(key) {
                Some(KeyCode::Char('j')) => (scroll + 1).min(last),
                Some(KeyCode::Char('k')) => scroll.saturating_sub(1),
                Some(KeyCode::PageDown) => (scroll + 10).min(last),
                Some(KeyCode::PageUp) => scroll.saturating_sub(10),
                _ => return Vec::new(),
            };
            model.overlay = Some(Overlay::Help { scroll });
            Vec::new()
        }
        Some(Overlay::Confirm(confirm)) => match key.code {
            KeyCode::Char('y' | 'Y') => deeds::meant(model, confirm),
            _ => Vec::new(),
        },
        Some(Overlay::Form(mut form)) => match form.key(key) {
            FormKey::Left => Vec::new(),
            FormKey::Sent => deeds::filled(model, form),
            FormKey::Goes => {
                model.overlay = Some(Overlay::Form(form));
                Vec::new()
            }
        },
        Some(Overlay::Prompt(mut prompt)) => match key.code {
            KeyCode::Esc => {
                if prompt.purpose == Purpose::Filter {
                    deeds::filter(model, "");
                }
                Vec::new()
            }
            KeyCode::Enter => deeds::said(model, prompt.purpose, prompt.input.value()),
            _ => {
                if key.code == KeyCode::Tab && prompt.purpose == Purpose::Command {
                    prompt.input = tui_input::Input::new(deeds::completed(prompt.input.value()));
                } else {
                    prompt.type_key(key);
                }
                if prompt.purpose == Purpose::Filter {
                    deeds::filter(model, prompt.input.value());
                }
                model.overlay = Some(Overlay::Prompt(prompt));
                Vec::new()
            }
        },
    }
}

/// A key that the table knows and that can be used now; any other does nothing.
fn pressed(model: &mut Model, event: KeyEvent) -> Vec<DashboardCommand> {
    let Some(key) = keys::named(event) else { return Vec::new() };
    let Some(binding) = possible(model).into_iter().find(|binding| keys::is_key(binding, key)) else {
        return Vec::new();
    };
    model.note = None;
    let number = match key {
        KeyCode::Char(digit @ '1'..='9') => digit.to_digit(10).map(|digit| digit as usize - 1).unwrap_or_default(),
        _ => 0,
    };
    deeds::perform(model, binding.deed, number)
}

/// The keys that can be used now, in the order of the table.
pub(crate) fn possible(model: &Model) -> Vec<&'static KeyBinding> {
    let scope = model.scope();
    TABLE.iter().filter(|binding| binding.scopes.contains(&scope) && holds(model, binding)).collect()
}

/// Whether a key can be used now.
pub(crate) fn holds(model: &Model, binding: &KeyBinding) -> bool {
    let row = model.subject();
    match binding.when {
        When::Always => binding.deed != Deed::NextNeed || needs(model),
        When::Row => row.is_some(),
        When::Task => row.is_some_and(|row| row.kind == BoardRowKind::Task),
        When::Allowed(actions) => row.is_some_and(|row| row.actions.iter().any(|action| actions.contains(action))),
        When::Peekable => row.is_some_and(is_peekable),
        When::Worktree => {
            row.is_some_and(|row| row.kind == BoardRowKind::Task && row.group != BoardGroup::Done) && !model.is_remote
        }
        When::Ended => row.is_some_and(|row| row.group == BoardGroup::Done) || model.ended.is_some(),
        When::Options => deeds::options(model).is_some_and(|(_, _, options)| !options.is_empty()),
        When::Reply => deeds::reply(model).is_some(),
        When::Comments => row.is_some_and(|row| model.readings.get(&row.id).is_some_and(|it| !it.comments.is_empty())),
        When::Costs => matches!(model.screen(), DashboardScreen::List { what: super::ListSubject::Costs(_), .. }),
    }
}

fn needs(model: &Model) -> bool {
    model.board.as_ref().is_some_and(|board| board.counts.needs_you + board.counts.ready_to_merge > 0)
}

fn is_peekable(row: &BoardRow) -> bool {
    row.attention.is_some() || row.alive
}
