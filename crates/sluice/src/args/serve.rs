//! Commands about the network: serving a home, and the tokens of those who ask.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use sluice_api::token::Scope;

/// Run the engine in the foreground, and serve its API over the network
///
/// Listens on the home's socket, as an engine in the background does, and on a network address. Requests over the
/// network need a token. Replaces an engine that runs in the background; running sessions go on. Ctrl-C, SIGTERM or
/// `sluice stop` ends it.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  sluice serve\n  sluice serve --listen 0.0.0.0:7433 --tls-cert chain.pem --tls-key key.pem\n\n\
    Then, from elsewhere:\n  SLUICE_URL=https://host:7433 SLUICE_TOKEN=… sluice task list"
)]
pub(crate) struct ServeArgs {
    /// The address to listen on; port 0 takes any free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7433")]
    pub(crate) listen: String,
    /// The store: sqlite:PATH or postgres://…; default: that of the home (also SLUICE_STORE)
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// A folder with the workflows of missions (`workflows/*.toml`) and their prompt files
    #[arg(long, value_name = "DIR")]
    pub(crate) prompts: Option<PathBuf>,
    /// The certificate chain in PEM; turns on TLS
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The private key of the certificate in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// The origin of web pages that may send requests from a browser, or `*`; default: none
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) cors: Option<String>,
}

/// Perform steps for an engine on another machine
///
/// Registers with the engine at this address as a worker of a project or a colony, performs the steps that the engine
/// assigns to it, and reports. The token comes from SLUICE_TOKEN (scope worker). Each step works in a worktree made from the
/// repository's remote, and its work is pushed back there. Reconnects by itself. The first Ctrl-C or SIGTERM lets the current
/// step finish; a second hands it back and exits.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  SLUICE_TOKEN=… sluice worker --connect https://host:7433 --project shop --role any\n  SLUICE_TOKEN=… sluice worker --connect https://host:7433 --colony qk3vm8rtw2 --role reviewer"
)]
#[command(group = clap::ArgGroup::new("whose").required(true))]
pub(crate) struct WorkerArgs {
    /// The address of the engine
    #[arg(long, value_name = "URL")]
    pub(crate) connect: String,
    /// The project whose runs to work on: those that `sluice start --workers` starts
    #[arg(long, value_name = "P", group = "whose")]
    pub(crate) project: Option<String>,
    /// The id of the colony whose missions to work on
    #[arg(long, value_name = "C", group = "whose")]
    pub(crate) colony: Option<String>,
    /// The role of the worker, which gets steps of this role; `any` gets every step
    #[arg(long, value_name = "R")]
    pub(crate) role: String,
    /// The name of the worker; one of the same name in this home is the same worker
    #[arg(long, value_name = "N")]
    pub(crate) name: Option<String>,
}

/// Print a link that opens the page in a browser, once
///
/// The link is for a browser on the engine's machine and opens within two minutes; the browser is then logged in for 12
/// hours. An engine that does not serve the network listens at a port of this machine alone while a link or such a session
/// is in force. With `SLUICE_URL` the link leads to that engine.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  sluice open\n  sluice open --read")]
pub(crate) struct OpenArgs {
    /// Let the browser look only: the page has no buttons
    #[arg(long)]
    pub(crate) read: bool,
}

/// Create, list and revoke tokens for access over the network
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  sluice token create --scope read --name dashboard")]
pub(crate) enum TokenCommand {
    /// Create a token; its secret is shown only this once
    #[command(
        after_help = "Examples:\n  sluice token create --scope person --name laptop --expires 30d\n  sluice token create --scope worker --colony qk3vm8rtw2 --role reviewer\n  sluice token create --scope agent --task 7f3k --json"
    )]
    Create {
        /// What the token allows; required
        #[arg(long, value_enum)]
        scope: Option<ScopeChoice>,
        /// A name for the token, for lists and events
        #[arg(long, value_name = "N")]
        name: Option<String>,
        /// The task that a token of scope agent speaks for
        #[arg(long, value_name = "ID")]
        task: Option<String>,
        /// The colony of a token of scope worker; default: the one that it first registers with
        #[arg(long, value_name = "C")]
        colony: Option<String>,
        /// The project of a token of scope worker, in place of a colony
        #[arg(long, value_name = "P", conflicts_with = "colony")]
        project: Option<String>,
        /// The only role that a token of scope worker can register as; default: any
        #[arg(long, value_name = "R")]
        role: Option<String>,
        /// How long the token is valid: 30d, 12h, 90m; default: without end
        #[arg(long, value_name = "D")]
        expires: Option<String>,
    },
    /// List the tokens, without their secrets
    #[command(after_help = "Example:\n  sluice token list")]
    List,
    /// Revoke a token, with immediate effect
    #[command(after_help = "Example:\n  sluice token revoke qk3vm8rtw2")]
    Revoke {
        /// The id of the token, as `sluice token list` shows it
        id: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScopeChoice {
    /// Everything that you may do yourself
    Person,
    /// What a worker of one colony or project needs
    Worker,
    /// What the agent of one task may do
    Agent,
    /// Reading, and nothing else
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
