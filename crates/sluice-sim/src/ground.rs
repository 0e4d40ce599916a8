//! What there is of tasks in the simulated world, whether or not an engine runs: processes, worktrees, TASK.md.
//!
//! It refuses what must never be done to it; the refusal is a broken promise.

use std::collections::{BTreeMap, BTreeSet};

use sluice_core::id::{MalformedId, RunId};
use sluice_core::lifecycle::FieldValue;
use sluice_core::task::Evidence;
use sluice_core::task::effect::StartSession;
use sluice_core::task::input::{RunEnd, WorkEvidence, WorkHead, WorkStanding};
use sluice_core::task::session::{SessionExit, SessionNumber, SessionRole, TaskSessionPlace};
use sluice_core::task::state::{CommitId, TreeId, WorkSnapshot, WorktreePath};
use sluice_store::StreamId;

/// How many worktrees the pool has.
const POOL: usize = 2;

/// An agent's process, and the record of its end.
pub(crate) struct SimProcess {
    pub(crate) place: TaskSessionPlace,
    pub(crate) role: SessionRole,
    /// Whose it is: no other engine sees it.
    pub(crate) home: usize,
    /// It does nothing until it is let go on.
    pub(crate) is_paused: bool,
    /// It waits for the answer to a move that it has asked for.
    pub(crate) is_asking: bool,
    /// How it ended; `None` while it lives.
    pub(crate) exit: Option<SessionExit>,
    /// An engine tried to end it and could not.
    pub(crate) withstood: bool,
    pub(crate) steps: u32,
    /// Grows when it is spoken to, so that what it was about to do is not done twice.
    pub(crate) stir: u64,
}

impl SimProcess {
    pub(crate) fn is_at_work(&self) -> bool {
        self.exit.is_none() && !self.is_paused
    }
}

/// TASK.md and the branch beside it.
#[derive(Default)]
pub(crate) struct SimTaskFile {
    sections: BTreeMap<String, String>,
    pub(crate) frontmatter: BTreeMap<String, FieldValue>,
    /// The newest frontmatter could not be written.
    pub(crate) is_behind: bool,
    pub(crate) branch: String,
    /// Something is wrong there that makes agents crash.
    pub(crate) is_cursed: bool,
    commits: u64,
    edits: u64,
}

impl SimTaskFile {
    pub(crate) fn evidence(&self) -> Evidence {
        let body = self.sections.iter().map(|(title, text)| format!("## {title}\n{text}\n\n")).collect();
        let head = WorkHead::Branch(self.branch.clone());
        let (commit, tree) = (CommitId(format!("commit-{}", self.commits)), TreeId(format!("tree-{}", self.commits)));
        let work = WorkEvidence::Read(WorkStanding { head, commit, tree, dirty: String::new() });
        Evidence { body, work, ..Evidence::default() }
    }

    /// Whether a section begins with this text.
    pub(crate) fn says(&self, title: &str, text: &str) -> bool {
        self.sections.get(title).is_some_and(|section| section.starts_with(text))
    }

    /// An agent or a person writes a section; the text is never the same twice.
    pub(crate) fn write(&mut self, title: &str, text: &str) {
        self.edits += 1;
        self.sections.insert(title.to_owned(), format!("{text}\nedit {}", self.edits));
    }

    pub(crate) fn commit(&mut self) {
        self.commits += 1;
    }
}

/// The id of the run that an effect starts: the same whenever it is asked for.
pub(crate) fn run_of(effect: &str) -> Result<RunId, String> {
    effect.replace(['/', ' '], "-").parse().map_err(|error: MalformedId| error.to_string())
}

#[derive(Default)]
pub(crate) struct SimTaskWorld {
    pub(crate) processes: BTreeMap<(StreamId, SessionNumber), SimProcess>,
    /// The runs of tasks' states, by the effect that started each, and how each ended.
    pub(crate) runs: BTreeMap<(StreamId, RunId), Option<RunEnd>>,
    /// The work when each of them was started.
    pub(crate) begun: BTreeMap<(StreamId, RunId), WorkSnapshot>,
    /// The newest of each task that judges the work.
    pub(crate) checks: BTreeMap<StreamId, RunId>,
    bound: BTreeMap<WorktreePath, StreamId>,
    pub(crate) sheets: BTreeMap<StreamId, SimTaskFile>,
    /// Which task was begun because another asked for the next, by that one and its effect.
    pub(crate) chosen: BTreeMap<(StreamId, String), StreamId>,
    /// Tasks whose worktree an engine tried to release and could not, or would not because of a process in it.
    pub(crate) clinging: BTreeSet<StreamId>,
}

impl SimTaskWorld {
    pub(crate) fn sheet(&mut self, stream: &StreamId) -> &mut SimTaskFile {
        self.sheets.entry(stream.clone()).or_default()
    }

    pub(crate) fn free(&self, in_use: &BTreeSet<WorktreePath>, kept: &BTreeSet<WorktreePath>) -> Option<WorktreePath> {
        let all = (1..=POOL).map(|number| WorktreePath(format!("w{number}")));
        all.into_iter().find(|it| !self.bound.contains_key(it) && !kept.contains(it) && !in_use.contains(it))
    }

    pub(crate) fn bound_to(&self, stream: &StreamId) -> Option<&WorktreePath> {
        self.bound.iter().find(|(_, task)| *task == stream).map(|(name, _)| name)
    }

    pub(crate) fn bind(&mut self, stream: &StreamId, name: &WorktreePath) -> Result<(), String> {
        match self.bound.insert(name.clone(), stream.clone()) {
            Some(other) if other != *stream => Err(format!("{stream}: {} belongs to {other}", name.0)),
            _ => Ok(()),
        }
    }

    pub(crate) fn release(&mut self, stream: &StreamId, name: &WorktreePath) -> Result<(), String> {
        if let Some(id) = self.living(stream).next() {
            return Err(format!("{stream}: {} is released while {id} works in it", name.0));
        }
        if let Some(run) = self.going(stream).next() {
            return Err(format!("{stream}: {} is released while the run {run} works in it", name.0));
        }
        self.clinging.remove(stream);
        match self.bound.remove(name) {
            Some(other) if other != *stream => Err(format!("{stream}: {} of {other} is released", name.0)),
            _ => Ok(()),
        }
    }

    /// The sessions of a task whose process lives and is not paused.
    pub(crate) fn living(&self, stream: &StreamId) -> impl Iterator<Item = SessionNumber> {
        let of_task = self.processes.iter().filter(move |((task, _), it)| task == stream && it.is_at_work());
        of_task.map(|((_, id), _)| *id)
    }

    pub(crate) fn going(&self, stream: &StreamId) -> impl Iterator<Item = &RunId> {
        let of_task = self.runs.iter().filter(move |((task, _), it)| task == stream && it.is_none());
        of_task.map(|((_, id), _)| id)
    }

    /// The run of a state starts: never beside another of the same task, or without the task's own worktree.
    pub(crate) fn run(
        &mut self,
        stream: &StreamId,
        id: &RunId,
        workspace: Option<&WorktreePath>,
    ) -> Result<(), String> {
        if let Some(other) = self.going(stream).next() {
            return Err(format!("{stream}: the run {id} starts while {other} goes on"));
        }
        if self.bound_to(stream) != workspace {
            return Err(format!("{stream}: the run {id} starts in {workspace:?}, which is not its"));
        }
        self.runs.insert((stream.clone(), id.clone()), None);
        Ok(())
    }

    /// Whether a run has judged the work as it stands here, and found it good.
    pub(crate) fn has_passed(&self, stream: &StreamId, run: &RunId, work: &WorkSnapshot) -> bool {
        let run = (stream.clone(), run.clone());
        self.runs.get(&run) == Some(&Some(RunEnd::Completed)) && self.begun.get(&run) == Some(work)
    }

    /// A process starts: never a second one in the same place, of the same role, or without the task's own worktree.
    pub(crate) fn start(&mut self, stream: &StreamId, start: &StartSession, home: usize) -> Result<(), String> {
        self.is_alone(stream, start.session, start.place, start.role)?;
        if self.bound_to(stream) != Some(&start.workspace) {
            return Err(format!("{stream}: {} starts in {}, which is not its", start.session, start.workspace.0));
        }
        let (place, role) = (start.place, start.role);
        let process = SimProcess {
            place,
            role,
            home,
            is_paused: false,
            is_asking: false,
            exit: None,
            withstood: false,
            steps: 0,
            stir: 0,
        };
        self.processes.insert((stream.clone(), start.session), process);
        Ok(())
    }

    fn is_alone(
        &self,
        stream: &StreamId,
        session: SessionNumber,
        place: TaskSessionPlace,
        role: SessionRole,
    ) -> Result<(), String> {
        let rival = self.processes.iter().find(|((task, other), it)| {
            task == stream && *other != session && it.is_at_work() && (it.place == place || it.role == role)
        });
        match rival {
            Some(((_, other), _)) => Err(format!("{stream}: {session} works while {other} lives in its place")),
            None => Ok(()),
        }
    }

    pub(crate) fn knows(&self, stream: &StreamId, session: SessionNumber, home: usize) -> bool {
        self.processes.get(&(stream.clone(), session)).is_some_and(|process| process.home == home)
    }

    /// The processes of a home do nothing for a while.
    pub(crate) fn pauses(&mut self, home: usize) {
        self.processes.values_mut().filter(|it| it.home == home).for_each(|it| it.is_paused = it.exit.is_none());
    }

    pub(crate) fn resumes(&mut self, home: usize) -> Result<Vec<(StreamId, SessionNumber, u64)>, String> {
        let mut awake = Vec::new();
        for ((stream, session), process) in &mut self.processes {
            let was_paused = process.home == home && std::mem::take(&mut process.is_paused);
            // One that has asked for something goes on with the answer, and does nothing before it.
            if was_paused && process.exit.is_none() && !process.is_asking {
                process.stir += 1;
                awake.push((stream.clone(), *session, process.stir));
            }
        }
        for (stream, session, _) in &awake {
            if let Some(process) = self.processes.get(&(stream.clone(), *session)) {
                self.is_alone(stream, *session, process.place, process.role)?;
            }
        }
        Ok(awake)
    }

    pub(crate) fn ends(&mut self, home: usize) {
        for process in self.processes.values_mut().filter(|it| it.home == home) {
            process.exit.get_or_insert(SessionExit::Signal(9));
            process.is_paused = false;
        }
    }
}
