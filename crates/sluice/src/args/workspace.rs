//! `sluice workspace`: the worktrees that tasks are lent.

use std::path::PathBuf;

use clap::Subcommand;

/// Look after the worktrees that tasks are lent
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  sluice workspace list")]
pub(crate) enum WorkspaceCommand {
    /// Make all worktrees of a project now; they are made when they are needed otherwise
    #[command(after_help = "Example:\n  sluice workspace init --project coffee")]
    Init {
        /// The project; the one around the current folder unless given
        #[arg(long, value_name = "P")]
        project: Option<String>,
    },
    /// List worktrees, and work that was put away before something was cleared
    #[command(after_help = "Example:\n  sluice workspace list --json")]
    List {
        /// Only of this project
        #[arg(long, value_name = "P")]
        project: Option<String>,
    },
    /// Remove worktrees that no task has; what is in them is kept first
    #[command(after_help = "Example:\n  sluice workspace gc")]
    Gc {
        /// Only of this project
        #[arg(long, value_name = "P")]
        project: Option<String>,
    },
    /// End a living session that no task knows, as `sluice workspace list` and `sluice doctor` show it
    ///
    /// Such a session is left over when the store was lost or an older backup was restored. Its worktree is lent to
    /// nobody while it lives.
    #[command(after_help = "Example:\n  sluice workspace end k3f9.2")]
    End {
        /// Its name
        session: String,
    },
    /// Give a living session that no task knows its task back, as its TASK.md and its worktree say it was
    ///
    /// The agent goes on, and is watched as any other. The task is in the status in which its agent works; how often it
    /// was reviewed is not known any more. What judges the work is not taken from TASK.md, which the agent can change:
    /// the workflow is the project's, as the default branch has it committed, and the review harness is the home's.
    #[command(after_help = "Example:\n  sluice workspace adopt k3f9.2 --workflow careful")]
    Adopt {
        /// Its name
        session: String,
        /// The workflow of the task; the project's unless given
        #[arg(long, value_name = "NAME")]
        workflow: Option<String>,
        /// The harness that reviews it; the home's unless given
        #[arg(long, value_name = "NAME")]
        review_harness: Option<String>,
    },
    /// Bring back work that was put away
    #[command(after_help = "Example:\n  sluice workspace restore k3f9 --into ../rescued")]
    Restore {
        /// The task whose work it was
        task: String,
        /// Which keeping; the newest unless given
        #[arg(long, value_name = "N")]
        number: Option<u32>,
        /// The folder to put it into, which must not exist
        #[arg(long, value_name = "FOLDER")]
        into: PathBuf,
    },
}
