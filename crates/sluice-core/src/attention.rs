//! The words about what waits for a person: why, which channel says so, and what a dialog is about.
//!
//! Tasks and runs share them. Whether something waits is decided by their machines, never here.

use std::fmt;

use crate::words::words;

words! {
    /// Why a person is needed, in one word.
    AttentionReason {
        /// An agent or a run asks something, or a person must decide where a task goes.
        Question = "question",
        /// A gate of a run did not let it pass.
        Gate = "gate",
        /// Two statements or two changes do not fit together.
        Conflict = "conflict",
        /// A loop has used up its turns.
        LoopExhausted = "loop_exhausted",
        /// Something has taken longer than it may.
        Timeout = "timeout",
        /// A hook of a transition failed.
        HookFailed = "hook_failed",
        /// Finished work waits for a person's review.
        Review = "review",
        /// What is wanted is not clear yet.
        Clarification = "clarification",
        /// The task cannot go on by itself.
        Stuck = "stuck",
        /// An agent ended, and is not started again by itself.
        Crashed = "crashed",
        /// An agent could not be started.
        CannotStart = "cannot_start",
        /// The agent program shows a dialog and waits.
        Dialog = "dialog",
        /// The agent has been quiet for long.
        Quiet = "quiet",
        /// No worktree of the pool is free.
        PoolFull = "pool_full",
        /// Work could be lost.
        WorkAtRisk = "work_at_risk",
        /// The store, or what is stored, has a fault.
        Store = "store",
        /// No worker is there that could do a step.
        Worker = "worker",
    }
}

words! {
    /// Which channel says that a person is needed.
    AttentionChannel {
        /// The agent program's own protocol.
        Protocol = "protocol",
        /// A hook that the agent program runs.
        Hook = "hook",
        /// How a process ended.
        Exit = "exit",
        /// What stands on a terminal's screen. It may raise, and clears nothing.
        Screen = "screen",
        /// What the engine itself knows.
        Engine = "engine",
    }
}

impl AttentionChannel {
    /// How far it is trusted: a channel neither clears nor replaces what one with a higher rank has said.
    pub fn rank(self) -> u8 {
        match self {
            AttentionChannel::Protocol => 4,
            AttentionChannel::Hook => 3,
            AttentionChannel::Exit => 2,
            AttentionChannel::Screen => 1,
            AttentionChannel::Engine => 0,
        }
    }
}

words! {
    /// What a dialog of an agent program is about.
    DialogKind {
        /// Whether the folder is trusted.
        Trust = "trust",
        /// The program wants its user to log in.
        Login = "login",
        /// Whether the agent may do something.
        Permission = "permission",
        /// The agent asks its user something.
        Question = "question",
        /// The program offers a newer version of itself.
        Update = "update",
        /// A limit of use is reached.
        Limit = "limit",
        /// The program does not reach its model.
        Network = "network",
        /// Anything else that waits for a key.
        Other = "other",
    }
}

/// What is heard of a living session: whether its agent waits for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionSignal {
    /// The agent waits for a person.
    Waits {
        /// The kind of dialog that waits.
        what: DialogKind,
        /// The words of the dialog, or of the agent.
        text: String,
        /// The channel that says so.
        by: AttentionChannel,
    },
    /// The agent has printed nothing for so long.
    Quiet {
        /// How long it has been quiet, in seconds.
        seconds: u64,
    },
    /// The agent works again.
    Works {
        /// The channel that says so.
        by: AttentionChannel,
    },
}

impl SessionSignal {
    /// The channel that says it. Silence is what the engine itself has noticed.
    pub fn by(&self) -> AttentionChannel {
        match self {
            SessionSignal::Waits { by, .. } | SessionSignal::Works { by } => *by,
            SessionSignal::Quiet { .. } => AttentionChannel::Engine,
        }
    }

    /// What is true after `self` when `next` is heard; `None`: nothing has changed.
    pub fn after(before: Option<&SessionSignal>, next: &SessionSignal) -> Option<SessionSignal> {
        let is_stronger = |known: &SessionSignal| next.by().rank() >= known.by().rank();
        match (before, next) {
            (None, SessionSignal::Works { .. }) | (Some(SessionSignal::Works { .. }), SessionSignal::Works { .. }) => {
                None
            }
            // A screen shows what was printed, whichever program printed it.
            (Some(_), SessionSignal::Works { by: AttentionChannel::Screen }) => None,
            (Some(known), SessionSignal::Works { .. }) => is_stronger(known).then(|| next.clone()),
            (None | Some(SessionSignal::Works { .. }), SessionSignal::Waits { .. } | SessionSignal::Quiet { .. }) => {
                Some(next.clone())
            }
            // One silence is one signal, however long it lasts; and a dialog says more than a silence.
            (Some(_), SessionSignal::Quiet { .. }) => None,
            (Some(known), SessionSignal::Waits { .. }) => (known != next && is_stronger(known)).then(|| next.clone()),
        }
    }
}

impl fmt::Display for SessionSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SessionSignal::Waits { what, text, by } => {
                let perhaps = if *by == AttentionChannel::Screen { "perhaps " } else { "" };
                let text = if text.is_empty() { String::new() } else { format!(": {text}") };
                write!(f, "the agent {perhaps}waits for you ({}){text}", what.word())
            }
            SessionSignal::Quiet { seconds } => {
                write!(f, "the agent has printed nothing for {}", in_words(*seconds))
            }
            SessionSignal::Works { .. } => f.write_str("the agent works"),
        }
    }
}

/// A length of time in words, in its greatest whole unit.
fn in_words(seconds: u64) -> String {
    let (count, unit) = match seconds {
        0..60 => (seconds, "second"),
        60..3600 => (seconds / 60, "minute"),
        _ => (seconds / 3600, "hour"),
    };
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}
