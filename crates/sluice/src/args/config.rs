//! Commands about the settings of a home.

use std::path::PathBuf;

use clap::Subcommand;

use super::ReportFormat;

/// Show, change and check the settings in config.toml
///
/// None of these commands needs an engine. An engine that runs uses a changed file the next time it needs a setting.
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  sluice config list\n  sluice config set defaults.harness claude\n  sluice config check"
)]
pub(crate) enum ConfigCommand {
    /// List every setting with its value, its default and where the value comes from
    #[command(after_help = "Example:\n  sluice config list --json")]
    List {},
    /// Print the value of one setting
    #[command(after_help = "Example:\n  sluice config get defaults.harness")]
    Get {
        /// The setting, such as `defaults.harness`
        #[arg(value_name = "KEY")]
        key: String,
    },
    /// Change one setting; comments and order of the file stay
    ///
    /// A value that would not load is refused, and the file stays as it is. The file is made if there is none.
    #[command(
        after_help = "Examples:\n  sluice config set workspaces.keep 12h\n  sluice config set env.allow '[\"DATABASE_URL\", \"MY_*\"]'\n  sluice config set env.set.RUST_LOG debug\n  sluice config set defaults.review_harness --unset"
    )]
    Set {
        /// The setting, such as `defaults.harness`
        #[arg(value_name = "KEY")]
        key: String,
        /// The new value; a list as in TOML: '["a", "b"]'
        #[arg(
            value_name = "VALUE",
            required_unless_present = "unset",
            conflicts_with = "unset",
            allow_hyphen_values = true
        )]
        value: Option<String>,
        /// Remove the setting from the file, so that its default counts
        #[arg(long)]
        unset: bool,
    },
    /// Report every problem in config.toml, with its place and what to do about it
    ///
    /// Exits with 1 if there is a problem, with 3 if FILE is missing, else with 0.
    #[command(
        after_help = "Examples:\n  sluice config check\n  sluice config check ~/dotfiles/sluice.toml --format sarif\n\n\
        `sluice workflow explain S0007` tells more about a code."
    )]
    Check {
        /// The file; default: that of the home
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// The format of the report
        #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
        format: ReportFormat,
    },
}
