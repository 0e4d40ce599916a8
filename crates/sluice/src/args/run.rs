//! `sluice start`, `run`, `process`, `step`, `inbox`, `answer`: recipes at work.

use clap::{Args, Subcommand};

/// Start a recipe and follow it to its end
///
/// Exits with 0 when it completed, 1 when it failed, 10 when it waits for a person (`sluice inbox`).
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  sluice start release --input version=1.2.0\n  sluice start .sluice/grimoires/fix.yml --prompt \"Fix issue 6\" --detach"
)]
pub(crate) struct StartArgs {
    /// The recipe's name, or its file
    #[arg(value_name = "RECIPE|PATH")]
    pub(crate) recipe: String,
    /// An input; several can be given
    #[arg(long = "input", value_name = "K=V")]
    pub(crate) inputs: Vec<String>,
    /// What is wanted, in words; `-` reads them from stdin
    #[arg(long, value_name = "TEXT|-", allow_hyphen_values = true)]
    pub(crate) prompt: Option<String>,
    /// Start it in this project instead of here
    #[arg(long, value_name = "P")]
    pub(crate) project: Option<String>,
    /// What it is done for
    #[arg(long, value_name = "ID")]
    pub(crate) work_order: Option<String>,
    /// The agent program of steps that name none
    #[arg(long, value_name = "H")]
    pub(crate) harness: Option<String>,
    /// Let the project's workers do the steps (`sluice worker --project`), and not this machine
    #[arg(long)]
    pub(crate) workers: bool,
    /// Do not follow it; print its id
    #[arg(long)]
    pub(crate) detach: bool,
}

/// Look at runs, end them, try again
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  sluice run list --all")]
pub(crate) enum RunCommand {
    /// List runs, newest first
    #[command(after_help = "Example:\n  sluice run list --status held")]
    List {
        /// Only in this status: running, held, completed, failed, cancelled
        #[arg(long, value_name = "S")]
        status: Option<String>,
        /// Those that have ended as well
        #[arg(long)]
        all: bool,
    },
    /// Show one run
    #[command(after_help = "Example:\n  sluice run show k3f9 --json")]
    Show {
        /// The run, or the beginning of its id
        id: String,
    },
    /// Show the steps of a run
    #[command(after_help = "Example:\n  sluice run steps k3f9")]
    Steps {
        /// The run
        id: String,
    },
    /// Show what steps have printed
    #[command(after_help = "Example:\n  sluice run log k3f9 review")]
    Log {
        /// The run
        id: String,
        /// Only this step
        step: Option<String>,
    },
    /// Follow a run to its end
    #[command(after_help = "Example:\n  sluice run follow k3f9")]
    Follow {
        /// The run
        id: String,
    },
    /// End a run and everything it has started
    #[command(after_help = "Example:\n  sluice run cancel k3f9 --reason \"not needed any more\"")]
    Cancel {
        /// The run
        id: String,
        /// Why
        #[arg(long, value_name = "R", allow_hyphen_values = true)]
        reason: Option<String>,
    },
    /// Try a failed step again; the first that failed unless one is named
    #[command(after_help = "Example:\n  sluice run retry k3f9 implement --message \"Use the new API\"")]
    Retry {
        /// The run
        id: String,
        /// The step
        step: Option<String>,
        /// What its agent is told besides
        #[arg(long, value_name = "M", allow_hyphen_values = true)]
        message: Option<String>,
    },
    /// Show what the agent of a step is told about the steps before it
    #[command(after_help = "Example:\n  sluice run context k3f9 review")]
    Context {
        /// The run
        id: String,
        /// The step
        step: String,
    },
}

/// Processes: templates whose steps are done by whoever follows them
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  sluice process start worker-execute --work-order wo-7")]
pub(crate) enum ProcessCommand {
    /// Check a template and show what would be started
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
        /// What it is done for
        #[arg(long, value_name = "ID")]
        work_order: Option<String>,
    },
    /// List active processes
    #[command(after_help = "Example:\n  sluice process list")]
    List {
        /// Those that were completed as well
        #[arg(long)]
        all: bool,
    },
    /// Show one process
    #[command(after_help = "Example:\n  sluice process show k3f9")]
    Show {
        /// The process, or the beginning of its id
        id: String,
    },
    /// Show the steps of a process, and why each of them waits
    #[command(after_help = "Example:\n  sluice process steps k3f9")]
    Steps {
        /// The process
        id: String,
    },
    /// Complete a process and archive it; refused while a step is open
    #[command(after_help = "Example:\n  sluice process complete k3f9 --summary \"done and merged\"")]
    Complete {
        /// The process
        id: String,
        /// What came of it
        #[arg(long, value_name = "S", allow_hyphen_values = true)]
        summary: Option<String>,
    },
    /// Discard a process; it leaves every list
    #[command(after_help = "Example:\n  sluice process cancel k3f9 --reason \"not needed\"")]
    Cancel {
        /// The process
        id: String,
        /// Why
        #[arg(long, value_name = "R", allow_hyphen_values = true)]
        reason: Option<String>,
    },
    /// Report about a step: start, complete, fail or skip
    #[command(after_help = "Example:\n  sluice process step k3f9 implement complete --summary \"written\"")]
    Step {
        /// The process
        id: String,
        /// The step
        step: String,
        /// start, complete, fail or skip
        #[arg(value_parser = ["start", "complete", "fail", "skip"])]
        verb: String,
        /// What came of it
        #[arg(long, value_name = "S", allow_hyphen_values = true)]
        summary: Option<String>,
        /// The word that conditions read
        #[arg(long, value_name = "R", allow_hyphen_values = true)]
        result: Option<String>,
    },
}

/// What the agent of a step says about its own step
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  sluice step complete --summary \"all tests pass\" --result PASS")]
pub(crate) enum StepCommand {
    /// The work is done
    #[command(after_help = "Example:\n  sluice step complete --result PASS --output '{\"files\": 3}'")]
    Complete(StepOutcomeArgs),
    /// The work cannot be done
    #[command(after_help = "Example:\n  sluice step fail --summary \"the build is broken\"")]
    Fail(StepOutcomeArgs),
    /// Ask a person, and wait for the answer
    #[command(after_help = "Example:\n  sluice step ask \"Which database?\" --option postgres --option sqlite")]
    Ask {
        /// What
        text: String,
        /// What can be answered; any words unless given
        #[arg(long = "option", value_name = "O", allow_hyphen_values = true)]
        options: Vec<String>,
    },
}

/// How the work went.
#[derive(Debug, Args)]
pub(crate) struct StepOutcomeArgs {
    /// In a few words
    #[arg(long, value_name = "S", allow_hyphen_values = true)]
    pub(crate) summary: Option<String>,
    /// The word that conditions read
    #[arg(long, value_name = "R", allow_hyphen_values = true)]
    pub(crate) result: Option<String>,
    /// The value that variables read
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    pub(crate) output: Option<String>,
}

/// Show the questions that wait for a person
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  sluice inbox")]
pub(crate) struct InboxArgs {}

/// Answer a question
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  sluice answer k3f9/1 retry --message \"try with the new key\"")]
pub(crate) struct AnswerArgs {
    /// The question, or its run
    pub(crate) id: String,
    /// What is chosen
    pub(crate) option: String,
    /// And said
    #[arg(long, value_name = "M", allow_hyphen_values = true)]
    pub(crate) message: Option<String>,
}
