//! Commands about the home itself: its log, its health, its copy, its end.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Show what happened, a line for each event
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sluice events --follow\n  sluice events --type 'task.*' --since 1h --json")]
pub(crate) struct EventsArgs {
    /// Go on when there are no more, until interrupted
    #[arg(long)]
    pub(crate) follow: bool,
    /// Only of this type; `*` stands for anything
    #[arg(long = "type", value_name = "GLOB")]
    pub(crate) kind: Option<String>,
    /// Only after this: a time (2026-11-15T12:00:00Z) or how long ago (90s, 5m, 2h, 7d)
    #[arg(long, value_name = "T")]
    pub(crate) since: Option<String>,
    /// Only of this task or run
    #[arg(long, value_name = "ID")]
    pub(crate) correlation: Option<String>,
}

/// Look whether everything that Sluice needs is there, and say what to do where it is not
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  sluice doctor --deep")]
pub(crate) struct DoctorArgs {
    /// Read everything in the store and compare it with its sums; it takes longer the more there is
    #[arg(long)]
    pub(crate) deep: bool,
}

/// Copy the store to a file while the engine runs
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  sluice backup ~/sluice-backup.db")]
pub(crate) struct BackupArgs {
    /// The file, which must not exist
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// Put a copy of the store back; the present one is kept beside it
///
/// An engine in the background makes way, and the next command starts another; one that serves the network has to be
/// ended first.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  sluice restore ~/sluice-backup.db")]
pub(crate) struct RestoreArgs {
    /// The copy
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Take a store.db whose log (store.db-wal) is lost as it is: what stood only in the log is lost with it
    #[arg(long)]
    pub(crate) without_log: bool,
}

/// End the engine; sessions go on, and the next command takes them up again
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  sluice stop")]
pub(crate) struct StopArgs {}

/// Print completions for a shell
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  sluice completions bash > ~/.local/share/bash-completion/completions/sluice")]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

/// Install the skills that tell agents how to work with Sluice
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  sluice skill install --harness claude")]
pub(crate) enum SkillCommand {
    /// Put the skills where an agent program looks for them
    #[command(after_help = "Example:\n  sluice skill install --harness claude")]
    Install {
        /// For this agent program; for all that are installed unless given
        #[arg(long, value_name = "H")]
        harness: Option<String>,
    },
}

/// What Sluice calls itself with.
#[derive(Debug, Subcommand)]
pub(crate) enum InnerCommand {
    /// The engine, in the background
    #[command(hide = true)]
    Engine,
    /// The process around an agent
    #[command(hide = true)]
    Shim {
        /// The folder of its session
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<std::ffi::OsString>,
    },
    /// The scripted agent
    #[command(hide = true)]
    DemoAgent {
        /// Whatever it is given
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<std::ffi::OsString>,
    },
}
