//! The control plane: colonies, crabs, missions, and what stands where.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sluice_api::Problem;
use sluice_api::work::{AskMergeTurn, Heartbeat, MergeTurn, StepProgress, StepReport, StepStart};
use sluice_core::run::RunKind;
use sluice_engine::host::EngineClock;

use super::runs::EndedRunsFilter;
use super::{KeyedId, Requester, Service};
use crate::read::runs::RunSnapshot;
use crate::roster::colonies::{self, NewColony};
use crate::roster::missions::{self, NewMission};
use crate::roster::{MessageSubject, Register, WorkerConnection, WorkerSink};

/// The colonies of which somebody sees what is done there.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ControlView {
    /// All.
    All,
    /// This one, or none.
    Of(Option<String>),
}

impl ControlView {
    fn shows(&self, colony: &Value) -> bool {
        colony.as_str().is_some_and(|colony| self.shows_colony(colony))
    }

    fn shows_colony(&self, colony: &str) -> bool {
        match self {
            ControlView::All => true,
            ControlView::Of(own) => own.as_deref() == Some(colony),
        }
    }
}

impl Service {
    /// Founds a colony.
    pub fn found_colony(&self, who: &Requester, chosen: &KeyedId, wanted: &NewColony) -> Result<Value, Problem> {
        who.must_be_person("founding a colony")?;
        colonies::found(&self.home, "person", wanted, chosen.id.as_deref())
    }

    /// What of the colonies somebody sees: a worker its own, and of one that has none yet, which there are.
    fn view(&self, who: &Requester) -> ControlView {
        match who {
            Requester::Worker { token } => ControlView::Of(self.tokens.colony_of(token)),
            Requester::Person { .. }
            | Requester::Session { .. }
            | Requester::Step { .. }
            | Requester::Reader { .. }
            | Requester::Nobody => ControlView::All,
        }
    }

    /// The colonies.
    pub fn colonies(&self, who: &Requester) -> Vec<Value> {
        let view = self.view(who);
        let mut all = colonies::list(&self.home);
        all.retain(|colony| view == ControlView::Of(None) || view.shows(&colony["colony_id"]));
        all
    }

    /// A crab comes.
    pub fn register_crab(&self, who: &Requester, chosen: &KeyedId, wanted: &Register) -> Result<Value, Problem> {
        let keeper = who.keeper("registering a crab")?;
        self.may_register(who, wanted)?;
        let crab_id = wanted.crab_id.clone().or_else(|| chosen.id.clone());
        self.home.roster.register(&self.home, keeper, &Register { crab_id, ..wanted.clone() })
    }

    /// A crab goes.
    pub fn unregister_crab(&self, who: &Requester, id: &str) -> Result<Value, Problem> {
        let keeper = who.keeper("sending a crab away")?;
        self.home.roster.must_see(keeper, id)?;
        self.home.roster.unregister(&self.home, keeper, id)
    }

    /// The crabs.
    pub fn crabs(&self, who: &Requester) -> Vec<Value> {
        let view = self.view(who);
        let mut all = self.home.roster.list();
        all.retain(|crab| view.shows(&crab["colony_id"]));
        all
    }

    /// A crab listens.
    pub fn connect_crab(&self, who: &Requester, id: &str, post: WorkerSink) -> Result<WorkerConnection, Problem> {
        let keeper = who.keeper("listening as a crab")?;
        self.home.roster.must_see(keeper, id)?;
        self.home.roster.connect(&self.home, keeper, id, post)
    }

    /// A crab's connection is gone.
    pub fn disconnect_crab(&self, id: &str, connection: WorkerConnection) {
        self.home.roster.disconnect(&self.home, id, connection);
    }

    /// A crab gives a sign of life.
    pub fn heard_crab(&self, id: &str) {
        self.home.roster.heard(&self.home, id);
    }

    /// A crab gives a sign of life, and says what it is at.
    pub fn signed_crab(&self, id: &str, sign: &Heartbeat) {
        self.home.roster.signed(&self.home, id, sign);
    }

    /// The attempt that a crab speaks of on its connection.
    pub fn spoken_of(&self, who: &Requester, crab: &str, about: MessageSubject<'_>) -> Result<String, Problem> {
        self.home.roster.spoken_of(&self.home, who.keeper("work on a mission")?, crab, about)
    }

    /// An answer to a crab's message.
    pub fn reply_to_crab(&self, said: &Value, kind: &str, payload: &Value) -> Value {
        self.home.roster.reply(&self.home, said, kind, payload)
    }

    /// A crab begins with a task.
    pub fn start_attempt(&self, who: &Requester, wanted: &StepStart) -> Result<Value, Problem> {
        self.home.roster.start(&self.home, who.keeper("work on a mission")?, wanted)
    }

    /// A crab says how it is going.
    pub fn update_attempt(&self, who: &Requester, wanted: &StepProgress) -> Result<Value, Problem> {
        self.home.roster.update(&self.home, who.keeper("work on a mission")?, wanted)
    }

    /// A crab asks whether it is its turn to bring work into the branch of a mission.
    pub fn merge_turn(&self, who: &Requester, wanted: &AskMergeTurn) -> Result<MergeTurn, Problem> {
        self.home.roster.turn(&self.home, who.keeper("work on a mission")?, wanted)
    }

    /// A crab says how it ended.
    pub fn complete_attempt(&self, who: &Requester, wanted: &StepReport) -> Result<Value, Problem> {
        self.home.roster.complete(&self.home, who.keeper("work on a mission")?, wanted)
    }

    /// Begins a mission.
    pub fn create_mission(&self, who: &Requester, chosen: &KeyedId, wanted: &NewMission) -> Result<Value, Problem> {
        who.must_be_person("beginning a mission")?;
        if let Some(seen) = self.started_before(chosen)? {
            return Ok(missions::mission(&seen));
        }
        missions::create(&self.home, "person", wanted, chosen.id.as_deref())
    }

    /// Missions, oldest first.
    pub fn missions(&self, who: &Requester) -> Result<Vec<Value>, Problem> {
        let view = self.view(who);
        let mut all = missions::list(&self.home, &self.newest_first(true)?);
        all.retain(|mission| view.shows(&mission["colony_id"]));
        Ok(all)
    }

    /// The runs that are missions, newest first; with `all` also those that have ended.
    fn newest_first(&self, all: bool) -> Result<Vec<RunSnapshot>, Problem> {
        let mut runs = self.runs_called(RunKind::Mission, all.then_some(EndedRunsFilter(None)), |_| true)?;
        runs.sort_by(|one, other| (other.card.created, &other.id).cmp(&(one.card.created, &one.id)));
        Ok(runs)
    }

    /// A mission with its tasks.
    pub fn mission(&self, who: &Requester, id: &str) -> Result<Value, Problem> {
        match self.view(who) {
            ControlView::All => missions::show(&self.home, id),
            ControlView::Of(Some(colony)) => missions::show_of(&self.home, id, &colony),
            ControlView::Of(None) => Err(missions::none(id)),
        }
    }

    /// The tasks of a mission, or of all that have not ended.
    pub fn mission_tasks(&self, who: &Requester, mission: Option<&str>) -> Result<Vec<Value>, Problem> {
        match mission {
            Some(id) => match self.mission(who, id)? {
                Value::Object(mut mission) => match mission.remove("tasks") {
                    Some(Value::Array(tasks)) => Ok(tasks),
                    _ => Ok(Vec::new()),
                },
                _ => Ok(Vec::new()),
            },
            None => {
                let (open, view) = (self.newest_first(false)?, self.view(who));
                let missions = open.iter().rev().filter(|seen| view.shows_colony(seen.colony()));
                Ok(missions.flat_map(|seen| missions::tasks(&self.home, seen)).collect())
            }
        }
    }

    /// The workflows that a mission can have.
    pub fn mission_workflows(&self) -> Vec<String> {
        missions::names(&self.home)
    }

    /// Waits until the scheduler has gone round, and says how many tasks it has assigned since it was last asked. It goes
    /// round by itself whenever something changes.
    pub fn tick(&self, who: &Requester) -> Result<Value, Problem> {
        who.keeper("the scheduler")?;
        crate::home::registry::settle(&self.home)?;
        Ok(json!({ "ok": true, "assigned": self.home.roster.take_assigned() }))
    }

    /// What stands where, in numbers and lists.
    pub fn status(&self, who: &Requester) -> Result<Value, Problem> {
        let view = self.view(who);
        let mut runs = self.newest_first(true)?;
        runs.retain(|seen| view.shows_colony(seen.colony()));
        let mut missions = missions::list(&self.home, &runs);
        missions.retain(|mission| view.shows(&mission["colony_id"]));
        let open = runs.iter().filter(|seen| seen.state.end.is_none());
        let tasks: Vec<Value> = open.flat_map(|seen| missions::tasks(&self.home, seen)).collect();
        let crabs = self.crabs(who);
        Ok(json!({
            "generated_at_ms": self.home.clock.now().0,
            "summary": {
                "total_crabs": crabs.len(),
                "crabs": counted(&crabs, "state"),
                "missions": counted(&missions, "status"),
                "tasks": counted(&tasks, "status"),
            },
            "colonies": self.colonies(who),
            "crabs": crabs,
            "missions": missions,
            "tasks": tasks,
        }))
    }
}

/// How many there are of each.
fn counted(items: &[Value], key: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for item in items {
        *counts.entry(item[key].as_str().unwrap_or_default().to_owned()).or_insert(0) += 1;
    }
    counts
}
