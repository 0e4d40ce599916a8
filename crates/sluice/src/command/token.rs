//! `sluice token`: said to the engine. A secret is printed once, to stdout, and nowhere else.

use serde_json::json;
use sluice_api::client::escape;
use sluice_api::token::{CreateToken, TokenAnswer, TokenList};

use crate::args::TokenCommand;
use crate::engine::connect;
use crate::output::{CliExit, CliFailure, CliOutput, print, print_json, say};
use crate::table;

pub(crate) fn run(arguments: TokenCommand, output: CliOutput) -> Result<CliExit, CliFailure> {
    match arguments {
        TokenCommand::Create { scope, name, task, colony, project, role, expires } => {
            let Some(scope) = scope else {
                return Err(CliFailure::new(CliExit::Usage, "no_scope", "it is not said what the token is to allow")
                    .hint("--scope read, agent, worker or person; person allows everything"));
            };
            let colony = colony.or_else(|| project.as_deref().map(sluice_api::work::project_group));
            let wanted = CreateToken { scope: scope.into(), name, task, colony, role, expires };
            let TokenAnswer { token } = connect()?.post("/v1/tokens", &wanted)?;
            match output {
                CliOutput::Json => print_json(&json!({ "token": token })),
                CliOutput::People => {
                    say(&format!("token {}, scope {}; its secret is shown this once:", token.id, token.scope.word()));
                    print(&format!("{}\n", token.secret.unwrap_or_default()));
                }
            }
        }
        TokenCommand::List => list(&connect()?.get("/v1/tokens")?, output),
        TokenCommand::Revoke { id } => {
            let TokenAnswer { token } = connect()?.delete(&format!("/v1/tokens/{}", escape(&id)))?;
            match output {
                CliOutput::Json => print_json(&json!({ "token": token })),
                CliOutput::People => say(&format!("token {} has been revoked", token.id)),
            }
        }
    }
    Ok(CliExit::Done)
}

fn list(answer: &TokenList, output: CliOutput) {
    match output {
        CliOutput::Json => print_json(&json!({ "tokens": answer.tokens })),
        CliOutput::People if answer.tokens.is_empty() => say("no tokens; `sluice token create` makes one"),
        CliOutput::People => {
            let rows = answer.tokens.iter().map(|it| {
                let text = |text: &Option<String>| text.clone().unwrap_or_default();
                let scope = it.scope.word().to_owned();
                let bound = it.task.as_ref().or(it.colony.as_ref()).cloned().unwrap_or_default();
                let (made, ends, revoked) = (it.created_at.clone(), text(&it.expires_at), text(&it.revoked_at));
                vec![it.id.clone(), scope, text(&it.name), bound, text(&it.role), made, ends, revoked]
            });
            table::print(&["token", "scope", "name", "for", "role", "created", "expires", "revoked"], rows);
        }
    }
}
