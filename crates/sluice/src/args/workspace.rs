//! `sluice workspace`: the worktrees of tasks and runs, and what is left of them.

use std::path::PathBuf;

use clap::Subcommand;

/// Manage the worktrees that tasks and runs work in
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  sluice workspace list")]
pub(crate) enum WorkspaceCommand {
    /// Create all worktrees of a project now instead of when they are needed
    #[command(after_help = "Example:\n  sluice workspace init --project coffee")]
    Init {
        /// The project; default: the one around the current folder
        #[arg(long, value_name = "P")]
        project: Option<String>,
    },
    /// List the worktrees of tasks and runs, saved work, what is left over, and the room that each takes on the disk
    ///
    /// Saved work is what was in a worktree before it was cleared. What is left over belongs to no known task or run.
    #[command(after_help = "Example:\n  sluice workspace list --json")]
    List {
        /// List only worktrees of this project
        #[arg(long, value_name = "P")]
        project: Option<String>,
    },
    /// Remove worktrees that no task has, checkouts of runs that have ended, and leftovers; work in them is saved first
    ///
    /// The checkout of a failed run stays, because the run can be retried. A checkout without a known run stays for ten
    /// minutes, and as long as an agent lives in it.
    #[command(after_help = "Examples:\n  sluice workspace gc --dry-run\n  sluice workspace gc --failed")]
    Gc {
        /// Remove only worktrees of this project
        #[arg(long, value_name = "P")]
        project: Option<String>,
        /// Say what would be removed, and change nothing
        #[arg(long)]
        dry_run: bool,
        /// Remove the checkouts of failed runs too; a retry makes a new one from the branch of the run
        #[arg(long)]
        failed: bool,
    },
    /// End a running session that belongs to no task
    ///
    /// Such a session is left over when the store was lost or an older backup was restored. Its worktree is not lent to
    /// a task while the session runs.
    #[command(after_help = "Example:\n  sluice workspace end k3f9.2")]
    End {
        /// The name of the session, as `sluice workspace list` shows it
        session: String,
    },
    /// Recreate the task of a running session that belongs to no task, from its TASK.md and worktree
    ///
    /// The agent keeps running. The task gets the status in which its agent works; how often it was reviewed is lost.
    /// The agent can change TASK.md, so what judges the work is not taken from there: the lifecycle is that of the
    /// project, as committed in the default branch, and the review harness is that of config.toml.
    #[command(after_help = "Example:\n  sluice workspace adopt k3f9.2 --workflow careful")]
    Adopt {
        /// The name of the session, as `sluice workspace list` shows it
        session: String,
        /// The lifecycle of the task; default: that of the project
        #[arg(long, value_name = "NAME")]
        workflow: Option<String>,
        /// The agent program that reviews the task; default: that of config.toml
        #[arg(long, value_name = "NAME")]
        review_harness: Option<String>,
    },
    /// Drop saved work that is not wanted any more, for good
    #[command(after_help = "Example:\n  sluice workspace drop k3f9 --number 2 --yes")]
    Drop {
        /// The task or run that the work belongs to, or the beginning of its id
        task: String,
        /// The number of the saved work, as `sluice workspace list` shows it; needed if there is more than one
        #[arg(long, value_name = "N")]
        number: Option<u32>,
        /// Drop it without asking first
        #[arg(long)]
        yes: bool,
    },
    /// Restore work that was saved before a worktree was cleared
    #[command(after_help = "Example:\n  sluice workspace restore k3f9 --into ../rescued")]
    Restore {
        /// The task or run that the work belongs to, or the beginning of its id
        task: String,
        /// The number of the saved work, as `sluice workspace list` shows it; default: the newest
        #[arg(long, value_name = "N")]
        number: Option<u32>,
        /// The folder to restore into, which must not exist
        #[arg(long, value_name = "FOLDER")]
        into: PathBuf,
    },
}
