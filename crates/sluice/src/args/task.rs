//! `sluice task`: pieces of work with a lifecycle.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use sluice_api::task::CreateTask;
use sluice_dialect::duration;

/// Create, watch, move and merge tasks
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  sluice task create fix-login \"Fix the login\" && sluice task list")]
pub(crate) enum TaskCommand {
    Create(TaskCreateArgs),
    /// List tasks, oldest first
    #[command(after_help = "Examples:\n  sluice task list --status reviewing\n  sluice task list --watch")]
    List {
        /// List only tasks in this status
        #[arg(long, value_name = "S")]
        status: Option<String>,
        /// List only tasks of this project
        #[arg(long, value_name = "P")]
        project: Option<String>,
        /// Also list tasks that have ended
        #[arg(long)]
        all: bool,
        /// Show the list again whenever something happens, until interrupted
        #[arg(long)]
        watch: bool,
    },
    /// Show everything about one task
    #[command(after_help = "Example:\n  sluice task show k3f9")]
    Show(TaskIdArg),
    /// Show the events of a task, oldest first
    #[command(after_help = "Example:\n  sluice task history k3f9")]
    History(TaskIdArg),
    /// Show what a task has changed: in the commits of its branch, and uncommitted in its worktree
    #[command(after_help = "Examples:\n  sluice task diff k3f9\n  sluice task diff fix-login --stat")]
    Diff(DiffArgs),
    /// Show what a task's agent printed last, as text; of a living one that draws a screen, the screen
    #[command(after_help = "Examples:\n  sluice task log k3f9 --lines 50\n  sluice task log k3f9 --follow")]
    Log {
        /// The id of the task, its beginning, or its branch
        id: String,
        /// The most lines to show, from the end
        #[arg(long, value_name = "N", default_value_t = 200)]
        lines: usize,
        /// Then show what it prints, until it ends
        #[arg(long)]
        follow: bool,
    },
    /// Open a task's worktree in $VISUAL or $EDITOR
    #[command(after_help = "Examples:\n  sluice task open k3f9\n  cd \"$(sluice task open k3f9 --print)\"")]
    Open {
        /// The id of the task, its beginning, or its branch
        id: String,
        /// Print the path of the worktree, and open nothing
        #[arg(long)]
        print: bool,
    },
    /// Print the text of a task's TASK.md below its frontmatter, now or at an earlier version
    #[command(
        after_help = "Examples:\n  sluice task file k3f9\n  sluice task file k3f9 --list\n  sluice task file k3f9 --at 3 > before.md"
    )]
    File {
        /// The id of the task, its beginning, or its branch
        id: String,
        /// Print this earlier version, by its number in --list
        #[arg(long, value_name = "N", conflicts_with = "list")]
        at: Option<usize>,
        /// List the versions that were kept
        #[arg(long)]
        list: bool,
    },
    Update(TaskUpdateArgs),
    /// Wait until a task reaches a status, has ended, or needs a person
    ///
    /// Exits with 0 if the task reached the status, 10 if a person has to do something first, 1 if the task ended in
    /// another status, and 6 if the time is over.
    #[command(
        after_help = "Example:\n  sluice task wait k3f9 --status reviewing --timeout 2h && sluice task merge k3f9"
    )]
    Wait {
        /// The id of the task, its beginning, or its branch
        id: String,
        /// A status to wait for; can be repeated; default: the end of the task
        #[arg(long = "status", value_name = "S")]
        statuses: Vec<String>,
        /// How long to wait, such as 90s, 5m or 1h30m; default: without end
        #[arg(long, value_name = "D", value_parser = length)]
        timeout: Option<Duration>,
    },
    /// Start the agent of a task that waits
    #[command(after_help = "Example:\n  sluice task spawn k3f9")]
    Spawn(TaskIdArg),
    /// Start the agent of a task again, in its present status
    #[command(after_help = "Example:\n  sluice task respawn k3f9")]
    Respawn(TaskIdArg),
    /// Attach this terminal to a task's session
    #[command(after_help = "Example:\n  sluice task attach k3f9    (leave it with Ctrl-b d)")]
    Attach(TaskIdArg),
    /// Push a task's branch and open a pull request
    #[command(after_help = "Example:\n  sluice task create-pr k3f9")]
    CreatePr(TaskIdArg),
    /// Cancel a task; uncommitted work is saved
    #[command(after_help = "Example:\n  sluice task cancel k3f9 --yes")]
    Cancel(TaskEndArgs),
    /// Delete a task: cancel it if open, and hide it from lists; unmerged work is saved
    #[command(after_help = "Example:\n  sluice task delete k3f9 --yes")]
    Delete(TaskEndArgs),
    Merge(TaskMergeArgs),
    /// Let a task pass from where it stands
    ///
    /// Merges the task where a merge leads to its end, with the checks of `task merge`. Elsewhere moves the task along
    /// the only transition that brings it nearer to its end; if there are several, names them.
    #[command(after_help = "Example:\n  sluice task approve k3f9 --message \"Good work\"")]
    Approve(TaskJudgeArgs),
    /// Send a task back to its worker; a message is added to TASK.md
    ///
    /// Takes the transition that `task request-changes` takes. If the lifecycle has none, names the one to add.
    #[command(after_help = "Example:\n  sluice task reject k3f9 --message \"The tests do not cover the error\"")]
    Reject(TaskJudgeArgs),
    /// Send a task back to its worker; the message is added to TASK.md
    #[command(after_help = "Example:\n  sluice task request-changes k3f9 --message \"Keep the old flag working\"")]
    RequestChanges {
        /// The id of the task, its beginning, or its branch
        id: String,
        /// What the worker is to change
        #[arg(long, value_name = "M", allow_hyphen_values = true, value_parser = own_words)]
        message: String,
    },
    /// Type a text into the session of a task's agent
    #[command(after_help = "Example:\n  sluice task nudge k3f9 \"Are you still there?\"")]
    Nudge {
        /// The id of the task, its beginning, or its branch
        id: String,
        /// The text to type into the session
        #[arg(required = true)]
        text: Vec<String>,
    },
}

// These have no words about themselves: they would stand in place of those of the commands that take them.
#[derive(Debug, Args)]
pub(crate) struct TaskIdArg {
    /// The id of the task, its beginning, or its branch
    pub(crate) id: String,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// The id, or its beginning; a task can also be named by its branch
    pub(crate) id: String,
    /// Show only the files and their numbers of lines
    #[arg(long)]
    pub(crate) stat: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TaskEndArgs {
    /// The id of the task, its beginning, or its branch
    pub(crate) id: String,
    /// Do not ask for confirmation
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TaskJudgeArgs {
    /// The id of the task, its beginning, or its branch
    pub(crate) id: String,
    /// What to say about it; added to TASK.md as `## Feedback`
    #[arg(long, value_name = "M", allow_hyphen_values = true, value_parser = own_words)]
    pub(crate) message: Option<String>,
}

/// Create a task and start its agent
///
/// Without a summary, the agent first asks what to do. If all worktrees of the project are in use, the task waits for
/// a free one.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  sluice task create fix-login \"Fix the login\"\n  sluice task create docs Write the manual --workflow persistent --context - < notes.md"
)]
pub(crate) struct TaskCreateArgs {
    /// The branch to work on; default: a new one
    #[arg(value_name = "BRANCH")]
    pub(crate) branch: Option<String>,
    /// What is to be done, in one line
    #[arg(value_name = "SUMMARY")]
    pub(crate) summary: Vec<String>,
    /// The project; default: the one around the current folder
    #[arg(long, value_name = "P")]
    pub(crate) project: Option<String>,
    /// The lifecycle that the task follows; default: that of the project
    #[arg(long, value_name = "W")]
    pub(crate) workflow: Option<String>,
    /// The agent program that does the work
    #[arg(long, value_name = "H")]
    pub(crate) harness: Option<String>,
    /// The agent program that reviews it
    #[arg(long, value_name = "H")]
    pub(crate) review_harness: Option<String>,
    /// A text for TASK.md to start with; `-` reads it from stdin
    #[arg(long, value_name = "TEXT|-", allow_hyphen_values = true)]
    pub(crate) context: Option<String>,
    /// The status to start in: pending, clarification, agent-review or reviewing
    #[arg(long, value_name = "S")]
    pub(crate) status: Option<String>,
    /// Do not start the agent of the task
    #[arg(long)]
    pub(crate) no_spawn: bool,
}

impl TaskCreateArgs {
    /// The task as it is asked for. The caller's folder and environment are not known here.
    pub(crate) fn wanted(self) -> CreateTask {
        let TaskCreateArgs { branch, summary, project, workflow, harness, review_harness, context, status, no_spawn } =
            self;
        let summary = summary.join(" ");
        let cwd = None;
        CreateTask { project, cwd, branch, summary, workflow, harness, review_harness, context, status, no_spawn }
    }
}

/// Change the status, branch or summary of a task
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  sluice task update --status agent-review       (inside a workspace)\n  sluice task update k3f9 --summary \"Fix the login page\""
)]
#[command(group = clap::ArgGroup::new("change").required(true).multiple(true))]
pub(crate) struct TaskUpdateArgs {
    /// The id of the task, its beginning, or its branch; default inside a workspace: the task that has it
    pub(crate) id: Option<String>,
    /// The status to move the task to
    #[arg(long, value_name = "S", group = "change")]
    pub(crate) status: Option<String>,
    /// The new branch of the task; without a name, the one that is checked out in its workspace
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "", group = "change")]
    pub(crate) branch: Option<String>,
    /// The new summary, in one line
    #[arg(long, value_name = "TEXT", group = "change", allow_hyphen_values = true)]
    pub(crate) summary: Option<String>,
}

/// Merge a task's branch into the default branch, and close the task
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  sluice task merge k3f9 --local")]
pub(crate) struct TaskMergeArgs {
    /// The id of the task, its beginning, or its branch
    pub(crate) id: String,
    /// Merge in the local repository, even if the task has a pull request
    #[arg(long)]
    pub(crate) local: bool,
    /// How to merge; default: a fast-forward if possible, else a merge commit
    #[arg(long, value_enum)]
    pub(crate) strategy: Option<StrategyChoice>,
    /// Merge even if the verdict is FAIL or older than the work, and without uncommitted changes
    #[arg(long)]
    pub(crate) force: bool,
    /// Commit the uncommitted changes in the workspace first
    #[arg(long)]
    pub(crate) commit: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StrategyChoice {
    /// Fast-forward only; fails if the default branch has new commits
    Ff,
    /// Merge with a merge commit
    Merge,
    /// Squash all changes into one commit
    Squash,
    /// Rebase the commits onto the default branch
    Rebase,
}

/// Words of a person's own. `TEXT` is where they belong in a command that Sluice suggests.
pub(crate) fn own_words(text: &str) -> Result<String, String> {
    match text {
        "TEXT" => Err("`TEXT` stands for your own words: write them in its place, in quotes".to_owned()),
        words => Ok(words.to_owned()),
    }
}

/// A length of time as people write it.
pub(super) fn length(text: &str) -> Result<Duration, String> {
    duration::read(text, Duration::MAX).map_err(|error| format!("{error}; {}", duration::FORMS))
}
