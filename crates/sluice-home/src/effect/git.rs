//! Worktrees, branches and pull requests, for a task.

use std::path::Path;
use std::sync::Arc;

use sluice_core::task::input::{TaskEffectOutcome, TaskEffectProduct};
use sluice_core::task::state::WorktreePath;
use sluice_os::forge::{Forge, PullRequestProposal};
use sluice_os::git::{Git, GitError, RemoteBranchDeletion};
use sluice_os::taskfile;
use sluice_os::workspace::{WorkspaceBinding, task_file};

use super::EffectResult;
use crate::home::lending::is_half_given_back;
use crate::home::{Home, judged, pool_name, room};
use crate::read::files;
use crate::read::tasks::TaskSnapshot;
use crate::settings::projects::shown;
use crate::undone::{PerformError, described};

/// Binds a worktree and puts TASK.md into it.
pub(super) fn acquire(home: &Arc<Home>, seen: &TaskSnapshot, reserved: Option<&WorktreePath>) -> EffectResult {
    let (_, pool) = home.pool_of(seen)?;
    let Some(name) = reserved.or_else(|| seen.state.workspace.bound()) else {
        return Err("all worktrees of the project are in use".into());
    };
    let number = pool_name(&name.0)?;
    let binding = WorkspaceBinding { branch: seen.state.about.branch.clone(), task: seen.id.to_string() };
    room::must_be_there(home, &pool.folder(&number))?;
    // Where it was lent on, the home has had the file since, and the branch stood at this commit.
    let lent = seen.state.lent.as_ref();
    let base = lent.map(|lent| lent.commit.0.as_str());
    if lent.is_some() && is_half_given_back(&pool, &number, &seen.id)? {
        pool.release(&number, seen.id.as_str()).map_err(PerformError::by)?;
    }
    let acquired = pool.acquire(&number, &binding, base).map_err(|error| match error {
        GitError::NoCommit { .. } => {
            PerformError::from(format!("{}; then `sluice task spawn {}` begins it", described(&error), seen.id))
        }
        error => PerformError::by(error),
    })?;
    if let Some(aside) = &acquired.set_aside {
        let was = acquired.folder.display();
        tracing::warn!(task = seen.id.as_str(), "what stood at {was} and git did not know is in {}", aside.display());
    }
    let there = task_file(&acquired.folder);
    let file = files::home_file(&home.context.places, &seen.state.about.project, &seen.id);
    if let Some(old) = lent.map(|_| files::body_in(&acquired.folder)).transpose()?.flatten() {
        home.keep_body(seen, &old);
    }
    if file.exists() && (lent.is_some() || !there.exists()) {
        let bytes = taskfile::read(&file).map_err(PerformError::by)?;
        taskfile::write(&there, &bytes).map_err(PerformError::by)?;
    }
    Ok(TaskEffectProduct::Workspace(WorktreePath(acquired.folder.display().to_string())))
}

/// Gives a worktree back. What is at risk is kept, and TASK.md goes to the home first.
pub(super) fn release(home: &Arc<Home>, seen: &TaskSnapshot, workspace: &str) -> EffectResult {
    let (_, pool) = home.pool_of(seen)?;
    let number = pool_name(workspace)?;
    if let Some(body) = files::bring_home(&home.context.places, seen, Path::new(workspace))? {
        home.keep_body(seen, &body);
    }
    if let Some(aside) = pool.set_lost_aside(&number).map_err(PerformError::by)? {
        let aside = aside.display();
        return Err(format!("git knows nothing of {workspace} any more; what the task left there is in {aside}").into());
    }
    judged::keep(home, seen)?;
    pool.release(&number, seen.id.as_str()).map_err(PerformError::by)?;
    Ok(TaskEffectProduct::Nothing)
}

pub(super) fn push(home: &Home, seen: &TaskSnapshot) -> EffectResult {
    let (_, pool) = home.pool_of(seen)?;
    pool.repository().push_branch(&seen.state.about.branch).map_err(PerformError::by)?;
    Ok(TaskEffectProduct::Nothing)
}

/// Deletes the branch on the remote, if all of it is merged; what is not stays, and is told.
pub(super) fn delete_remote_branch(home: &Home, seen: &TaskSnapshot) -> Result<TaskEffectOutcome, PerformError> {
    let (_, pool) = home.pool_of(seen)?;
    let (branch, into) = (&seen.state.about.branch, pool.repository().default_branch());
    let merged = seen.state.merged.as_ref().map(|commit| commit.0.as_str());
    let deleted = pool.repository().delete_remote_branch(branch, seen.id.as_str(), merged).map_err(PerformError::by)?;
    Ok(match deleted {
        RemoteBranchDeletion::NotThere | RemoteBranchDeletion::Deleted => {
            TaskEffectOutcome::Ok(TaskEffectProduct::Nothing)
        }
        RemoteBranchDeletion::Stays { remote, tip } => {
            let tip = tip.get(..12).unwrap_or(&tip);
            TaskEffectOutcome::Skipped(format!(
                "`{branch}` stays on `{remote}`: its newest commit {tip} is not in `{into}` there"
            ))
        }
    })
}

/// Pushes the branch and opens a pull request, or finds the one there is; its address.
pub(crate) fn create_pr(home: &Home, seen: &TaskSnapshot) -> Result<String, PerformError> {
    let (_, pool) = home.pool_of(seen)?;
    let about = &seen.state.about;
    let body = match home.read_file(seen) {
        Err(problem) if problem.is_passing() => return Err(problem.into()),
        read => read.map(|read| read.text()).unwrap_or_default(),
    };
    let title = if about.summary.trim().is_empty() { about.branch.clone() } else { shown(&about.summary) };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let forge = Forge::find(&path, Git::default()).map_err(PerformError::by)?;
    // What a reviewer of the pull request should read: the handoff, without its heading.
    let body = sluice_core::artifact::section(&body, "Handoff").unwrap_or_default();
    let body = body.trim();
    let proposal = PullRequestProposal { title: &title, body, branch: &about.branch, base: None };
    let created = forge.create(pool.repository(), &proposal).map_err(PerformError::by)?;
    Ok(created.url)
}

pub(crate) fn current_branch(home: &Home, seen: &TaskSnapshot) -> Result<String, String> {
    let (_, pool) = home.pool_of(seen).map_err(|problem| problem.message)?;
    let bound = seen.state.workspace.bound().ok_or("the task has no worktree, so it has no current branch")?;
    let branch = pool.branch(&pool_name(&bound.0)?).map_err(|error| described(&error))?;
    branch.ok_or_else(|| format!("no branch is checked out in {}", Path::new(&bound.0).display()))
}
