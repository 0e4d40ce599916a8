//! `sluice task`: pieces of work with a lifecycle.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use sluice_dialect::duration;

/// Create, watch, move and merge tasks
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  sluice task create fix-login \"Fix the login\" && sluice task list")]
pub(crate) enum TaskCommand {
    Create(TaskCreateArgs),
    /// List tasks, oldest first
    #[command(after_help = "Example:\n  sluice task list --status reviewing")]
    List {
        /// Only in this status
        #[arg(long, value_name = "S")]
        status: Option<String>,
        /// Only of this project
        #[arg(long, value_name = "P")]
        project: Option<String>,
        /// Those that have ended as well
        #[arg(long)]
        all: bool,
    },
    /// Show one task
    #[command(after_help = "Example:\n  sluice task show k3f9")]
    Show {
        /// The task, or the beginning of its id
        id: String,
    },
    /// Show everything that happened to a task
    #[command(after_help = "Example:\n  sluice task history k3f9")]
    History {
        /// The task
        id: String,
    },
    /// Print what stands below the frontmatter of a task's TASK.md, now or earlier
    #[command(
        after_help = "Examples:\n  sluice task file k3f9\n  sluice task file k3f9 --list\n  sluice task file k3f9 --at 3 > before.md"
    )]
    File {
        /// The task
        id: String,
        /// An earlier version, by its number
        #[arg(long, value_name = "N", conflicts_with = "list")]
        at: Option<usize>,
        /// Show which versions there are
        #[arg(long)]
        list: bool,
    },
    Update(TaskUpdateArgs),
    /// Wait until a task is in one of these statuses, has ended, or needs a person
    ///
    /// The exit code is 0 if it is where it is wanted, 10 if a person has to do something first, 1 if it ended elsewhere, and
    /// 6 if the time is over.
    #[command(
        after_help = "Example:\n  sluice task wait k3f9 --status reviewing --timeout 2h && sluice task merge k3f9"
    )]
    Wait {
        /// The task
        id: String,
        /// A status to wait for; several can be given. Without it: until it has ended
        #[arg(long = "status", value_name = "S")]
        statuses: Vec<String>,
        /// How long, as in 90s, 5m or 1h30m; without end unless given
        #[arg(long, value_name = "D", value_parser = length)]
        timeout: Option<Duration>,
    },
    /// Start a task that waits
    #[command(after_help = "Example:\n  sluice task spawn k3f9")]
    Spawn {
        /// The task
        id: String,
    },
    /// Start the agent of a task's state again
    #[command(after_help = "Example:\n  sluice task respawn k3f9")]
    Respawn {
        /// The task
        id: String,
    },
    /// Look into a task's session, and type there
    #[command(after_help = "Example:\n  sluice task attach k3f9    (leave it with Ctrl-b d)")]
    Attach {
        /// The task
        id: String,
    },
    /// Push a task's branch and open a pull request
    #[command(after_help = "Example:\n  sluice task create-pr k3f9")]
    CreatePr {
        /// The task
        id: String,
    },
    /// Give a task up; what is not committed is kept
    #[command(after_help = "Example:\n  sluice task cancel k3f9 --yes")]
    Cancel {
        /// The task
        id: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Cancel a task if it is open, and remove it from every list; what is not merged is kept
    #[command(after_help = "Example:\n  sluice task delete k3f9 --yes")]
    Delete {
        /// The task
        id: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    Merge(TaskMergeArgs),
    /// Ask the worker for changes; the message goes to TASK.md
    #[command(after_help = "Example:\n  sluice task request-changes k3f9 --message \"Keep the old flag working\"")]
    RequestChanges {
        /// The task
        id: String,
        /// What is to be changed
        #[arg(long, value_name = "M", allow_hyphen_values = true)]
        message: String,
    },
    /// Type a text into a task's session
    #[command(after_help = "Example:\n  sluice task nudge k3f9 \"Are you still there?\"")]
    Nudge {
        /// The task
        id: String,
        /// The text
        #[arg(required = true)]
        text: Vec<String>,
    },
}

/// Create a task and start its agent
///
/// Without a summary the task needs to be clarified first. When all worktrees of the project are in use the task waits,
/// and is next in line.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  sluice task create fix-login \"Fix the login\"\n  sluice task create docs Write the manual --workflow persistent --context - < notes.md"
)]
pub(crate) struct TaskCreateArgs {
    /// The branch to work on; one of its own unless given
    #[arg(value_name = "BRANCH")]
    pub(crate) branch: Option<String>,
    /// What is to be done, in one line
    #[arg(value_name = "SUMMARY")]
    pub(crate) summary: Vec<String>,
    /// The project; the one around the current folder unless given
    #[arg(long, value_name = "P")]
    pub(crate) project: Option<String>,
    /// The lifecycle; the project's unless given
    #[arg(long, value_name = "W")]
    pub(crate) workflow: Option<String>,
    /// The agent program that does the work
    #[arg(long, value_name = "H")]
    pub(crate) harness: Option<String>,
    /// The agent program that reviews it
    #[arg(long, value_name = "H")]
    pub(crate) review_harness: Option<String>,
    /// What TASK.md says from the start; `-` reads it from standard input
    #[arg(long, value_name = "TEXT|-", allow_hyphen_values = true)]
    pub(crate) context: Option<String>,
    /// Start in this status instead: pending, clarification, agent-review or reviewing
    #[arg(long, value_name = "S")]
    pub(crate) status: Option<String>,
    /// Do not start its agent
    #[arg(long)]
    pub(crate) no_spawn: bool,
}

/// Move a task, or change what it is about
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  sluice task update --status agent-review       (inside a workspace)\n  sluice task update k3f9 --summary \"Fix the login page\""
)]
#[command(group = clap::ArgGroup::new("change").required(true).multiple(true))]
pub(crate) struct TaskUpdateArgs {
    /// The task; inside a workspace the one that has it
    pub(crate) id: Option<String>,
    /// Move it there
    #[arg(long, value_name = "S", group = "change")]
    pub(crate) status: Option<String>,
    /// It has another branch: this, or the one that is checked out in its workspace
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "", group = "change")]
    pub(crate) branch: Option<String>,
    /// It has another summary
    #[arg(long, value_name = "TEXT", group = "change", allow_hyphen_values = true)]
    pub(crate) summary: Option<String>,
}

/// Merge a task's branch into the default branch, and close the task
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  sluice task merge k3f9 --local")]
pub(crate) struct TaskMergeArgs {
    /// The task
    pub(crate) id: String,
    /// Merge here, whatever a pull request says
    #[arg(long)]
    pub(crate) local: bool,
    /// How; a fast-forward if possible, else a merge commit, unless given
    #[arg(long, value_enum)]
    pub(crate) strategy: Option<StrategyChoice>,
    /// Even against the verdict, or if the work changed after it, or without what is not committed
    #[arg(long)]
    pub(crate) force: bool,
    /// Commit what lies in the workspace first
    #[arg(long)]
    pub(crate) commit: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StrategyChoice {
    /// Only if nothing else was merged meanwhile
    Ff,
    /// With a merge commit
    Merge,
    /// As one commit with all of it
    Squash,
    /// Commit by commit, made anew on the default branch
    Rebase,
}

impl StrategyChoice {
    pub(crate) fn word(self) -> &'static str {
        match self {
            StrategyChoice::Ff => "ff",
            StrategyChoice::Merge => "merge",
            StrategyChoice::Squash => "squash",
            StrategyChoice::Rebase => "rebase",
        }
    }
}

/// A length of time as people write it.
fn length(text: &str) -> Result<Duration, String> {
    duration::read(text, Duration::MAX).map_err(|error| format!("{error}; {}", duration::FORMS))
}
