//! `sluice harness`: the agent programs on this machine.

use std::path::PathBuf;

use clap::Subcommand;

/// See which agent programs are here, set one up, and try one out
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  sluice harness list")]
pub(crate) enum HarnessCommand {
    /// List the agent programs: where they are, in which version, and what a start would meet
    ///
    /// The answers are those for a start from this shell, in the repository around the current folder. `no` refuses a
    /// start and names the cure; `unknown` refuses nothing.
    #[command(after_help = "Examples:\n  sluice harness list\n  sluice harness list --all --json")]
    List {
        /// Also list programs that are not installed
        #[arg(long)]
        all: bool,
    },
    /// Do once what keeps an agent program from stopping at a question
    ///
    /// Shows which keys of the program's own configuration change, and asks. Everything else in these files stays. A login
    /// is for you to do; the command says how.
    #[command(
        after_help = "Examples:\n  sluice harness setup claude\n  sluice harness setup claude --project coffee --yes"
    )]
    Setup {
        /// The name of the harness
        program: String,
        /// The project whose repository the program shall trust; default: the repository around the current folder
        #[arg(long, value_name = "P")]
        project: Option<String>,
        /// Confirm, and do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Start an agent program for real and say what works: prompt, tools, result, tokens, signals
    ///
    /// The program runs twice, without a terminal and in one, in a scratch home and a scratch repository. Its model is a
    /// scripted one on this machine, so that nothing is paid and your own configuration is not used. Exits with 1 if
    /// something fails.
    #[command(
        after_help = "Examples:\n  sluice harness check claude\n  sluice harness check codex --json\n  sluice harness check gemini --dry\n\n\
        `--dry` starts it without a key and without a model, to see what it does then."
    )]
    Check {
        /// The name of the harness
        program: String,
        /// Start it without a key and without a model
        #[arg(long)]
        dry: bool,
        /// How long each of the two starts may take, in seconds
        #[arg(long, value_name = "SECONDS", default_value_t = 60)]
        within: u64,
        /// Keep what the program printed in files in this folder
        #[arg(long, value_name = "DIR")]
        record: Option<PathBuf>,
    },
}
