//! The one table of what is done for a task: the word of each action, the keys of those that only ask for an effect, and
//! what each effect promises when it is asked for again.
//!
//! The dialect takes the words and keys of hooks from here, the stored keys of effects are these words, and the test
//! that kills the engine goes over every effect. A *plain* action is one row: the machine fills its texts in, asks for
//! its effect and waits for the outcome. An action that changes sessions, worktrees, fields or runs of its task needs
//! code of its own in `task`, and a variant of [`super::TransitionHook`].

use std::fmt;

/// What becomes of an effect that is asked for again, because the engine died after it was done and before its outcome
/// was stored. Every effect promises one of these; `effect_kills` in the tests of the program holds it to that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenRepeated {
    /// Doing it again leaves what doing it once leaves: a branch is pushed, a file says what is true.
    Same,
    /// What was done is found by the effect's key, or by what it is for, and given back: the worktree that is bound to
    /// the task, the session of this number, the pull request of this branch.
    Found,
    /// It cannot be found in the world, so a note under the effect's key says that it was done.
    Noted,
    /// It is done again: at least once, not once. Only for what users wrote, who are told so.
    Again,
}

macro_rules! actions {
    (
        hooks { $($hook:ident = $hook_word:literal,)+ }
        plain { $($(#[$doc:meta])+ $plain:ident = $plain_word:literal { $($key:ident),* } $when:ident,)+ }
        engine { $($own:ident = $own_word:literal,)+ }
    ) => {
        /// What is done, in the words of the files.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum TaskAction {
            $(#[doc = $hook_word] $hook,)+
            $(#[doc = $own_word] $own,)+
            /// An action that only asks for an effect.
            Plain(PlainAction),
        }

        /// An action that only asks for an effect.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum PlainAction {
            $($(#[$doc])+ $plain,)+
        }

        /// The effect of a plain action, with its texts filled in.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum PlainEffect {
            $($(#[$doc])+ $plain {
                $(#[doc = concat!("What `", stringify!($key), "` says.")] $key: String,)*
            },)+
        }

        impl TaskAction {
            /// Every action, of hooks and of the engine itself.
            pub const ALL: &[TaskAction] = &[
                $(TaskAction::$hook,)+
                $(TaskAction::Plain(PlainAction::$plain),)+
                $(TaskAction::$own,)+
            ];
            /// The actions that a hook can have.
            pub const HOOKS: &[TaskAction] = &[
                $(TaskAction::$hook,)+
                $(TaskAction::Plain(PlainAction::$plain),)+
            ];
            /// The words of [`Self::HOOKS`], as a hook's `action` names them in the file.
            pub const HOOK_WORDS: &[&str] = &[$($hook_word,)+ $($plain_word,)+];

            /// The word for it.
            pub fn word(self) -> &'static str {
                match self {
                    $(TaskAction::$hook => $hook_word,)+
                    $(TaskAction::$own => $own_word,)+
                    TaskAction::Plain(plain) => plain.word(),
                }
            }
        }

        impl PlainAction {
            /// Every plain action, in the order of the table.
            pub const ALL: &[PlainAction] = &[$(PlainAction::$plain,)+];

            /// The word for it.
            pub fn word(self) -> &'static str {
                match self { $(PlainAction::$plain => $plain_word,)+ }
            }

            /// The keys of its hook. Each is a text that must be there, and may show the task's variables.
            pub fn keys(self) -> &'static [&'static str] {
                match self { $(PlainAction::$plain => &[$(stringify!($key),)*],)+ }
            }

            /// What its effect promises.
            pub fn when_repeated(self) -> WhenRepeated {
                match self { $(PlainAction::$plain => WhenRepeated::$when,)+ }
            }

            /// Its effect, with what `text` says for each key.
            pub fn effect(self, text: impl Fn(&'static str) -> String) -> PlainEffect {
                let _ = &text;
                match self { $(PlainAction::$plain => PlainEffect::$plain { $($key: text(stringify!($key)),)* },)+ }
            }
        }

        impl PlainEffect {
            /// What it is the effect of.
            pub fn action(&self) -> PlainAction {
                match self { $(PlainEffect::$plain { .. } => PlainAction::$plain,)+ }
            }

            /// Its texts, in the order of the keys.
            pub fn texts(&self) -> Vec<&str> {
                match self { $(PlainEffect::$plain { $($key,)* } => vec![$($key.as_str(),)*],)+ }
            }
        }
    };
}

actions! {
    hooks {
        AcquireWorkspace = "acquire_workspace",
        ReleaseWorkspace = "release_workspace",
        SpawnAgent = "spawn_agent",
        SpawnReviewer = "spawn_reviewer",
        KillSession = "kill_session",
        KillReviewer = "kill_reviewer",
        NotifyWorker = "notify_worker",
        Increment = "increment_review_round",
        RunCommand = "run_command",
        SetField = "set_field",
    }
    plain {
        /// Start the project's next pending task. Which one stands in a note before it begins.
        SpawnNext = "spawn_next" {} Noted,
        /// Push the task's branch.
        PushBranch = "push_branch" {} Same,
        /// Push it and open a pull request; one that is open is taken.
        CreatePr = "create_pr" {} Found,
        /// Remove it from the remote.
        DeleteRemoteBranch = "delete_remote_branch" {} Same,
        /// Tell a person. A note says that the person's program ended well. An engine that dies between that end and the
        /// note tells once more: the program is another's, and nothing can be asked of it afterwards.
        Notify = "notify" { message } Noted,
    }
    engine {
        StartRun = "start_run",
        CancelRun = "cancel_run",
        WriteArtifact = "write_artifact",
    }
}

impl fmt::Display for TaskAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
