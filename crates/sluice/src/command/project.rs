//! `sluice project`: said to the engine, and shown as a table.

use serde_json::json;
use sluice_api::client::escape;
use sluice_api::project::{Project, ProjectAnswer, ProjectChange, ProjectList};

use crate::args::{ProjectArgs, ProjectCommand};
use crate::engine::connect;
use crate::output::{CliExit, CliFailure, CliOutput, say};
use crate::table;

/// A longer setting is cut for people; `--json` has all of it.
const LONGEST_SETTING: usize = 200;

pub(crate) fn run(arguments: ProjectCommand, output: CliOutput) -> Result<CliExit, CliFailure> {
    match arguments {
        ProjectCommand::Add { path, name, flags } => {
            let path = std::path::absolute(path.unwrap_or_else(|| ".".into())).map_err(|error| {
                CliFailure::new(CliExit::Usage, "bad_path", format!("that path cannot be used: {error}"))
            })?;
            let change = change(flags, Some(path.display().to_string()), name);
            let answer: ProjectAnswer = connect()?.post("/v1/projects", &change)?;
            show(&answer.project, "added", output)
        }
        ProjectCommand::Update { name, path, new_name, flags } => {
            let path = path.and_then(|path| std::path::absolute(path).ok()).map(|path| path.display().to_string());
            let change = change(flags, path, new_name);
            let answer: ProjectAnswer = connect()?.patch(&format!("/v1/projects/{}", escape(&name)), &change)?;
            show(&answer.project, "changed", output)
        }
        ProjectCommand::List => list(&connect()?.get("/v1/projects")?, output),
        ProjectCommand::Remove { name } => {
            let answer: ProjectAnswer = connect()?.delete(&format!("/v1/projects/{}", escape(&name)))?;
            show(&answer.project, "removed", output)
        }
        ProjectCommand::Import { file } => {
            let no = |exit, code, why: String| {
                CliFailure::new(exit, code, format!("{} cannot be imported: {why}", file.display()))
                    .hint("name a projects.json: a list of projects, each with `name` and `path`")
            };
            let bytes = std::fs::read(&file).map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => no(CliExit::NotFound, "not_found", error.to_string()),
                _ => no(CliExit::Usage, "bad_file", error.to_string()),
            })?;
            let document: serde_json::Value =
                serde_json::from_slice(&bytes).map_err(|error| no(CliExit::Usage, "bad_file", error.to_string()))?;
            list(&connect()?.post("/v1/projects/import", &document)?, output)
        }
    }
}

fn change(flags: ProjectArgs, path: Option<String>, name: Option<String>) -> ProjectChange {
    let ProjectArgs { pool_size, workflow, default_branch, setup, setup_when, copy, link, teardown } = flags;
    ProjectChange { name, path, default_branch, pool_size, workflow, setup, setup_when, copy, link, teardown }
}

fn show(project: &Project, what: &str, output: CliOutput) -> Result<CliExit, CliFailure> {
    output.show(&json!({ "project": project }), || {
        let worktrees = if project.pool_size == 1 { "worktree" } else { "worktrees" };
        say(&format!("{what}: {} ({}), {} {worktrees}", project.name, project.path, project.pool_size));
        let commands = [("setup", &project.setup), ("teardown", &project.teardown)];
        let commands = commands.into_iter().filter_map(|(key, text)| Some((key, text.clone()?)));
        let paths = [("setup_when", &project.setup_when), ("copy", &project.copy), ("link", &project.link)];
        let paths = paths.into_iter().filter(|(_, paths)| !paths.is_empty()).map(|(key, all)| (key, all.join(", ")));
        for (key, text) in commands.chain(paths) {
            say(&format!("  {key}: {}", table::line(&text, LONGEST_SETTING)));
        }
    })
}

fn list(answer: &ProjectList, output: CliOutput) -> Result<CliExit, CliFailure> {
    output.show(answer, || {
        let rows = answer.projects.iter().map(|it| {
            let workflow = it.workflow.clone().unwrap_or_else(|| "default".into());
            vec![it.name.clone(), it.default_branch.clone(), it.pool_size.to_string(), workflow, it.path.clone()]
        });
        let none = "no projects; `sluice project add` adds this repository";
        table::print_or(none, &["project", "branch", "pool", "workflow", "path"], rows);
    })
}
