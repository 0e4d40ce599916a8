//! Tokens, by which those are known who ask over the network.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::words::words;

words! {
    /// What a token allows.
    Scope {
        /// Everything, as the owner of the home.
        Person = "person",
        /// What a worker of one colony or project needs.
        Worker = "worker",
        /// What the worker of one task may do.
        Agent = "agent",
        /// Reading only: no request that changes something.
        Read = "read",
    }
}

/// The token to make.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateToken {
    /// What the token allows.
    pub scope: Scope,
    /// The name of the token, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The task that an agent's token speaks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The colony that a worker's token is bound to; default: the one that it first registers with. `project:NAME` binds
    /// the token to the workers of a project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub colony: Option<String>,
    /// The only role that a worker's token can register as; default: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// How long the token is valid: `30d`, `12h`, `90m`; default: without end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
}

/// A token as it is shown. Its secret is not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Token {
    /// The id, for revoking and in the log.
    pub id: String,
    /// The secret, only in the answer to its creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// What the token allows its bearer to do.
    pub scope: Scope,
    /// The name of the token, for people.
    pub name: Option<String>,
    /// The task that an agent's token speaks for.
    pub task: Option<String>,
    /// The colony that a worker's token is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub colony: Option<String>,
    /// The only role that a worker's token can register as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// When it was made.
    pub created_at: String,
    /// When it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// When it was revoked.
    pub revoked_at: Option<String>,
}

/// The answer with one token.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TokenAnswer {
    /// The token; right after it was made, with its secret.
    pub token: Token,
}

/// The answer with all tokens.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TokenList {
    /// The tokens, oldest first; the latest of those that were revoked or have expired too.
    pub tokens: Vec<Token>,
}
