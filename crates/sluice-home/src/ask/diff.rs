//! What the work of a task or run has changed, and what a task's agent printed. It only looks.

use std::path::{Path, PathBuf};

use sluice_api::diff::{TaskLog, WorkDiff, WorkDiffFile, WorkDiffPart};
use sluice_api::problem::Problem;
use sluice_core::id::TaskId;
use sluice_os::git::{DiffLimits, DiffRead, DiffedFile, GitError, Repository};
use sluice_os::redact::shown_of;
use sluice_os::session::{SessionId, SessionStream};
use sluice_worker::names::run_branch;

use super::Service;
use crate::home::engine::refusal;
use crate::home::worktrees::{NO_WORKSPACE, pool_of};
use crate::home::{session_id, session_of};
use crate::read::runs::RunSnapshot;
use crate::read::tasks::TaskSnapshot;
use crate::settings::projects::git;

/// Bytes of a patch that are shown.
const LONGEST_PATCH: usize = 1 << 20;
/// Files of a difference that are named.
const MOST_FILES: usize = 2_000;
/// Bytes of an agent's output that are looked at, and the lines of it that are shown unless asked otherwise.
const LONGEST_LOG: usize = 1 << 20;
const LOG_LINES: usize = 200;

impl Service {
    /// What a task has changed: in the commits of its branch, and uncommitted in its worktree if it has one.
    pub fn task_diff(&self, id: &str, stat: bool) -> Result<WorkDiff, Problem> {
        let seen = self.home.tasks.find(id)?;
        let (_, pool) = self.home.pool_of(&seen)?;
        let worktree = seen.state.workspace.bound().map(|bound| PathBuf::from(&bound.0));
        let mut found = work_diff(pool.repository(), &seen.state.about.branch, worktree.as_deref(), stat)
            .map_err(|error| git(&error))?;
        found.notes.splice(0..0, standing(&seen));
        Ok(found)
    }

    /// The same of a run.
    pub fn run_diff(&self, id: &str, stat: bool) -> Result<WorkDiff, Problem> {
        let seen = self.run(id)?;
        let repository = self.repository_of(&seen)?;
        let folder = Path::new(&seen.state.given.workspace);
        work_diff(&repository, &run_branch(&seen.id), Some(folder), stat).map_err(|error| git(&error))
    }

    /// The repository that a run works in a worktree of.
    pub(super) fn repository_of(&self, seen: &RunSnapshot) -> Result<Repository, Problem> {
        let given = &seen.state.given;
        if given.origin.base.is_empty() {
            let message = format!("run {} has no branch of its own: it worked where it was started", seen.id);
            return Err(refusal(sluice_core::machine::RefusalCode::NoWorkspace, message));
        }
        let pool = pool_of(&self.home, given).map_err(|undone| undone.refusal(NO_WORKSPACE))?;
        Ok(pool.repository().clone())
    }

    /// What the agent of a task printed last: the one at work, else the newest there was.
    pub fn task_log(&self, id: &str, lines: Option<usize>) -> Result<TaskLog, Problem> {
        let seen = self.home.tasks.find(id)?;
        let sessions = &self.home.context.sessions;
        // The reviewer first: it is the one that is at work.
        let living = seen.living().next_back().and_then(|agent| session_id(&seen.id, agent.id).ok());
        let Some(session) = living.or_else(|| self.newest_session(&seen.id)) else { return Ok(TaskLog::default()) };
        let tail = |stream| sessions.output_tail(&session, stream, LONGEST_LOG).unwrap_or_default();
        let (printed, errors) = (tail(SessionStream::Output), tail(SessionStream::Errors));
        let text = shown_of(&[printed.bytes, errors.bytes].concat());
        let all: Vec<&str> = text.lines().map(str::trim_end).collect();
        let first = all.len().saturating_sub(lines.unwrap_or(LOG_LINES));
        let log = all[first..].iter().map(|line| format!("{line}\n")).collect();
        let alive = sessions.is_living(&session);
        let cut = first > 0 || printed.start > 0 || errors.start > 0;
        Ok(TaskLog { session: Some(session.to_string()), alive, log, cut })
    }

    fn newest_session(&self, task: &TaskId) -> Option<SessionId> {
        let of_task = |id: &SessionId| session_of(id).filter(|(own, _)| own == task).map(|(_, number)| number.0);
        let all = self.home.context.sessions.list().unwrap_or_default();
        all.into_iter().filter(|id| of_task(id).is_some()).max_by_key(of_task)
    }
}

/// What there is to say about where a task's work is.
fn standing(seen: &TaskSnapshot) -> Option<String> {
    let state = &seen.state;
    match (&state.merged, state.lent_on().filter(|_| seen.card.open)) {
        (Some(commit), _) => Some(format!("the task was merged, as {}", commit.0)),
        (None, Some(lent)) => Some(format!("its worktree was lent on, at {}: nothing was uncommitted", lent.commit.0)),
        (None, None) => None,
    }
}

fn work_diff(repository: &Repository, branch: &str, worktree: Option<&Path>, stat: bool) -> Result<WorkDiff, GitError> {
    let limits = DiffLimits { bytes: if stat { 0 } else { LONGEST_PATCH }, files: MOST_FILES };
    let commit = repository.branch_commit(branch)?;
    let base = commit.as_deref().map_or(Ok(None), |commit| repository.fork_point(commit))?;
    let committed = match (&base, &commit) {
        (Some(base), Some(commit)) => repository.committed_diff(base, commit, limits)?,
        (_, _) => DiffRead::default(),
    };
    let uncommitted = worktree.map_or(Ok(None), |folder| repository.uncommitted_diff(folder, limits))?;
    let mut notes = Vec::new();
    let root = repository.folder().display();
    match (&base, &commit) {
        (_, None) => notes.push(format!("there is no branch `{branch}`")),
        (None, Some(_)) => notes.push(format!("`{branch}` and the default branch have no commit in common")),
        (Some(base), Some(commit)) if committed.is_cut => {
            notes.push(format!("{}; `git -C {root} diff {base} {commit}` shows all of it", cut("the patch")));
        }
        (Some(_), Some(_)) => {}
    }
    if let (Some(folder), true) = (worktree, uncommitted.as_ref().is_some_and(|part| part.is_cut)) {
        let folder = folder.display();
        notes.push(format!("{}; `git -C {folder} diff HEAD` shows all of it", cut("the patch of uncommitted changes")));
    }
    Ok(WorkDiff {
        branch: branch.to_owned(),
        default_branch: repository.default_branch().to_owned(),
        base,
        commit,
        committed: part(committed, stat),
        uncommitted: uncommitted.map(|read| part(read, stat)),
        notes,
    })
}

fn cut(what: &str) -> String {
    format!("{what} is longer than {LONGEST_PATCH} bytes, and is cut")
}

fn part(read: DiffRead, stat: bool) -> WorkDiffPart {
    let DiffRead { files, count, patch, is_cut } = read;
    let file = |it: DiffedFile| {
        let DiffedFile { path, before, added, removed } = it;
        WorkDiffFile { path, before, added, removed }
    };
    let patch = (!stat).then_some(patch);
    WorkDiffPart { files: files.into_iter().map(file).collect(), count, patch, cut: is_cut }
}
