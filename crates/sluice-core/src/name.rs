//! Names with a meaning. A state's name and a prompt's name are both text, and must not be mixed up.

use std::fmt;

macro_rules! names {
    ($($(#[doc = $doc:literal])+ $name:ident;)+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(Box<str>);

        impl $name {
            /// The name `text`; whether it is well formed was decided by the checker.
            pub fn new(text: impl Into<Box<str>>) -> Self {
                $name(text.into())
            }

            /// The name as it is written in the file.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    )+};
}

names! {
    /// A definition: `default`, `dev-task`.
    DefinitionName;
    /// A state of a lifecycle: `agent-review`.
    StateName;
    /// A prompt of a lifecycle: `worker_respawn`.
    PromptName;
    /// A field of a task's frontmatter: `review_round`.
    FieldName;
    /// A step of a recipe: `implement`.
    StepName;
    /// An input of a recipe: `${input.name}`.
    InputName;
    /// A variable that a step's output is stored under.
    VariableName;
    /// What an agent is asked to be: `planner`, `reviewer`, `any`.
    Role;
}

/// The longest name of anything, in bytes. Names end up in branch names, file names and window titles.
pub const LONGEST: usize = 100;

/// Variables of a recipe with a meaning of their own, which no step and no output can be called.
pub const RESERVED: [&str; 7] = ["input", "run", "item", "index", "iteration", "history", "output"];

/// Whether `text` is `kebab-case`, `snake_case` or a mix: letters, digits, `-`, `_`, starting with a letter.
pub fn is_identifier(text: &str) -> bool {
    text.len() <= LONGEST
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

/// Whether `text` is a kebab-case name: lower-case words and digits, joined by single hyphens.
pub fn is_kebab(text: &str) -> bool {
    let word =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    text.len() <= LONGEST && text.split('-').all(word)
}
