//! What the dashboard asks a person: a line of words, a form, or whether something is meant.

use crossterm::event::{Event, KeyCode, KeyEvent};
use sluice_api::board::{BoardAction, LONGEST_VIEW_FILTER, LONGEST_VIEW_NAME};
use tui_input::Input;
use tui_input::backend::crossterm::EventHandler as _;

use super::diff::Spot;
use super::requests::RequestAbout;

/// The most characters that are taken in a line.
const LONGEST_INPUT: usize = 4_000;

/// What a line of words is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Only rows with these words.
    Filter,
    /// One of the commands.
    Command,
    /// The message of a request for changes.
    RequestChanges(String),
    /// A message to an agent.
    Nudge(String),
    /// Words as the answer to what waits.
    Answer {
        /// The id of the attention.
        attention: String,
        /// The row that it is about.
        row: String,
        /// The option that the words go with; none: the words are the answer.
        option: Option<String>,
    },
    /// A comment at a line of a diff.
    Comment(String, Spot),
    /// The folder into which kept work is restored.
    Restore(String),
    /// The name of a view.
    SaveView,
}

impl Purpose {
    pub(crate) fn title(&self) -> String {
        match self {
            Purpose::Filter => "filter".to_owned(),
            Purpose::Command => "command".to_owned(),
            Purpose::RequestChanges(_) => "request changes: what should be different?".to_owned(),
            Purpose::Nudge(_) => "message to the agent".to_owned(),
            Purpose::Answer { option: Some(option), .. } => format!("{option}: in which words?"),
            Purpose::Answer { option: None, .. } => "answer".to_owned(),
            Purpose::Comment(_, (file, Some((line, _)))) => format!("comment on {file}:{line}"),
            Purpose::Comment(_, (file, None)) => format!("comment on {file}"),
            Purpose::Restore(_) => "restore the kept work into the folder".to_owned(),
            Purpose::SaveView => "name of the view".to_owned(),
        }
    }

    fn longest(&self) -> usize {
        match self {
            Purpose::Filter => LONGEST_VIEW_FILTER,
            Purpose::SaveView => LONGEST_VIEW_NAME,
            Purpose::Command
            | Purpose::RequestChanges(_)
            | Purpose::Nudge(_)
            | Purpose::Answer { .. }
            | Purpose::Comment(..)
            | Purpose::Restore(_) => LONGEST_INPUT,
        }
    }
}

/// A line that a person types.
#[derive(Clone, Debug)]
pub(crate) struct LinePrompt {
    pub(crate) purpose: Purpose,
    pub(crate) input: Input,
}

impl LinePrompt {
    pub(crate) fn new(purpose: Purpose, text: &str) -> LinePrompt {
        LinePrompt { purpose, input: Input::new(text.to_owned()) }
    }

    pub(crate) fn type_key(&mut self, key: KeyEvent) {
        type_into(&mut self.input, key, self.purpose.longest());
    }
}

fn type_into(input: &mut Input, key: KeyEvent, longest: usize) {
    if matches!(key.code, KeyCode::Char(_)) && input.value().chars().count() >= longest {
        return;
    }
    input.handle_event(&Event::Key(key));
}

/// What a form makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Making {
    /// A task of a project.
    Task,
    /// The choice of a project, whose recipes are then shown.
    Project,
    /// The choice of a recipe of this project.
    Recipe(String),
    /// A run of a recipe in a project.
    Run {
        /// The name of the recipe.
        recipe: String,
        /// The project that it works in.
        project: String,
    },
}

/// A field of a form.
#[derive(Clone, Debug)]
pub(crate) struct FormField {
    /// What it is called, in the request too.
    pub(crate) name: String,
    pub(crate) is_required: bool,
    /// What it can be; empty: anything.
    pub(crate) choices: Vec<String>,
    pub(crate) input: Input,
    /// Whether what looks like a number is text all the same.
    pub(crate) is_text: bool,
}

impl FormField {
    pub(crate) fn new(name: &str, is_required: bool, choices: Vec<String>, value: &str) -> FormField {
        FormField { name: name.to_owned(), is_required, choices, input: Input::new(value.to_owned()), is_text: true }
    }

    pub(crate) fn value(&self) -> &str {
        self.input.value().trim()
    }
}

/// Fields that a person fills in.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    pub(crate) making: Making,
    pub(crate) title: String,
    pub(crate) fields: Vec<FormField>,
    pub(crate) at: usize,
}

/// What a key did to a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FormKey {
    /// It is filled in.
    Sent,
    /// It is given up.
    Left,
    /// It is not done yet.
    Goes,
}

impl Form {
    pub(crate) fn new(making: Making, title: impl Into<String>, fields: Vec<FormField>) -> Form {
        // The first field without a value is where typing begins.
        let at = fields.iter().position(|field| field.value().is_empty()).unwrap_or_default();
        Form { making, title: title.into(), fields, at }
    }

    pub(crate) fn key(&mut self, key: KeyEvent) -> FormKey {
        let last = self.fields.len().saturating_sub(1);
        match key.code {
            KeyCode::Esc => return FormKey::Left,
            KeyCode::Enter if self.at < last => self.at += 1,
            KeyCode::Enter => return FormKey::Sent,
            KeyCode::Tab | KeyCode::Down => self.at = if self.at < last { self.at + 1 } else { 0 },
            KeyCode::BackTab | KeyCode::Up => self.at = self.at.checked_sub(1).unwrap_or(last),
            KeyCode::Left | KeyCode::Right if self.fields.get(self.at).is_some_and(|it| !it.choices.is_empty()) => {
                self.choose(key.code == KeyCode::Right);
            }
            _ => {
                if let Some(field) = self.fields.get_mut(self.at) {
                    type_into(&mut field.input, key, LONGEST_INPUT);
                }
            }
        }
        FormKey::Goes
    }

    /// Puts the next of the choices into the field.
    fn choose(&mut self, is_forward: bool) {
        let Some(field) = self.fields.get_mut(self.at) else { return };
        let count = field.choices.len();
        let now = field.choices.iter().position(|choice| choice == field.input.value());
        let next = match (now, is_forward) {
            (None, _) => 0,
            (Some(now), true) => (now + 1) % count,
            (Some(now), false) => (now + count - 1) % count,
        };
        field.input = Input::new(field.choices[next].clone());
    }

    /// The first field that must have a value and has none.
    pub(crate) fn lacks(&self) -> Option<usize> {
        self.fields.iter().position(|field| field.is_required && field.value().is_empty())
    }
}

/// Something that is done only if it is meant.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Confirm {
    /// What is done, to what: `merge latte`.
    pub(crate) what: String,
    /// What comes of it, in a sentence.
    pub(crate) outcome: &'static str,
    /// The row that it is about, as it was when it was asked; none: what waits is about no row.
    pub(crate) about: Option<RequestAbout>,
    pub(crate) deed: GraveDeed,
}

/// What is asked for once more before it is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GraveDeed {
    /// Something that the row allows.
    Act {
        /// The row that it is about.
        row: String,
        /// What is done with it.
        action: BoardAction,
    },
    /// An answer to what waits.
    Answer {
        /// The id of the attention.
        attention: String,
        /// The row that it is about.
        row: String,
        /// The option that was chosen.
        option: String,
    },
}
