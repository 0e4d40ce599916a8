//! The control plane: groups, workers, missions, and what stands where.

use std::collections::BTreeMap;

use serde_json::Value;
use sluice_api::Problem;
use sluice_api::control::{
    AttemptEnded, AttemptStarted, AttemptUpdated, Colony, ControlStatus, Crab, Mission, MissionShown, MissionTask,
    NewColony, NewMission, Register, Summary, Ticked,
};
use sluice_api::work::{AskMergeTurn, Heartbeat, MergeTurn, StepProgress, StepReport, StepStart, WorkerReply};
use sluice_core::run::RunKind;
use sluice_engine::host::EngineClock;

use crate::ask::runs::EndedRunsFilter;
use crate::ask::{KeyedId, Requester, Service};
use crate::read::runs::RunSnapshot;
use crate::roster::{MessageSubject, WorkerConnection, WorkerSink, groups, missions};

#[derive(Clone, Debug, PartialEq, Eq)]
enum ControlView {
    All,
    /// This one, or none.
    Of(Option<String>),
}

impl ControlView {
    fn shows(&self, group: &str) -> bool {
        match self {
            ControlView::All => true,
            ControlView::Of(own) => own.as_deref() == Some(group),
        }
    }
}

impl Service {
    pub fn found_group(&self, who: &Requester, chosen: &KeyedId, wanted: &NewColony) -> Result<Colony, Problem> {
        who.must_be_person("founding a colony")?;
        groups::found(&self.home, wanted, &chosen.id::<String>()?)
    }

    /// What of the groups a caller sees: a worker its own, and of one that has none yet, which there are.
    fn view(&self, who: &Requester) -> ControlView {
        match who {
            Requester::Worker { token } => ControlView::Of(self.tokens.group_of(token)),
            Requester::Person { .. }
            | Requester::Session { .. }
            | Requester::Step { .. }
            | Requester::Reader { .. }
            | Requester::Nobody => ControlView::All,
        }
    }

    pub fn groups(&self, who: &Requester) -> Vec<Colony> {
        let view = self.view(who);
        let mut all = groups::list(&self.home);
        all.retain(|group| view == ControlView::Of(None) || view.shows(&group.colony_id));
        all
    }

    pub fn register_worker(&self, who: &Requester, chosen: &KeyedId, wanted: &Register) -> Result<Crab, Problem> {
        let keeper = who.keeper("registering a crab")?;
        self.may_register(who, wanted)?;
        let crab_id = wanted.crab_id.clone().or_else(|| chosen.id.clone());
        self.home.roster.register(&self.home, keeper, &Register { crab_id, ..wanted.clone() })
    }

    pub fn unregister_worker(&self, who: &Requester, id: &str) -> Result<Crab, Problem> {
        self.home.roster.unregister(&self.home, who.keeper("sending a crab away")?, id)
    }

    pub fn workers(&self, who: &Requester) -> Vec<Crab> {
        let view = self.view(who);
        let mut all = self.home.roster.list();
        all.retain(|worker| view.shows(&worker.colony_id));
        all
    }

    pub fn connect_worker(&self, who: &Requester, id: &str, post: WorkerSink) -> Result<WorkerConnection, Problem> {
        self.home.roster.connect(&self.home, who.keeper("listening as a crab")?, id, post)
    }

    pub fn disconnect_worker(&self, id: &str, connection: WorkerConnection) {
        self.home.roster.disconnect(&self.home, &id.into(), connection);
    }

    pub fn heard_worker(&self, id: &str) {
        self.home.roster.heard(&self.home, &id.into());
    }

    /// A worker gives a sign of life, and says what it is at.
    pub fn signed_worker(&self, id: &str, sign: &Heartbeat) {
        self.home.roster.signed(&self.home, &id.into(), sign);
    }

    pub fn spoken_of(&self, who: &Requester, worker: &str, about: MessageSubject<'_>) -> Result<String, Problem> {
        self.home.roster.spoken_of(&self.home, who.keeper("work on a mission")?, worker, about)
    }

    pub fn reply_to_worker(&self, said: &Value, reply: WorkerReply) -> Value {
        self.home.roster.reply(&self.home, said, reply)
    }

    pub fn start_attempt(&self, who: &Requester, wanted: &StepStart) -> Result<AttemptStarted, Problem> {
        self.home.roster.start(&self.home, who.keeper("work on a mission")?, wanted)
    }

    pub fn update_attempt(&self, who: &Requester, wanted: &StepProgress) -> Result<AttemptUpdated, Problem> {
        self.home.roster.update(&self.home, who.keeper("work on a mission")?, wanted)
    }

    /// A worker asks whether it is its turn to bring work into the branch of a mission.
    pub fn merge_turn(&self, who: &Requester, wanted: &AskMergeTurn) -> Result<MergeTurn, Problem> {
        self.home.roster.turn(&self.home, who.keeper("work on a mission")?, wanted)
    }

    pub fn complete_attempt(&self, who: &Requester, wanted: &StepReport) -> Result<AttemptEnded, Problem> {
        self.home.roster.complete(&self.home, who.keeper("work on a mission")?, wanted)
    }

    pub fn create_mission(&self, who: &Requester, chosen: &KeyedId, wanted: &NewMission) -> Result<Mission, Problem> {
        who.must_be_person("beginning a mission")?;
        if let Some(seen) = self.started_before(chosen)? {
            return Ok(missions::mission(&seen));
        }
        missions::create(&self.home, wanted, chosen.id()?)
    }

    pub fn missions(&self, who: &Requester) -> Result<Vec<Mission>, Problem> {
        let view = self.view(who);
        let mut all = missions::list(&self.home, &self.mission_runs(true)?);
        all.retain(|mission| view.shows(&mission.colony_id));
        Ok(all)
    }

    /// The runs that are missions, newest first; with `all` also those that have ended.
    fn mission_runs(&self, all: bool) -> Result<Vec<RunSnapshot>, Problem> {
        self.runs_called(RunKind::Mission, all.then_some(EndedRunsFilter(None)), |_| true)
    }

    pub fn mission(&self, who: &Requester, id: &str) -> Result<MissionShown, Problem> {
        match self.view(who) {
            ControlView::All => missions::show(&self.home, id),
            ControlView::Of(Some(group)) => missions::show_of(&self.home, id, &group),
            ControlView::Of(None) => Err(missions::none(id)),
        }
    }

    /// The tasks of a mission, or of all that have not ended.
    pub fn mission_tasks(&self, who: &Requester, mission: Option<&str>) -> Result<Vec<MissionTask>, Problem> {
        match mission {
            Some(id) => Ok(self.mission(who, id)?.tasks),
            None => {
                let (open, view) = (self.mission_runs(false)?, self.view(who));
                let missions = open.iter().rev().filter(|seen| view.shows(seen.group()));
                Ok(missions.flat_map(|seen| missions::tasks(&self.home, seen)).collect())
            }
        }
    }

    pub fn mission_workflows(&self) -> Vec<String> {
        missions::names(&self.home)
    }

    /// Waits until the scheduler has gone round, and says how many tasks it has assigned since it was last asked. It goes
    /// round by itself whenever something changes.
    pub fn tick(&self, who: &Requester) -> Result<Ticked, Problem> {
        who.keeper("the scheduler")?;
        crate::home::registry::settle(&self.home)?;
        Ok(Ticked { ok: true, assigned: self.home.roster.take_assigned() })
    }

    pub fn status(&self, who: &Requester) -> Result<ControlStatus, Problem> {
        let view = self.view(who);
        let mut runs = self.mission_runs(true)?;
        runs.retain(|seen| view.shows(seen.group()));
        let mut missions = missions::list(&self.home, &runs);
        missions.retain(|mission| view.shows(&mission.colony_id));
        let open = runs.iter().filter(|seen| seen.state.end.is_none());
        let tasks: Vec<MissionTask> = open.flat_map(|seen| missions::tasks(&self.home, seen)).collect();
        let workers = self.workers(who);
        let summary = Summary {
            total_crabs: workers.len(),
            crabs: counted(workers.iter().map(|worker| worker.state.word())),
            missions: counted(missions.iter().map(|mission| mission.status.word())),
            tasks: counted(tasks.iter().map(|task| task.status.word())),
        };
        let (generated_at_ms, colonies) = (self.home.clock.now().0, self.groups(who));
        Ok(ControlStatus { generated_at_ms, summary, colonies, crabs: workers, missions, tasks })
    }
}

fn counted(words: impl Iterator<Item = &'static str>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    words.for_each(|word| *counts.entry(word.to_owned()).or_insert(0) += 1);
    counts
}
