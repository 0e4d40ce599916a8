//! `sluice token`: said to the engine. A secret is printed once, to stdout, and nowhere else.

use serde_json::json;
use sluice_api::client::escape;
use sluice_api::token::{CreateToken, TokenAnswer, TokenList};

use crate::args::TokenCommand;
use crate::engine::connect;
use crate::output::{CliExit, CliFailure, CliOutput, print, say};
use crate::table;

pub(crate) fn run(arguments: TokenCommand, output: CliOutput) -> Result<CliExit, CliFailure> {
    match arguments {
        TokenCommand::Create { scope, name, task, colony, project, role, expires } => {
            let Some(scope) = scope else {
                return Err(CliFailure::new(CliExit::Usage, "no_scope", "the option `--scope` is missing")
                    .hint("add `--scope read`, `agent`, `worker` or `person`; `person` allows everything"));
            };
            let colony = colony.or_else(|| project.as_deref().map(sluice_api::work::project_group));
            let wanted = CreateToken { scope: scope.into(), name, task, colony, role, expires };
            let TokenAnswer { token } = connect()?.post("/v1/tokens", &wanted)?;
            output.show(&json!({ "token": token }), || {
                say(&format!("token {}, scope {}; its secret is shown this once:", token.id, token.scope.word()));
                print(&format!("{}\n", token.secret.as_deref().unwrap_or_default()));
            })
        }
        TokenCommand::List => list(&connect()?.get("/v1/tokens")?, output),
        TokenCommand::Revoke { id } => {
            let TokenAnswer { token } = connect()?.delete(&format!("/v1/tokens/{}", escape(&id)))?;
            output.show(&json!({ "token": token }), || say(&format!("token {} has been revoked", token.id)))
        }
    }
}

fn list(answer: &TokenList, output: CliOutput) -> Result<CliExit, CliFailure> {
    output.show(answer, || {
        let rows = answer.tokens.iter().map(|it| {
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            let scope = it.scope.word().to_owned();
            let bound = it.task.as_ref().or(it.colony.as_ref()).cloned().unwrap_or_default();
            let (made, ends, revoked) = (it.created_at.clone(), text(&it.expires_at), text(&it.revoked_at));
            vec![it.id.clone(), scope, text(&it.name), bound, text(&it.role), made, ends, revoked]
        });
        let heads = ["token", "scope", "name", "for", "role", "created", "expires", "revoked"];
        table::print_or("no tokens; `sluice token create` makes one", &heads, rows);
    })
}
