//! Commands about the home itself: its log, its health, its copy, its end.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Show the event log, one line for each event
///
/// With --json each line is one JSON document.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sluice events --follow\n  sluice events --type 'task.*' --since 1h --json")]
pub(crate) struct EventsArgs {
    /// Show new events as they happen, until interrupted; earlier ones only with --since or --all
    #[arg(long)]
    pub(crate) follow: bool,
    /// With --follow, show all earlier events first
    #[arg(long, requires = "follow", conflicts_with = "since")]
    pub(crate) all: bool,
    /// Show only events of this type; `*` matches anything
    #[arg(long = "type", value_name = "GLOB")]
    pub(crate) kind: Option<String>,
    /// Show only events after this time (2026-11-15T12:00:00Z), or of the last 90s, 5m, 2h or 7d
    #[arg(long, value_name = "T")]
    pub(crate) since: Option<String>,
    /// Show only events of this task or run
    #[arg(long, value_name = "ID")]
    pub(crate) correlation: Option<String>,
}

/// Show all tasks and runs, whose turn it is, and what to press
///
/// The dashboard follows the engine and stays until `q`. `?` shows every key. With --once it prints the board and ends.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sluice dashboard\n  sluice dashboard --once --ascii")]
pub(crate) struct DashboardArgs {
    /// Print the board and end; also without a terminal
    #[arg(long)]
    pub(crate) once: bool,
    /// Show ASCII alone; NO_COLOR=1 in the environment shows no colours
    #[arg(long)]
    pub(crate) ascii: bool,
}

/// Say how many tasks and runs wait for you and how many are at work
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sluice status\n  sluice status --short    # for a status line: ▲4 ●5 $4.12")]
pub(crate) struct StatusArgs {
    /// Print one short line, for a status line of a shell or of tmux
    #[arg(long)]
    pub(crate) short: bool,
    /// Print ASCII characters alone
    #[arg(long)]
    pub(crate) ascii: bool,
}

/// Check that everything Sluice needs is there, and say what to do where it is not
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  sluice doctor --deep")]
pub(crate) struct DoctorArgs {
    /// Also read the whole store and verify its checksums; slow for a large store
    #[arg(long)]
    pub(crate) deep: bool,
}

/// Copy the store to a file while the engine runs
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  sluice backup ~/sluice-backup.db")]
pub(crate) struct BackupArgs {
    /// The file to write, which must not exist
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// Replace the store with a backup; the present store is kept beside it
///
/// Stops an engine that runs in the background; the next command starts another. Stop `sluice serve` yourself first.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  sluice restore ~/sluice-backup.db")]
pub(crate) struct RestoreArgs {
    /// The backup to restore, as `sluice backup` wrote it
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Accept a store.db whose log (store.db-wal) is lost; changes that were only in the log are lost
    #[arg(long)]
    pub(crate) without_log: bool,
}

/// Stop the engine; sessions keep running, and the next command that starts an engine finds them
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  sluice stop")]
pub(crate) struct StopArgs {}

/// Print completions for a shell
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  sluice completions bash > ~/.local/share/bash-completion/completions/sluice")]
pub(crate) struct CompletionsArgs {
    /// The shell to print completions for
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
        /// The agent program to install for; default: all that are found
        #[arg(long, value_name = "H")]
        harness: Option<String>,
    },
}

/// Test how Sluice tells you that something waits for you
///
/// `[notify]` in config.toml sets the channels: the desktop, a command, webhooks.
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  sluice notify test")]
pub(crate) enum NotifyCommand {
    /// Send a test message through every channel, and say what came of it
    ///
    /// Exits with 1 if a channel did not take the message.
    #[command(after_help = "Example:\n  sluice notify test --json")]
    Test {},
}

/// What Sluice calls itself with.
#[derive(Debug, Subcommand)]
pub(crate) enum InnerCommand {
    /// Run the engine in the background
    #[command(hide = true)]
    Engine,
    /// Run an agent or a script, and record how it ends
    #[command(hide = true)]
    Shim {
        /// The folder of the session, and further arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<std::ffi::OsString>,
    },
    /// Tell the engine what a hook of an agent program says; the program calls this, and is never held up or failed by it
    #[command(hide = true)]
    Hook {
        /// The agent program, and the session that it works in
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<std::ffi::OsString>,
    },
    /// Run the built-in scripted agent
    #[command(hide = true)]
    DemoAgent {
        /// The arguments that an agent program is given
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<std::ffi::OsString>,
    },
}
