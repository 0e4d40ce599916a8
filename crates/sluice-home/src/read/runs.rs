//! Runs as they are seen: where each stands, and the way to all of them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use sluice_api::Problem;
use sluice_core::id::{RunId, TaskId};
use sluice_core::machine::Moment;
use sluice_core::recipe::{StepId, StepWorkspace};
use sluice_core::run::{AttemptPart, RunKind, RunParameters, RunPlan, RunState};
use sluice_engine::codec::run_state;
use sluice_engine::loader::StreamSnapshot;
use sluice_engine::run_actor::RunActor;
use sluice_store::{Card, Digest, StreamId, StreamSummary};

use crate::background::locked;
use crate::read::tasks::{ReadModel, unread};

pub(crate) const KIND: &str = "run/";
/// So many settings are remembered; then they are read again. They are small and lie between what comes and goes, so that many
/// of them keep much memory from being given back.
const MOST_REMEMBERED: usize = 100;
/// Runs of so many steps together are remembered as they were seen; then they are read again.
const MOST_STEPS: usize = 20_000;
/// So many of them may have ended: hardly anybody looks at one twice, and the memory of a day's work would stay.
const MOST_ENDED: usize = 100;

pub fn stream(id: &RunId) -> StreamId {
    StreamId::new(format!("{KIND}{id}"))
}

pub fn id_of(stream: &StreamId) -> Option<RunId> {
    stream.as_str().strip_prefix(KIND)?.parse().ok()
}

#[derive(Clone)]
pub struct RunSnapshot {
    pub id: RunId,
    /// How many events it has.
    pub version: u64,
    pub card: Card,
    pub state: Arc<RunState>,
    pub plan: Arc<RunPlan>,
    /// When the next turn of a patrol begins, if it rests until then.
    pub next_turn: Option<Moment>,
}

impl RunSnapshot {
    fn of(id: &RunId, read: StreamSnapshot<RunActor>) -> RunSnapshot {
        let StreamSnapshot { version, card, actor } = read;
        let (plan, next_turn) = (actor.plan().clone(), actor.next_turn());
        RunSnapshot { id: id.clone(), version, card, state: Arc::new(actor.into_state()), plan, next_turn }
    }

    pub fn step(&self, name: &str) -> Result<StepId, Problem> {
        let names: Vec<&str> = self.plan.recipe.steps.iter().map(|step| step.name.as_str()).collect();
        let found = (0u32..).map(StepId).zip(&names).find(|(_, it)| **it == name).map(|(id, _)| id);
        found.ok_or_else(|| {
            let what = if self.state.given.origin.kind == RunKind::Process { "process" } else { "run" };
            let message = format!("{what} {} has no step `{name}`", self.id);
            Problem::not_found(message).hint(format!("it has: {}", names.join(", ")))
        })
    }

    /// The folder of its worktree; without one, where it was started.
    pub fn folder(&self) -> &str {
        self.folder_of(StepWorkspace::Run)
    }

    /// The folder on this machine in which such steps of it work.
    pub fn folder_of(&self, workspace: StepWorkspace) -> &str {
        folder(&self.state.given, workspace)
    }

    /// Where such steps of it work, as people are told: of a run that is done elsewhere, what its workers call the folder
    /// there.
    pub fn shown_folder(&self, workspace: StepWorkspace) -> &str {
        match self.state.given.folder(workspace) {
            "" => &self.state.given.origin.root,
            folder => folder,
        }
    }

    /// The group whose workers do it.
    pub fn group(&self) -> &str {
        RunActor::group_of(&self.card)
    }

    pub fn setting(&self) -> RunFacts {
        RunFacts { id: self.id.clone(), plan: self.plan.clone(), given: self.state.given.clone() }
    }
}

/// What never changes of a run. A caller that needs no more is spared reading where all of its steps stand.
#[derive(Clone)]
pub struct RunFacts {
    pub id: RunId,
    pub plan: Arc<RunPlan>,
    pub given: RunParameters,
}

impl RunFacts {
    /// The folder on this machine in which such steps of it work.
    pub fn folder_of(&self, workspace: StepWorkspace) -> &str {
        folder(&self.given, workspace)
    }
}

fn folder(given: &RunParameters, workspace: StepWorkspace) -> &str {
    match given.folder(workspace) {
        folder if folder.starts_with('/') => folder,
        // There is none, or it is where the workers of a group are.
        _ => &given.origin.root,
    }
}

#[derive(Default)]
pub(crate) struct RunFactsCache(Mutex<BTreeMap<RunId, Arc<RunFacts>>>);

/// Runs as they were last seen. They are read again when they have changed: many look at one run between two events.
#[derive(Default)]
pub(crate) struct RunSnapshotCache(Mutex<RememberedRuns>);

#[derive(Default)]
struct RememberedRuns {
    runs: BTreeMap<RunId, RunSnapshot>,
    steps: usize,
    ended: usize,
}

impl RunSnapshotCache {
    /// The run that a summary is about, if it has not changed since it was seen.
    fn again(&self, id: &RunId, now: &StreamSummary) -> Option<RunSnapshot> {
        locked(&self.0).runs.get(id).filter(|seen| (seen.version, &seen.card) == (now.version, &now.card)).cloned()
    }

    /// Whether anything is remembered of a run.
    fn knows(&self, id: &RunId) -> bool {
        locked(&self.0).runs.contains_key(id)
    }

    /// A run has changed: what is remembered of it is of no use any more.
    pub(crate) fn forget(&self, id: &RunId) {
        let mut known = locked(&self.0);
        if let Some(before) = known.runs.remove(id) {
            known.steps -= before.state.steps.len();
            known.ended -= usize::from(!before.card.open);
        }
    }

    /// How many runs have been read, and are remembered.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        locked(&self.0).runs.len()
    }

    fn remember(&self, seen: &RunSnapshot) {
        let mut known = locked(&self.0);
        if known.steps >= MOST_STEPS {
            *known = RememberedRuns::default();
        }
        if known.ended >= MOST_ENDED {
            known.runs.retain(|_, seen| seen.card.open);
            known.steps = known.runs.values().map(|seen| seen.state.steps.len()).sum();
            known.ended = 0;
        }
        known.steps += seen.state.steps.len();
        known.ended += usize::from(!seen.card.open);
        if let Some(before) = known.runs.insert(seen.id.clone(), seen.clone()) {
            known.steps -= before.state.steps.len();
            known.ended -= usize::from(!before.card.open);
        }
    }
}

/// The name of what carries out a part of a step, for sessions and records.
pub fn performance(run: &RunId, step: StepId, attempt: u32, part: AttemptPart) -> String {
    format!("{run}.{}", sluice_core::run::effect::key(step, attempt, part))
}

impl ReadModel {
    /// The run with this id, as the store has it now.
    pub fn load_run(&self, id: &RunId) -> Result<Option<RunSnapshot>, Problem> {
        if !self.looks.knows(id) {
            return self.read_run(id);
        }
        let now = self.loader().reader().summary(&stream(id)).map_err(unread)?;
        now.map_or(Ok(None), |now| self.run_of(id, &now))
    }

    /// The run with this id, of which this was just read. It is read whole only if it has changed since it was seen.
    pub(crate) fn run_of(&self, id: &RunId, now: &StreamSummary) -> Result<Option<RunSnapshot>, Problem> {
        if let Some(seen) = self.looks.again(id, now) {
            return Ok(Some(seen));
        }
        self.read_run(id)
    }

    fn read_run(&self, id: &RunId) -> Result<Option<RunSnapshot>, Problem> {
        let stream = stream(id);
        let read = self.noted(&stream, self.loader().run(&stream).map_err(unread))?;
        let seen = read.map(|read| RunSnapshot::of(id, read));
        seen.iter().for_each(|seen| self.looks.remember(seen));
        Ok(seen)
    }

    /// What never changes of the run with this id. It is read once.
    pub fn setting(&self, id: &RunId) -> Result<Option<Arc<RunFacts>>, Problem> {
        let known = || locked(&self.settings.0);
        if let Some(setting) = known().get(id) {
            return Ok(Some(setting.clone()));
        }
        let Some(setting) = self.load_run(id)?.map(|seen| Arc::new(seen.setting())) else { return Ok(None) };
        let mut known = known();
        if known.len() >= MOST_REMEMBERED {
            known.clear();
        }
        known.insert(id.clone(), setting.clone());
        Ok(Some(setting))
    }

    /// Whether a run has something to be done now or at some moment. One that waits for a person has not.
    pub fn runs_want_something(&self) -> bool {
        let rests = |stream: &StreamId| {
            let stored = self.loader().reader().load(stream)?;
            Ok(stored.is_some_and(|stored| stored.effects.is_empty() && stored.timers.is_empty()))
        };
        // A store that cannot be asked says nothing about being idle.
        !self.each_open(KIND, rests).unwrap_or(false)
    }

    /// The digest of the definition that was pinned for a run.
    pub fn definition(&self, id: &RunId) -> Result<String, Problem> {
        let gone = || Problem::fault(format!("run {id} is gone"));
        let stored = self.loader().reader().load(&stream(id)).map_err(unread)?;
        run_state::definition_of(&stored.ok_or_else(gone)?.header.data)
            .map_err(|error| Problem::fault(error.to_string()))
    }

    pub fn pinned(&self, id: &RunId) -> Result<Vec<u8>, Problem> {
        let gone = || Problem::fault(format!("the definition of run {id} is gone"));
        let digest = sluice_engine::codec::digest(&self.definition(id)?).ok_or_else(gone)?;
        self.blob(&Digest(digest))?.ok_or_else(gone)
    }

    /// The run whose id is this text: the name of a file, or what stands on a worktree. What is no id is no run's.
    pub(crate) fn run_named(&self, name: &str) -> Result<Option<RunSnapshot>, Problem> {
        name.parse().map_or(Ok(None), |id| self.load_run(&id))
    }

    /// The run whose id begins like this; the error says why there is not exactly one.
    pub fn find_run(&self, begins: &str) -> Result<RunSnapshot, Problem> {
        let none = || {
            Problem::not_found(format!("there is no run `{begins}`")).hint("`sluice run list --all` shows all of them")
        };
        // Most say the whole of it.
        if let Some(seen) = self.run_named(begins)? {
            return Ok(seen);
        }
        let id = self.only(KIND, begins)?.and_then(|id| id.parse().ok()).ok_or_else(none)?;
        self.load_run(&id)?.ok_or_else(none)
    }
}

/// The run whose step a task is: its id says so.
pub(crate) fn maker(task: &TaskId) -> Option<RunId> {
    let mut parts = task.as_str().rsplitn(4, '-');
    let (part, attempt, step) = (parts.next()?, parts.next()?, parts.next()?);
    let numbers = [attempt, step].iter().all(|text| text.parse::<u32>().is_ok());
    parts.next().filter(|_| part == "whole" && numbers)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_of_a_step_says_whose_it_is() {
        let made_by = |task: &str| maker(&task.parse().expect("an id")).map(String::from);
        assert_eq!(made_by("k3f9abcdef-2-1-whole").as_deref(), Some("k3f9abcdef"));
        assert_eq!(made_by("k3f9abcdef-r7-2-1-whole").as_deref(), Some("k3f9abcdef-r7"));
        assert_eq!(made_by("k3f9abcdef"), None);
    }
}
