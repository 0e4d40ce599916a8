//! Living sessions that nobody knows, and worktrees that somebody unknown has: the store was lost, or is older than they.
//!
//! They are shown, and ended or given a task when a person says so. Nothing is lent to anybody in which they live.

use std::path::PathBuf;

use sluice_api::problem::{Problem, ProblemStatus};
use sluice_api::project::Project;
use sluice_api::task::CreateTask;
use sluice_api::workspace::{AdoptStray, Stray};
use sluice_core::id::TaskId;
use sluice_core::machine::RefusalCode;
use sluice_core::task::TaskKey;
use sluice_engine::reactor::EventRange;
use sluice_os::session::SessionId;
use sluice_os::taskfile::{self, ParsedTaskFile};
use sluice_os::workspace::{WorkspaceName, WorkspacePool, WorkspaceState, task_file};

use crate::definitions::committed::DefinitionSite;
use crate::home::engine::refusal;
use crate::home::reservations::is_over;
use crate::home::{Home, session_of};
use crate::perform::GRACE;
use crate::settings::projects::git;
use crate::start::{create_task, usual_reviewer};
use crate::undone::described;

/// The living sessions that no open task and no run knows.
pub(crate) fn find(home: &Home) -> Result<Vec<Stray>, Problem> {
    let mut found = Vec::new();
    for (id, folder) in home.context.sessions.at_work() {
        if !is_known(home, &id)? {
            found.push(Stray { session: id.to_string(), path: folder.display().to_string() });
        }
    }
    Ok(found)
}

fn is_known(home: &Home, id: &SessionId) -> Result<bool, Problem> {
    if let Some((task, number)) = session_of(id) {
        let Some(seen) = home.tasks.load(&task)? else { return Ok(false) };
        let agents = [seen.state.main.agent(), seen.state.beside.agent()];
        return Ok(agents.into_iter().flatten().any(|agent| agent.id == number));
    }
    let run = id.as_str().split_once('.').map_or(id.as_str(), |(run, _)| run);
    let Ok(run) = run.parse() else { return Ok(false) };
    Ok(home.tasks.load_run(&run)?.is_some_and(|seen| seen.state.end.is_none()))
}

/// Why it is not known whose a worktree is. `task` is the open task that has it.
pub(crate) fn doubt(home: &Home, state: &WorkspaceState, task: Option<&TaskId>) -> Option<String> {
    match (&state.binding, task) {
        (Some(binding), None) if !is_over(home, &binding.task) => Some(format!(
            "it was lent to task {}, which cannot be read, and is lent to no other task; see `sluice doctor`",
            binding.task
        )),
        (Some(binding), None) => Some(format!(
            "it was lent to task {}, which is not open; its work is kept before the worktree is lent again, \
             or removed by `sluice workspace gc`",
            binding.task
        )),
        (Some(binding), Some(task)) if binding.task != task.as_str() => {
            Some(format!("task {task} has it, and it was lent to task {}", binding.task))
        }
        (Some(_), Some(_)) | (None, _) => None,
    }
}

/// Makes a task for one of them: the one that it was, as its TASK.md and its worktree say. What judges its work is a
/// person's to say, and the project's and the home's: the file is the agent's to change. Gives its id.
pub(crate) fn adopt(home: &Home, asked: &AdoptStray) -> Result<(TaskId, EventRange), Problem> {
    let session = asked.session.as_str();
    let id = living(home, session)?;
    let refused = |why: String| {
        let hint = format!("`sluice workspace end {session}` ends it; its work is kept");
        Err(refusal(RefusalCode::NotReady, why).hint(hint))
    };
    let Some((task, number)) = session_of(&id) else {
        return refused(format!("the session `{session}` is that of a run, and a run is not begun in the middle"));
    };
    if home.tasks.load(&task)?.is_some() {
        return refused(format!("there is a task {task}, and `{session}` is no session that it knows"));
    }
    let folder = home.context.sessions.at_work().into_iter().find(|(it, _)| *it == id).map(|(_, folder)| folder);
    let Some((project, pool, folder)) = folder.and_then(|folder| lent(home, folder)) else {
        return refused(format!("the session `{session}` works in no worktree of a project"));
    };
    let bytes = taskfile::read(&task_file(&folder)).unwrap_or_default();
    let file = ParsedTaskFile::parse(&bytes, TaskKey::WORDS);
    let said = |key: &str| file.value(key).filter(|value| !value.trim().is_empty());
    let name = WorkspaceName::new(&folder.file_name().unwrap_or_default().to_string_lossy());
    let bound = name.and_then(|name| pool.lent_to(&name)).map_err(|error| git(&error))?;
    let wanted = CreateTask {
        project: Some(project.name),
        branch: bound.map(|binding| binding.branch).or_else(|| said("branch")),
        summary: said("summary").unwrap_or_default(),
        workflow: asked.workflow.clone(),
        harness: said("harness"),
        review_harness: Some(asked.review_harness.clone().unwrap_or_else(|| usual_reviewer(home))),
        context: Some(file.body_text().into_owned()),
        // Elsewhere than in these it works as one that has just begun.
        status: said("status").filter(|status| ["clarification", "agent-review"].contains(&status.as_str())),
        ..CreateTask::default()
    };
    let created = create_task(home, &task, &wanted, DefinitionSite::Commit, Some(number.0))?;
    Ok((task, created))
}

/// The project whose worktree this is, or is in.
fn lent(home: &Home, folder: PathBuf) -> Option<(Project, WorkspacePool, PathBuf)> {
    home.projects.list().into_iter().find_map(|project| {
        let pool = home.projects.pool(&project).ok()?;
        let first = folder.strip_prefix(pool.root()).ok()?.components().next()?;
        let folder = pool.root().join(first);
        Some((project, pool, folder))
    })
}

pub(crate) fn end(home: &Home, session: &str) -> Result<(), Problem> {
    let id = living(home, session)?;
    home.context
        .sessions
        .end(&id, GRACE, "a person ended it: no task knows it")
        .map_err(|failure| Problem::unavailable(described(&failure)).hint("end its process, and look again"))?;
    Ok(())
}

fn living(home: &Home, session: &str) -> Result<SessionId, Problem> {
    let none = || {
        Problem::not_found(format!("there is no living session `{session}`"))
            .hint("`sluice workspace list` shows those that no task knows")
    };
    let id = SessionId::new(session).map_err(|_| none())?;
    if !home.context.sessions.is_living(&id) {
        return Err(none());
    }
    if is_known(home, &id)? {
        let message = format!("the session `{session}` is at work for its task or run");
        return Err(
            Problem::new(ProblemStatus::Refused, "session_alive", message).hint("cancel the task or the run instead")
        );
    }
    Ok(id)
}
