//! Commands about the network: serving a home, and the tokens of those who ask.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use sluice_api::token::Scope;

/// Run the engine in the foreground, and let others ask it over the network
///
/// Listens at the home's socket, as an engine in the background does, and at an address of the network. Whoever asks
/// there shows a token. An engine that runs in the background makes way; living sessions go on. It ends with Ctrl-C,
/// SIGTERM or `sluice stop`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  sluice serve\n  sluice serve --listen 0.0.0.0:7433 --tls-cert chain.pem --tls-key key.pem\n\n\
    Then, from elsewhere:\n  SLUICE_URL=https://host:7433 SLUICE_TOKEN=… sluice task list"
)]
pub(crate) struct ServeArgs {
    /// Where to listen; the port 0 takes any that is free
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7433")]
    pub(crate) listen: String,
    /// The store: sqlite:PATH or postgres://…; the home's own unless given (also SLUICE_STORE)
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// A folder with `workflows/*.toml`, and the files that their prompts are in
    #[arg(long, value_name = "DIR")]
    pub(crate) prompts: Option<PathBuf>,
    /// A certificate chain in PEM: then everything is encrypted
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The certificate's private key in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// The origin of pages that may ask from a browser, or `*`; none unless given
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) cors: Option<String>,
}

/// Work for an engine elsewhere
///
/// Registers with the engine at this address as a worker of a project or a colony, performs the steps that the engine
/// assigns to it, and reports. The token comes from SLUICE_TOKEN (scope worker). Each step works in a worktree made from the
/// repository's remote, and its work is pushed back there. Reconnects by itself. The first Ctrl-C or SIGTERM lets the current
/// step finish; a second hands it back and exits.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  SLUICE_TOKEN=… sluice worker --connect https://host:7433 --project shop --role any\n  SLUICE_TOKEN=… sluice worker --connect https://host:7433 --colony qk3vm8rtw2 --role reviewer"
)]
pub(crate) struct WorkerArgs {
    /// Where the engine is
    #[arg(long, value_name = "URL")]
    pub(crate) connect: String,
    /// The project whose runs it works on: those that `sluice start --workers` starts
    #[arg(long, value_name = "P", required_unless_present = "colony", conflicts_with = "colony")]
    pub(crate) project: Option<String>,
    /// The id of the colony whose missions it works on
    #[arg(long, value_name = "C")]
    pub(crate) colony: Option<String>,
    /// What it is; `any` does anything
    #[arg(long, value_name = "R")]
    pub(crate) role: String,
    /// What you call it: a worker of the same name in this home is the same worker
    #[arg(long, value_name = "N")]
    pub(crate) name: Option<String>,
}

/// Make, list and revoke the tokens of those who ask over the network
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  sluice token create --scope read --name dashboard")]
pub(crate) enum TokenCommand {
    /// Make a token; its secret is shown this once
    #[command(
        after_help = "Examples:\n  sluice token create --scope person --name laptop --expires 30d\n  sluice token create --scope worker --colony qk3vm8rtw2 --role reviewer\n  sluice token create --scope agent --task 7f3k --json"
    )]
    Create {
        /// What it allows; it must be said
        #[arg(long, value_enum)]
        scope: Option<ScopeChoice>,
        /// What you call it
        #[arg(long, value_name = "N")]
        name: Option<String>,
        /// The task that an agent's token speaks for
        #[arg(long, value_name = "ID")]
        task: Option<String>,
        /// The colony that a worker's token is bound to; unless given, the one that it first registers with
        #[arg(long, value_name = "C")]
        colony: Option<String>,
        /// The project that a worker's token is bound to, in place of a colony
        #[arg(long, value_name = "P", conflicts_with = "colony")]
        project: Option<String>,
        /// The only role that a worker's token can register as
        #[arg(long, value_name = "R")]
        role: Option<String>,
        /// How long it is good: 30d, 12h, 90m; for ever unless given
        #[arg(long, value_name = "D")]
        expires: Option<String>,
    },
    /// List the tokens, without their secrets
    #[command(after_help = "Example:\n  sluice token list")]
    List,
    /// End a token at once
    #[command(after_help = "Example:\n  sluice token revoke qk3vm8rtw2")]
    Revoke {
        /// Its id, as `sluice token list` shows it
        id: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScopeChoice {
    /// Everything, as you
    Person,
    /// What a worker of one colony needs
    Worker,
    /// What the worker of one task may do
    Agent,
    /// Reading
    Read,
}

impl From<ScopeChoice> for Scope {
    fn from(scope: ScopeChoice) -> Scope {
        match scope {
            ScopeChoice::Person => Scope::Person,
            ScopeChoice::Worker => Scope::Worker,
            ScopeChoice::Agent => Scope::Agent,
            ScopeChoice::Read => Scope::Read,
        }
    }
}
