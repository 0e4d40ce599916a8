//! `sluice start`, `run`, `process`, `step`, `inbox`, `answer`: recipes at work.

use std::time::Duration;

use clap::{Args, Subcommand};

use super::task::{DiffArgs, StrategyChoice, length, own_words};

/// Start a run of a recipe, and follow it to its end
///
/// Exits with 0 when the run completed, 1 when it failed, 10 when it waits for a person (`sluice inbox`).
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  sluice start release --input version=1.2.0\n  sluice start .sluice/grimoires/fix.yml --prompt \"Fix issue 6\" --detach"
)]
pub(crate) struct StartArgs {
    /// The recipe's name, or its file
    #[arg(value_name = "RECIPE|PATH")]
    pub(crate) recipe: String,
    /// An input of the recipe; can be repeated
    #[arg(long = "input", value_name = "K=V")]
    pub(crate) inputs: Vec<String>,
    /// What the run is to do, in plain text; `-` reads it from stdin
    #[arg(long, value_name = "TEXT|-", allow_hyphen_values = true)]
    pub(crate) prompt: Option<String>,
    /// Start the run in this project instead of the current folder
    #[arg(long, value_name = "P")]
    pub(crate) project: Option<String>,
    /// The work order that the run is done for
    #[arg(long, value_name = "ID")]
    pub(crate) work_order: Option<String>,
    /// The agent program for steps that name none
    #[arg(long, value_name = "H")]
    pub(crate) harness: Option<String>,
    /// Let the project's workers (`sluice worker --project`) perform the steps, and not this machine
    #[arg(long)]
    pub(crate) workers: bool,
    /// Do not follow the run; print its id and exit
    #[arg(long)]
    pub(crate) detach: bool,
}

/// Show, follow, cancel and retry runs
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  sluice run list --all")]
pub(crate) enum RunCommand {
    /// List runs, newest first
    #[command(after_help = "Examples:\n  sluice run list --status held\n  sluice run list --watch")]
    List {
        /// List only runs in this status: running, held, completed, failed, cancelled
        #[arg(long, value_name = "S")]
        status: Option<String>,
        /// Also list runs that have ended
        #[arg(long)]
        all: bool,
        /// Show the list again whenever something happens, until interrupted
        #[arg(long)]
        watch: bool,
    },
    /// Show one run and its steps
    #[command(after_help = "Example:\n  sluice run show k3f9 --json")]
    Show(RunIdArg),
    /// Show the steps of a run
    #[command(after_help = "Example:\n  sluice run steps k3f9")]
    Steps(RunIdArg),
    /// Show what the steps of a run printed
    #[command(after_help = "Examples:\n  sluice run log k3f9 review\n  sluice run log k3f9 --follow")]
    Log {
        /// The id of the run, or its beginning
        id: String,
        /// Show only the output of this step
        step: Option<String>,
        /// Then show what its agents print, until the run has ended
        #[arg(long)]
        follow: bool,
    },
    /// Show what a run has changed: in the commits of its branch, and uncommitted in its worktree
    #[command(after_help = "Example:\n  sluice run diff k3f9 --stat")]
    Diff(DiffArgs),
    /// Merge the branch of a run that has ended into the default branch
    #[command(after_help = "Example:\n  sluice run merge k3f9 --strategy squash")]
    Merge {
        /// The id of the run, or its beginning
        id: String,
        /// Merge in the local repository, even if the branch has a pull request
        #[arg(long)]
        local: bool,
        /// How to merge; default: a fast-forward if possible, else a merge commit
        #[arg(long, value_enum)]
        strategy: Option<StrategyChoice>,
        /// Merge without uncommitted changes, and even if the run failed or was cancelled
        #[arg(long)]
        force: bool,
    },
    /// Delete a run: cancel it if open, and hide it from lists; commits on its branch stay
    #[command(after_help = "Example:\n  sluice run delete k3f9 --yes")]
    Delete {
        /// The id of the run, or its beginning
        id: String,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Follow a run to its end
    #[command(after_help = "Example:\n  sluice run follow k3f9")]
    Follow(RunIdArg),
    /// Wait until a run has ended or needs a person
    ///
    /// Exits with 0 if the run is complete, 10 as soon as a person is needed, 1 if the run failed or was cancelled, and 6
    /// if the time is over.
    #[command(after_help = "Example:\n  sluice run wait k3f9 --timeout 2h || sluice inbox")]
    Wait {
        /// The id of the run, or its beginning
        id: String,
        /// How long to wait, such as 90s, 5m or 1h30m; default: without end
        #[arg(long, value_name = "D", value_parser = length)]
        timeout: Option<Duration>,
    },
    /// Cancel a run, and end every process that it has started
    #[command(after_help = "Example:\n  sluice run cancel k3f9 --reason \"not needed any more\"")]
    Cancel {
        /// The id of the run, or its beginning
        id: String,
        /// The reason, for the history of the run
        #[arg(long, value_name = "R", allow_hyphen_values = true)]
        reason: Option<String>,
    },
    /// Retry a failed step
    #[command(after_help = "Example:\n  sluice run retry k3f9 implement --message \"Use the new API\"")]
    Retry {
        /// The id of the run, or its beginning
        id: String,
        /// The step to retry; default: the first that failed
        step: Option<String>,
        /// A message to add to the prompt of its agent
        #[arg(long, value_name = "M", allow_hyphen_values = true, value_parser = own_words)]
        message: Option<String>,
    },
    /// Show what the prompt of a step contains about the steps before it
    #[command(after_help = "Example:\n  sluice run context k3f9 review")]
    Context {
        /// The id of the run, or its beginning
        id: String,
        /// The name of the step
        step: String,
    },
}

// No words about itself: they would stand in place of those of the commands that take it.
#[derive(Debug, Args)]
pub(crate) struct RunIdArg {
    /// The id of the run, or its beginning
    pub(crate) id: String,
}

/// Start processes: templates whose steps you do and report yourself
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  sluice process start worker-execute --work-order wo-7")]
pub(crate) enum ProcessCommand {
    /// Check a template, and show the process that it would start
    #[command(after_help = "Example:\n  sluice process compile worker-execute")]
    Compile {
        /// The template's name, or its file
        template: String,
    },
    /// Start a process; its steps are reported with `sluice process step`
    #[command(after_help = "Example:\n  sluice process start worker-execute --work-order wo-7")]
    Start {
        /// The template's name, or its file
        template: String,
        /// The work order that the process is done for
        #[arg(long, value_name = "ID")]
        work_order: Option<String>,
    },
    /// List active processes, oldest first
    #[command(after_help = "Example:\n  sluice process list")]
    List {
        /// Also list processes that are complete
        #[arg(long)]
        all: bool,
    },
    /// Show one process and its steps
    #[command(after_help = "Example:\n  sluice process show k3f9")]
    Show(ProcessIdArg),
    /// Show the steps of a process, and why each of them waits
    #[command(after_help = "Example:\n  sluice process steps k3f9")]
    Steps(ProcessIdArg),
    /// Complete a process and archive it; refused while a step is open
    #[command(after_help = "Example:\n  sluice process complete k3f9 --summary \"done and merged\"")]
    Complete {
        /// The id of the process, or its beginning
        id: String,
        /// What came of the process, in a few words
        #[arg(long, value_name = "S", allow_hyphen_values = true)]
        summary: Option<String>,
    },
    /// Cancel a process, and remove it from every list
    #[command(after_help = "Example:\n  sluice process cancel k3f9 --reason \"not needed\"")]
    Cancel {
        /// The id of the process, or its beginning
        id: String,
        /// The reason, for the history of the process
        #[arg(long, value_name = "R", allow_hyphen_values = true)]
        reason: Option<String>,
    },
    /// Report that a step has started, is complete, has failed or is skipped
    #[command(after_help = "Example:\n  sluice process step k3f9 implement complete --summary \"written\"")]
    Step {
        /// The id of the process, or its beginning
        id: String,
        /// The name of the step
        step: String,
        /// What to report: start, complete, fail or skip
        #[arg(value_parser = ["start", "complete", "fail", "skip"])]
        verb: String,
        /// What came of the step, in a few words
        #[arg(long, value_name = "S", allow_hyphen_values = true)]
        summary: Option<String>,
        /// The word that conditions of later steps read, such as PASS
        #[arg(long, value_name = "R", allow_hyphen_values = true)]
        result: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ProcessIdArg {
    /// The id of the process, or its beginning
    pub(crate) id: String,
}

/// Report on the step that you perform (for agents)
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  sluice step complete --summary \"all tests pass\" --result PASS")]
pub(crate) enum StepCommand {
    /// Report that the step is complete
    #[command(after_help = "Example:\n  sluice step complete --result PASS --output '{\"files\": 3}'")]
    Complete(StepOutcomeArgs),
    /// Report that the step has failed
    #[command(after_help = "Example:\n  sluice step fail --summary \"the build is broken\"")]
    Fail(StepOutcomeArgs),
    /// Ask a person, and wait for the answer
    #[command(after_help = "Example:\n  sluice step ask \"Which database?\" --option postgres --option sqlite")]
    Ask {
        /// The question to ask
        text: String,
        /// An option to offer; can be repeated; default: any text is accepted
        #[arg(long = "option", value_name = "O", allow_hyphen_values = true)]
        options: Vec<String>,
        /// The answer to take when the time is over
        #[arg(long, value_name = "O", allow_hyphen_values = true, requires = "timeout")]
        default: Option<String>,
        /// How long to wait for a person, such as 30m; default: without end
        #[arg(long, value_name = "D", value_parser = length, requires = "default")]
        timeout: Option<Duration>,
    },
}

/// The outcome of a step, as its agent reports it.
#[derive(Debug, Args)]
pub(crate) struct StepOutcomeArgs {
    /// What came of the step, in a few words
    #[arg(long, value_name = "S", allow_hyphen_values = true)]
    pub(crate) summary: Option<String>,
    /// The word that conditions of later steps read, such as PASS
    #[arg(long, value_name = "R", allow_hyphen_values = true)]
    pub(crate) result: Option<String>,
    /// The value that variables of later steps read
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    pub(crate) output: Option<String>,
}

/// Show everything that waits for a person, and the command that answers it
///
/// Questions of runs, reviews, crashed and stuck tasks, dialogs of agent programs, and what else nothing moves but you.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sluice inbox\n  sluice inbox --watch")]
pub(crate) struct InboxArgs {
    /// Show it again whenever something happens, until interrupted
    #[arg(long)]
    pub(crate) watch: bool,
}

/// Answer something that waits for a person
///
/// A question of a run takes its options. A task takes what is possible for it now: approve, request-changes, respawn,
/// retry, the name of a state, attach, dismiss or cancel.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  sluice answer k3f9/1 retry --message \"try with the new key\"\n  sluice answer k3f9 approve"
)]
pub(crate) struct AnswerArgs {
    /// The id that `sluice inbox` shows, or that of the task or run if only one thing of it waits
    pub(crate) id: String,
    /// The answer: one of those that `sluice inbox` shows
    #[arg(value_parser = own_words)]
    pub(crate) option: String,
    /// A comment to go with it
    #[arg(long, value_name = "M", allow_hyphen_values = true, value_parser = own_words)]
    pub(crate) message: Option<String>,
}
