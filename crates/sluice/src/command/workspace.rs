//! `sluice workspace`: said to the engine, and shown as tables.

use serde_json::{Value, json};
use sluice_api::client::escape;
use sluice_api::workspace::{
    AdoptStray, CollectWorkspaces, Collected, DropKept, DroppedKept, EndStray, Restore, WorkspaceList,
};
use sluice_worker::machine::units::written_size;

use crate::args::WorkspaceCommand;
use crate::command::task::confirm;
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
            let filter = project.map(|project| format!("&project={}", escape(&project))).unwrap_or_default();
            show(&connect()?.get(&format!("/v1/workspaces?sizes=true{filter}"))?, output)
        }
        WorkspaceCommand::Gc { project, dry_run, failed } => {
            let wanted = CollectWorkspaces { project, dry_run, failed, cwd: None };
            collected(&connect()?.post("/v1/workspaces/gc", &wanted)?, output)
        }
        WorkspaceCommand::End { session } => {
            show(&connect()?.post("/v1/workspaces/end", &EndStray { session })?, output)
        }
        WorkspaceCommand::Adopt { session, workflow, review_harness } => {
            let wanted = AdoptStray { session, workflow, review_harness };
            super::task::answered(&connect()?.post("/v1/workspaces/adopt", &wanted)?, output)
        }
        WorkspaceCommand::Drop { task, number, yes } => {
            let what = number.map_or_else(|| format!("what is kept of {task}"), |it| format!("copy {it} of {task}"));
            confirm(yes, ("workspace drop", &what), &format!("Drop {what}? It cannot be restored afterwards."))?;
            let answer: DroppedKept = connect()?.post("/v1/workspaces/drop", &DropKept { task, number })?;
            output.show(&answer, || {
                print(&format!("{}\n", answer.dropped.reference));
                say(&format!(
                    "it is gone; until git clears it away, `git -C {} branch NAME {}` brings it back",
                    answer.dropped.repository, answer.commit
                ));
            })
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
                let is_whole = list.kept.iter().any(|it| it.task == wanted.task);
                let is_of = |task: &str| if is_whole { task == wanted.task } else { task.starts_with(&wanted.task) };
                let kept = list.kept.iter().filter(|it| is_of(&it.task)).count();
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
    tell_worktrees(answer);
    tell_runs(answer);
    tell_scratch(answer);
    tell_leftovers(answer);
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
        let rows = answer.kept.iter().map(|it| {
            let place = if it.project.is_empty() { &it.repository } else { &it.project };
            vec![it.task.clone(), it.number.to_string(), place.clone(), it.at.clone(), it.what.clone()]
        });
        table::print(&["kept of", "number", "project", "at", "what"], rows);
        if let Some(bytes) = answer.kept_bytes {
            say(&format!("kept work takes {}; it stays unless `[retention] keeps` is set", written_size(bytes)));
        }
        say("`sluice workspace restore ID --into FOLDER` brings it back, `sluice workspace drop ID` drops it");
    }
    for room in answer.disk.iter().filter(|room| room.is_low) {
        let way = match room.is_short {
            true => "no new worktree is made until there is more",
            false => "`sluice workspace gc` removes what may go",
        };
        say(&format!("low disk: {} is free at {}; {way}", written_size(room.free_bytes), room.path));
    }
}

fn tell_worktrees(answer: &WorkspaceList) {
    if answer.workspaces.is_empty() && answer.runs.is_empty() {
        say("no worktrees; they are made when a task or run needs one");
    } else if !answer.workspaces.is_empty() {
        let rows = answer.workspaces.iter().map(|it| {
            let state = match (it.exists, it.dirty) {
                (false, _) => "not made",
                (true, true) => "changed",
                (true, false) => "clean",
            };
            let (task, branch) = (it.task.clone().unwrap_or_default(), it.branch.clone().unwrap_or_default());
            let size = if it.exists { size(it.size_bytes, it.size_over_bytes) } else { String::new() };
            vec![it.name.clone(), it.project.clone(), task, branch, state.into(), size, it.path.clone()]
        });
        table::print(&["workspace", "project", "task", "branch", "state", "size", "path"], rows);
    }
    for (name, doubt) in answer.workspaces.iter().filter_map(|it| it.doubt.as_ref().map(|doubt| (&it.name, doubt))) {
        say(&format!("{name}: {doubt}"));
    }
}

fn tell_runs(answer: &WorkspaceList) {
    if answer.runs.is_empty() {
        return;
    }
    if !answer.workspaces.is_empty() {
        print("\n");
    }
    let rows = answer.runs.iter().map(|it| {
        let state = match (&it.doubt, it.dirty) {
            (Some(_), _) => "not known",
            (None, true) => "changed",
            (None, false) => "clean",
        };
        let name = it.part.clone().unwrap_or_else(|| it.run.clone());
        let goes = it.goes_at.clone().unwrap_or_default();
        let size = size(it.size_bytes, it.size_over_bytes);
        vec![name, it.status.to_string(), state.into(), goes, size, it.path.clone()]
    });
    table::print(&["worktree of run", "status", "state", "goes at", "size", "path"], rows);
    for (path, doubt) in answer.runs.iter().filter_map(|it| it.doubt.as_ref().map(|doubt| (&it.path, doubt))) {
        say(&format!("{path}: {doubt}"));
    }
}

fn tell_scratch(answer: &WorkspaceList) {
    if answer.scratch.is_empty() {
        return;
    }
    print("\n");
    let rows = answer.scratch.iter().map(|it| {
        let status = it.status.map_or_else(|| "not known".to_owned(), |status| status.to_string());
        let goes = it.goes_at.clone().unwrap_or_default();
        vec![it.run.clone(), status, goes, size(it.size_bytes, it.size_over_bytes), it.path.clone()]
    });
    table::print(&["scratch folder of run", "status", "goes at", "size", "path"], rows);
}

fn tell_leftovers(answer: &WorkspaceList) {
    if answer.leftovers.is_empty() {
        return;
    }
    print("\n");
    let rows = answer.leftovers.iter().map(|it| {
        let owner = it.owner.clone().unwrap_or_default();
        vec![it.kind.word().into(), owner, size(it.size_bytes, it.size_over_bytes), it.path.clone()]
    });
    table::print(&["left over", "of", "size", "path"], rows);
    for it in &answer.leftovers {
        say(&format!("{}: {}", it.path, it.note));
    }
}

/// A size for a table; with `>` where not all of it was counted, and nothing where none was asked for.
fn size(bytes: Option<u64>, over: Option<u64>) -> String {
    match (bytes, over) {
        (Some(bytes), _) => written_size(bytes),
        (None, Some(over)) => format!("> {}", written_size(over)),
        (None, None) => String::new(),
    }
}

/// What was removed, or would be. What should be gone and is not makes the command fail.
fn collected(answer: &WorkspaceList, output: CliOutput) -> Result<CliExit, CliFailure> {
    let collected = answer.collected.clone().unwrap_or_default();
    output.show(answer, || tell_collected(&collected))?;
    Ok(if collected.failed.is_empty() { CliExit::Done } else { CliExit::Refused })
}

fn tell_collected(collected: &Collected) {
    if collected.removed.is_empty() {
        say("nothing to remove; `sluice workspace list` shows what there is");
    } else {
        let rows = collected.removed.iter().map(|it| {
            let (owner, kept) = (it.owner.clone().unwrap_or_default(), it.kept.clone().unwrap_or_default());
            vec![it.kind.clone(), owner, size(it.size_bytes, it.size_over_bytes), kept, it.path.clone()]
        });
        let head = if collected.dry_run { "would remove" } else { "removed" };
        table::print(&[head, "of", "size", "kept", "path"], rows);
    }
    for it in &collected.removed {
        if let (Some(owner), Some(number)) = (&it.owner, it.number) {
            say(&format!("`sluice workspace restore {owner} --number {number} --into FOLDER` brings its work back"));
        }
    }
    for it in collected.failed.iter().chain(&collected.later) {
        say(&format!("{} stays: {}", it.path, it.why));
    }
    let freed = written_size(collected.freed_bytes);
    say(&match collected.dry_run {
        true => format!("this would free {freed}; nothing was changed"),
        false => format!("{freed} freed"),
    });
}
