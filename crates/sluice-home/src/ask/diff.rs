//! What the work of a task or run has changed, and what a task's agent printed. It only looks.

use std::path::{Path, PathBuf};

use sluice_api::diff::{TaskLog, WorkDiff, WorkDiffFile, WorkDiffPart};
use sluice_api::problem::Problem;
use sluice_core::task::session::SessionNumber;
use sluice_os::git::{DiffLimits, DiffRead, DiffedFile, GitError, Repository};
use sluice_os::redact::shown_of;
use sluice_os::session::{SessionId, SessionStream};
use sluice_worker::names::run_branch;

use super::Service;
use crate::home::engine::refusal;
use crate::home::session_id;
use crate::home::worktrees::{NO_WORKSPACE, pool_of};
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
/// Sessions of a task, from the newest on, of which one is looked for that is kept.
const SESSIONS_LOOKED_FOR: usize = 100;

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

    /// What the agent of a task printed last: the one at work, else the newest there was. What a living one has drawn on its screen
    /// makes sense on that screen only, so then the screen is the answer.
    pub fn task_log(&self, id: &str, lines: Option<usize>) -> Result<TaskLog, Problem> {
        let seen = self.home.tasks.find(id)?;
        let sessions = &self.home.context.sessions;
        let Some(session) = self.session_of_log(&seen) else { return Ok(TaskLog::default()) };
        let alive = sessions.is_living(&session);
        let name = Some(session.to_string());
        let drawn = sessions.output_tail(&session, SessionStream::Output, LONGEST_LOG).unwrap_or_default().bytes;
        let screen = Some(()).filter(|()| alive && draws(&drawn)).and_then(|()| sessions.screen(&session).ok());
        if let Some(screen) = screen.filter(|screen| !screen.trim().is_empty()) {
            let (log, cut) = last_of(screen.trim_end(), lines);
            return Ok(TaskLog { session: name, alive, log, cut, screen: true });
        }
        let (log, cut) = self.printed_last(&session, lines);
        Ok(TaskLog { session: name, alive, log, cut, screen: false })
    }

    /// The last lines that an agent printed, and whether it printed more before.
    pub(super) fn printed_last(&self, session: &SessionId, lines: Option<usize>) -> (String, bool) {
        let tail = |stream| self.home.context.sessions.output_tail(session, stream, LONGEST_LOG).unwrap_or_default();
        let (printed, errors) = (tail(SessionStream::Output), tail(SessionStream::Errors));
        let is_cut = printed.start > 0 || errors.start > 0;
        let (log, cut) = last_of(&shown_of(&[printed.bytes, errors.bytes].concat()), lines);
        (log, cut || is_cut)
    }

    pub(super) fn newest_session(&self, seen: &TaskSnapshot) -> Option<SessionId> {
        let newest = (1..=seen.state.sessions_asked).rev().take(SESSIONS_LOOKED_FOR);
        let mut ids = newest.filter_map(|number| session_id(&seen.id, SessionNumber(number)).ok());
        ids.find(|id| self.home.context.sessions.is_known(id))
    }
}

/// The last lines of a text, and whether there were more.
fn last_of(text: &str, lines: Option<usize>) -> (String, bool) {
    let all: Vec<&str> = text.lines().map(str::trim_end).collect();
    let first = all.len().saturating_sub(lines.unwrap_or(LOG_LINES));
    (all[first..].iter().map(|line| format!("{line}\n")).collect(), first > 0)
}

/// Whether a program moves about on its screen (CSI … A, H, J or f) and does not only print lines.
fn draws(bytes: &[u8]) -> bool {
    let after = |at: usize| bytes[at..].iter().skip(2).take(16);
    let starts = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(b"\x1b["));
    starts.filter_map(|at| after(at).find(|byte| (0x40..=0x7e).contains(*byte))).any(|last| b"AHJf".contains(last))
}

/// What there is to say about where a task's work is.
pub(super) fn standing(seen: &TaskSnapshot) -> Option<String> {
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
