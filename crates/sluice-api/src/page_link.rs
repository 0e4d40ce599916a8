//! The link that opens the page in a browser, on the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::token::Scope;

/// The link that is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MakePageLink {
    /// What the browser may do: `person` (the default) or `read`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
}

/// A link that opens the page once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PageLinkAnswer {
    /// The whole link, for a browser on the engine's machine. It opens once.
    pub url: String,
    /// The same without scheme and host, for a browser that reaches the engine by another name.
    pub path: String,
    /// When the link ends if it is not opened, in RFC 3339 (UTC).
    pub expires_at: String,
}
