//! `sluice workspace`: said to the engine, and shown as tables.

use serde_json::{Value, json};
use sluice_api::client::escape;
use sluice_api::workspace::{AdoptStray, EndStray, Restore, WorkspaceList};

use crate::args::WorkspaceCommand;
use crate::engine::connect;
use crate::output::{CliExit, CliFailure, CliOutput, print, say};
use crate::table;

pub(crate) fn run(arguments: WorkspaceCommand, output: CliOutput) -> Result<CliExit, CliFailure> {
    match arguments {
        WorkspaceCommand::Init { project } => {
            let here = std::env::current_dir().ok().map(|here| here.display().to_string());
            show(&connect()?.post("/v1/workspaces/init", &json!({ "project": project, "cwd": here }))?, output)
        }
        WorkspaceCommand::List { project } => {
            let filter = project.map(|project| format!("?project={}", escape(&project))).unwrap_or_default();
            show(&connect()?.get(&format!("/v1/workspaces{filter}"))?, output)
        }
        WorkspaceCommand::Gc { project } => {
            show(&connect()?.post("/v1/workspaces/gc", &json!({ "project": project }))?, output)
        }
        WorkspaceCommand::End { session } => {
            show(&connect()?.post("/v1/workspaces/end", &EndStray { session })?, output)
        }
        WorkspaceCommand::Adopt { session, workflow, review_harness } => {
            let wanted = AdoptStray { session, workflow, review_harness };
            super::task::answered(&connect()?.post("/v1/workspaces/adopt", &wanted)?, output)
        }
        WorkspaceCommand::Restore { task, number, into } => {
            let into = std::path::absolute(&into).unwrap_or(into).display().to_string();
            let client = connect()?;
            let wanted = Restore { task, number, into };
            let answer: Value = client.post("/v1/workspaces/restore", &wanted)?;
            output.show(&answer, || {
                print(&format!("{}\n", answer["path"].as_str().unwrap_or_default()));
                // It is brought back, whatever becomes of this question.
                let list: WorkspaceList = client.get("/v1/workspaces").unwrap_or_default();
                let kept = list.kept.iter().filter(|it| it.task.starts_with(&wanted.task)).count();
                if number.is_none() && kept > 1 {
                    say(&format!(
                        "this is the newest of {kept} that are kept for it; `sluice workspace list` shows them, and \
                         `--number N` brings another back"
                    ));
                }
            })
        }
    }
}

fn show(answer: &WorkspaceList, output: CliOutput) -> Result<CliExit, CliFailure> {
    output.show(answer, || tell(answer))
}

fn tell(answer: &WorkspaceList) {
    if answer.workspaces.is_empty() {
        say("no worktrees; they are made when a task needs one");
    } else {
        let rows = answer.workspaces.iter().map(|it| {
            let state = match (it.exists, it.dirty) {
                (false, _) => "not made",
                (true, true) => "changed",
                (true, false) => "clean",
            };
            let (task, branch) = (it.task.clone().unwrap_or_default(), it.branch.clone().unwrap_or_default());
            vec![it.name.clone(), it.project.clone(), task, branch, state.into(), it.path.clone()]
        });
        table::print(&["workspace", "project", "task", "branch", "state", "path"], rows);
    }
    for (name, doubt) in answer.workspaces.iter().filter_map(|it| it.doubt.as_ref().map(|doubt| (&it.name, doubt))) {
        say(&format!("{name}: {doubt}"));
    }
    if !answer.strays.is_empty() {
        print("\n");
        table::print(
            &["session that no task knows", "path"],
            answer.strays.iter().map(|it| vec![it.session.clone(), it.path.clone()]),
        );
        say("`sluice workspace adopt SESSION` gives it its task back, `sluice workspace end SESSION` ends it");
    }
    if !answer.kept.is_empty() {
        print("\n");
        let rows = answer
            .kept
            .iter()
            .map(|it| vec![it.task.clone(), it.number.to_string(), it.project.clone(), it.at.clone(), it.what.clone()]);
        table::print(&["kept of", "number", "project", "at", "what"], rows);
        say("`sluice workspace restore TASK --into FOLDER` brings it back");
    }
}
