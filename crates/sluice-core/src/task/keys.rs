//! The one table of a task's keys: what the engine says of it in the frontmatter of TASK.md and in JSON.
//!
//! The frontmatter and the fields that no hook may set are made from here. Tests compare what stands on the other side of
//! a crate's border: the keys that `sluice-os` takes for the engine's, the JSON of a task, the command line.

use std::collections::BTreeMap;

use super::state::TaskState;
use crate::lifecycle::{FieldValue, Lifecycle};

macro_rules! task_keys {
    ($($name:ident = $word:literal $set_by:ident,)+) => {
        /// A key of a task.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum TaskKey {
            $(#[doc = $word] $name,)+
        }

        impl TaskKey {
            /// Every key, in the order in which TASK.md has them.
            pub const ALL: &[TaskKey] = &[$(TaskKey::$name,)+];

            /// The word for it.
            pub fn word(self) -> &'static str {
                match self { $(TaskKey::$name => $word,)+ }
            }

            /// Whether a hook may set it too.
            pub fn is_settable(self) -> bool {
                match self { $(TaskKey::$name => matches!(KeySetter::$set_by, KeySetter::Hooks),)+ }
            }
        }
    };
}

/// By whom a key is set.
enum KeySetter {
    /// The engine alone; a hook that names the key is refused by the checker.
    Engine,
    /// The engine, and hooks (`set_field`).
    Hooks,
}

task_keys! {
    Id = "id" Engine,
    Project = "project" Engine,
    Branch = "branch" Engine,
    Workflow = "workflow" Engine,
    Harness = "harness" Engine,
    ReviewHarness = "review_harness" Engine,
    Status = "status" Engine,
    ReviewRound = "review_round" Hooks,
    CrashCount = "crash_count" Hooks,
    Summary = "summary" Hooks,
    Workspace = "workspace" Engine,
    TmuxSession = "tmux_session" Engine,
    PrUrl = "pr_url" Engine,
    CreatedAt = "created_at" Engine,
    UpdatedAt = "updated_at" Engine,
}

impl TaskKey {
    /// The key with this word.
    pub fn read(word: &str) -> Option<TaskKey> {
        TaskKey::ALL.iter().copied().find(|key| key.word() == word)
    }

    /// What the frontmatter says under it; `None` for what the machine does not know, and the home adds.
    fn value(self, lifecycle: &Lifecycle, state: &TaskState) -> Option<FieldValue> {
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
