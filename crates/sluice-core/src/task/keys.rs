//! The one table of a task's keys: what the engine says of it in the frontmatter of TASK.md and in JSON.
//!
//! The frontmatter, the keys that TASK.md keeps from agents, the fields that no hook may set, the variables of prompts and
//! the columns of a list are made from here. Tests compare what stands on the other side of a crate's border: the JSON of
//! a task, and what the command line can ask for.

use std::collections::BTreeMap;

use super::state::TaskState;
use crate::lifecycle::{FieldValue, Lifecycle};

macro_rules! task_keys {
    ($($name:ident = $word:literal $set_by:ident $in_prompts:ident $in_lists:ident,)+) => {
        /// A key of a task.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum TaskKey {
            $(#[doc = $word] $name,)+
        }

        impl TaskKey {
            /// Every key, in the order in which TASK.md has them.
            pub const ALL: &[TaskKey] = &[$(TaskKey::$name,)+];
            /// The words of [`Self::ALL`].
            pub const WORDS: &[&str] = &[$($word,)+];

            /// The word for it.
            pub fn word(self) -> &'static str {
                match self { $(TaskKey::$name => $word,)+ }
            }

            /// Whether a hook may set it too.
            pub fn is_settable(self) -> bool {
                match self { $(TaskKey::$name => matches!(KeySetter::$set_by, KeySetter::Hooks),)+ }
            }

            /// Whether prompts, messages and commands of a lifecycle can show it.
            pub fn is_variable(self) -> bool {
                match self { $(TaskKey::$name => matches!(KeyInPrompts::$in_prompts, KeyInPrompts::Variable),)+ }
            }

            /// Whether lists of tasks have a column with it.
            pub fn is_column(self) -> bool {
                match self { $(TaskKey::$name => matches!(KeyInLists::$in_lists, KeyInLists::Column),)+ }
            }
        }
    };
}

enum KeySetter {
    /// The engine alone; a hook that names the key is refused by the checker.
    Engine,
    /// The engine, and hooks (`set_field`).
    Hooks,
}

enum KeyInPrompts {
    /// `{word}` in prompts and messages, `${word}` in commands. The machine must know its value.
    Variable,
    /// Such a word stays as it is in a prompt, and is refused in a command.
    NoVariable,
}

enum KeyInLists {
    /// In a column of its own.
    Column,
    /// Only where one task is shown.
    NoColumn,
}

task_keys! {
    Id = "id"                          Engine NoVariable Column,
    Project = "project"                Engine Variable   Column,
    Branch = "branch"                  Engine Variable   Column,
    Workflow = "workflow"              Engine NoVariable NoColumn,
    Harness = "harness"                Engine NoVariable NoColumn,
    ReviewHarness = "review_harness"   Engine NoVariable NoColumn,
    Status = "status"                  Engine Variable   Column,
    ReviewRound = "review_round"       Hooks  Variable   NoColumn,
    CrashCount = "crash_count"         Hooks  NoVariable NoColumn,
    Summary = "summary"                Hooks  Variable   Column,
    Workspace = "workspace"            Engine NoVariable NoColumn,
    TmuxSession = "tmux_session"       Engine NoVariable NoColumn,
    PrUrl = "pr_url"                   Engine NoVariable NoColumn,
    CreatedAt = "created_at"           Engine NoVariable NoColumn,
    UpdatedAt = "updated_at"           Engine NoVariable NoColumn,
}

impl TaskKey {
    /// The key with this word.
    pub fn read(word: &str) -> Option<TaskKey> {
        TaskKey::ALL.iter().copied().find(|key| key.word() == word)
    }

    /// The variable of a lifecycle's texts with this word.
    pub fn variable(word: &str) -> Option<TaskKey> {
        TaskKey::read(word).filter(|key| key.is_variable())
    }

    /// The words of the variables.
    pub fn variables() -> impl Iterator<Item = &'static str> {
        TaskKey::ALL.iter().filter(|key| key.is_variable()).map(|key| key.word())
    }

    /// What the frontmatter says under it, and a text with it as a variable; `None` for what the machine does not know, and
    /// the home adds.
    pub(super) fn value(self, lifecycle: &Lifecycle, state: &TaskState) -> Option<FieldValue> {
        let about = &state.about;
        let text = match self {
            TaskKey::ReviewRound => return Some(FieldValue::Number(state.review_round)),
            TaskKey::CrashCount => return Some(FieldValue::Number(i64::from(state.crash_count))),
            TaskKey::Project => &about.project,
            TaskKey::Branch => &about.branch,
            TaskKey::Workflow => lifecycle.name.as_str(),
            TaskKey::Harness => &about.harness,
            TaskKey::ReviewHarness => &about.review_harness,
            TaskKey::Status => lifecycle.state_name(state.status),
            TaskKey::Summary => &about.summary,
            TaskKey::Workspace => state.workspace.bound().map_or("", |name| name.0.as_str()),
            TaskKey::PrUrl => state.pull_request.as_deref().unwrap_or_default(),
            TaskKey::Id | TaskKey::TmuxSession | TaskKey::CreatedAt | TaskKey::UpdatedAt => return None,
        };
        Some(FieldValue::Text(text.to_owned()))
    }
}

/// What the frontmatter of TASK.md is to say, as far as the machine knows it.
pub fn frontmatter(lifecycle: &Lifecycle, state: &TaskState) -> BTreeMap<String, FieldValue> {
    let numbers = state.numbers.iter().map(|(name, value)| (name.to_string(), FieldValue::Number(*value)));
    let texts = state.texts.iter().map(|(name, value)| (name.to_string(), FieldValue::Text(value.clone())));
    let own = TaskKey::ALL.iter().filter_map(|key| Some((key.word().to_owned(), key.value(lifecycle, state)?)));
    numbers.chain(texts).chain(own).collect()
}
