//! Living sessions that nobody knows, and worktrees that somebody unknown has: the store was lost, or is older than they.
//!
//! They are shown, and ended when a person says so. Nothing is lent to anybody in which they live.

use std::path::Path;

use sluice_api::problem::{Problem, Status};
use sluice_api::workspace::Stray;
use sluice_worker::session::SessionId;
use sluice_worker::workspace::{State, WorkspaceName};

use crate::ground::{Ground, session_of};
use crate::projects::described;
use crate::rooms::is_over;
use crate::workbench::GRACE;

/// The living sessions that no open task and no run knows.
pub(crate) fn find(ground: &Ground) -> Result<Vec<Stray>, Problem> {
    let mut found = Vec::new();
    for (id, folder) in ground.sessions.at_work() {
        if !is_known(ground, &id)? {
            found.push(Stray { session: id.to_string(), path: folder.display().to_string() });
        }
    }
    Ok(found)
}

fn is_known(ground: &Ground, id: &SessionId) -> Result<bool, Problem> {
    if let Some((task, number)) = session_of(id) {
        let Some(seen) = ground.tasks.load(&task)? else { return Ok(false) };
        let agents = [seen.state.main.agent(), seen.state.beside.agent()];
        return Ok(agents.into_iter().flatten().any(|agent| agent.id == number));
    }
    let run = id.as_str().split_once('.').map_or(id.as_str(), |(run, _)| run);
    Ok(ground.tasks.load_run(run)?.is_some_and(|seen| seen.state.end.is_none()))
}

/// The worktrees of a pool in which somebody lives.
pub(crate) fn lived_in(ground: &Ground, pool: &Path) -> Vec<WorkspaceName> {
    let name = |folder: &Path| {
        let first = folder.strip_prefix(pool).ok()?.components().next()?;
        WorkspaceName::new(first.as_os_str().to_str()?).ok()
    };
    ground.sessions.at_work().iter().filter_map(|(_, folder)| name(folder)).collect()
}

/// Why it is not known whose a worktree is. `task` is the open task that has it.
pub(crate) fn doubt(ground: &Ground, state: &State, task: Option<&str>) -> Option<String> {
    match (&state.binding, task) {
        (Some(binding), None) if !is_over(ground, &binding.task) => Some(format!(
            "it was lent to task {}, which cannot be read, and is lent to nobody else; look at `sluice doctor`",
            binding.task
        )),
        (Some(binding), None) => Some(format!(
            "it was lent to task {}, which is not open; its work is kept before the worktree is lent again",
            binding.task
        )),
        (Some(binding), Some(task)) if binding.task != task => {
            Some(format!("task {task} has it, and it was lent to task {}", binding.task))
        }
        (Some(_), Some(_)) | (None, _) => None,
    }
}

/// Ends one of them.
pub(crate) fn end(ground: &Ground, session: &str) -> Result<(), Problem> {
    let none = || {
        Problem::not_found(format!("there is no living session `{session}`"))
            .hint("`sluice workspace list` shows those that no task knows")
    };
    let id = SessionId::new(session).map_err(|_| none())?;
    if !ground.sessions.is_living(&id) {
        return Err(none());
    }
    if is_known(ground, &id)? {
        let message = format!("the session `{session}` is at work for its task or run");
        return Err(Problem::new(Status::Refused, "session_alive", message).hint("cancel the task or the run instead"));
    }
    ground
        .sessions
        .end(&id, GRACE, "a person ended it: no task knows it")
        .map_err(|failure| Problem::unavailable(described(&failure)).hint("end its process, and look again"))?;
    Ok(())
}
