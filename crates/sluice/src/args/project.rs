//! `sluice project`: repositories whose tasks are kept.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Add, change and list projects: the repositories that agents work on
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  cd ~/code/coffee && sluice project add --pool-size 4")]
pub(crate) enum ProjectCommand {
    /// Add a repository as a project
    #[command(after_help = "Example:\n  sluice project add ~/code/coffee --name coffee --workflow persistent")]
    Add {
        /// The main checkout; default: the repository around the current folder
        #[arg(value_name = "PATH")]
        path: Option<PathBuf>,
        /// The name of the project; default: the folder's name
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        flags: ProjectArgs,
    },
    /// Change the settings of a project
    #[command(after_help = "Examples:\n  sluice project update coffee --pool-size 6\n  \
        sluice project update coffee --setup 'npm ci' --setup-when package-lock.json --copy .env --link .cache")]
    #[command(group = clap::ArgGroup::new("change").required(true).multiple(true)
        .args(["path", "new_name", "pool_size", "workflow", "default_branch", "setup", "setup_when", "copy", "link", "teardown"]))]
    Update {
        /// The name of the project
        name: String,
        /// The new folder of its main checkout
        #[arg(long, value_name = "PATH")]
        path: Option<PathBuf>,
        /// The new name of the project
        #[arg(long = "name", value_name = "N")]
        new_name: Option<String>,
        #[command(flatten)]
        flags: ProjectArgs,
    },
    /// List the projects of this home
    #[command(after_help = "Example:\n  sluice project list --json")]
    List,
    /// Remove a project from Sluice; its repository stays as it is
    #[command(after_help = "Example:\n  sluice project remove coffee")]
    Remove {
        /// The name of the project
        name: String,
    },
    /// Add the projects of a projects.json file
    #[command(after_help = "Example:\n  sluice project import ~/orange/projects.json")]
    Import {
        /// The projects.json file to read
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

/// What can be set of a project.
#[derive(Debug, Args)]
pub(crate) struct ProjectArgs {
    /// How many worktrees the project has at most, and so how many tasks work at once
    #[arg(long, value_name = "K")]
    pub(crate) pool_size: Option<usize>,
    /// The lifecycle of tasks that name none
    #[arg(long, value_name = "W")]
    pub(crate) workflow: Option<String>,
    /// The branch that work starts from and is merged into
    #[arg(long, value_name = "B")]
    pub(crate) default_branch: Option<String>,
    /// The shell command that makes a fresh worktree ready, such as `npm ci`; an empty text: none
    #[arg(long, value_name = "COMMAND")]
    pub(crate) setup: Option<String>,
    /// Run the set-up again in a worktree whose file PATH has changed; may be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) setup_when: Option<Vec<String>>,
    /// Copy untracked files of the main checkout into each worktree, such as `.env`; a path or pattern; may be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) copy: Option<Vec<String>>,
    /// Link an untracked folder or file of the main checkout into each worktree; a path or pattern; may be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) link: Option<Vec<String>>,
    /// The shell command that runs in a worktree before it is removed; an empty text: none
    #[arg(long, value_name = "COMMAND")]
    pub(crate) teardown: Option<String>,
}
