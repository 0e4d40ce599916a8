//! The performances of runs on the engine's own machine, by their names: scripts and agents that run whether or not an
//! engine does. This is the world's own book of what runs and how it ended, and it is looked at before something is begun.

use std::collections::BTreeMap;

use sluice_core::recipe::FailureKind;
use sluice_core::run::{AttemptReport, RunEffect, RunJob, StepOutcome};
use sluice_engine::actor::EffectOutcome;
use sluice_engine::codec::run_effect;
use sluice_engine::reactor::Assignment;
use sluice_store::StreamId;

use crate::bug::SimBug;
use crate::hands::is_task;
use crate::watch::thing;
use crate::world::{CALM, SimEvent, SimLife};

pub(crate) fn failed(error: &str) -> EffectOutcome {
    EffectOutcome::Run(AttemptReport::Failed {
        kind: FailureKind::Failed,
        error: error.into(),
        outcome: StepOutcome::default(),
    })
}

/// A performance: where it runs, and its name.
type SimWorkName = (usize, StreamId, String);

enum SimWorkStage {
    Runs {
        until: i64,
    },
    /// Its time is not up, and it does nothing.
    Paused {
        left: i64,
    },
    Over(EffectOutcome),
}

struct SimWork {
    who: u64,
    effect: String,
    stage: SimWorkStage,
}

#[derive(Default)]
pub(crate) struct SimWorks(BTreeMap<SimWorkName, SimWork>);

impl SimWorks {
    fn of_home(&self, home: usize) -> Vec<SimWorkName> {
        self.0.keys().filter(|(at, _, _)| *at == home).cloned().collect()
    }

    pub(crate) fn running(&self) -> impl Iterator<Item = (&StreamId, &str)> {
        let runs = self.0.iter().filter(|(_, work)| matches!(work.stage, SimWorkStage::Runs { .. }));
        runs.map(|((_, stream, effect), _)| (stream, effect.as_str()))
    }
}

impl SimLife {
    pub(crate) fn carries_out_for_run(&mut self, it: Assignment) -> Result<(), String> {
        let wanted = run_effect::read(&it.effect.data).map_err(|error| error.to_string())?;
        let RunEffect::Perform(wanted) = wanted else {
            let wait = self.soon(600);
            self.at(wait, SimEvent::Does(it));
            return Ok(());
        };
        let is_withdrawn = it.withdrawal.is_withdrawn() && !self.has(SimBug::BeginsWhatIsWithdrawn);
        if is_withdrawn || self.engine().stopped.contains(&(it.stream.clone(), it.effect.id.clone())) {
            return self.is_over(it, failed("it was ended before it began"));
        }
        match &wanted.job {
            RunJob::Task { .. } => self.awaits(it),
            RunJob::Agent { .. } | RunJob::Arbiter { .. } => self.performs(it, true),
            RunJob::Script(_) | RunJob::Gate(_) => self.performs(it, false),
        }
    }

    /// What a performance is called. Tries of a part that share a name find each other's end.
    fn called(&self, effect: &str) -> String {
        match self.has(SimBug::AdoptsTheDead) {
            true => thing(effect),
            false => effect.to_owned(),
        }
    }

    /// Begins a performance, or finds the one that was begun under this name: an agent is found again, a script is ended
    /// and begun anew.
    fn performs(&mut self, it: Assignment, is_agent: bool) -> Result<(), String> {
        let (stream, effect) = (it.stream.clone(), it.effect.id.clone());
        let name = (self.here, stream.clone(), self.called(&effect));
        match self.works.0.get(&name).map(|work| (&work.stage, work)) {
            Some((SimWorkStage::Over(outcome), dead)) if is_agent => {
                let outcome = outcome.clone();
                self.watch.found_dead(&stream, &dead.effect)?;
                self.note(&format!("{stream}: {effect} is found dead"));
                return self.is_over(it, outcome);
            }
            Some((SimWorkStage::Runs { .. } | SimWorkStage::Paused { .. }, _)) if is_agent => {
                self.note(&format!("{stream}: {effect} is found at work"));
                self.engine().attending.insert((stream, name.2), it);
                return Ok(());
            }
            Some((SimWorkStage::Runs { .. }, left)) => self.watch.ends(&stream, &left.effect, left.who),
            Some((SimWorkStage::Paused { .. } | SimWorkStage::Over(_), _)) | None => {}
        }
        self.performances += 1;
        let who = self.performances;
        self.note(&format!("{stream}: {effect} begins ({who})"));
        self.watch.begins(&stream, &effect, who)?;
        let wait = if self.chance.percent(5) { self.soon(40_000) } else { self.soon(2_000) };
        let stage = SimWorkStage::Runs { until: self.now + wait };
        let (home, _, called) = name.clone();
        self.works.0.insert(name, SimWork { who, effect, stage });
        self.engine().attending.insert((stream.clone(), called.clone()), it);
        self.at(wait, SimEvent::Works { home, stream, effect: called, who });
        Ok(())
    }

    /// A performance comes to its end, unless it was paused or ended meanwhile.
    pub(crate) fn work_ends(&mut self, home: usize, stream: &StreamId, effect: &str, who: u64) {
        self.here = home;
        let now = self.now;
        let name = (home, stream.clone(), effect.to_owned());
        let is_due =
            |work: &SimWork| work.who == who && matches!(work.stage, SimWorkStage::Runs { until } if until <= now);
        if self.works.0.get(&name).is_some_and(is_due) {
            let outcome = EffectOutcome::Run(self.report());
            self.end_work(&name, outcome);
        }
    }

    /// A performance is over. Whoever waits for its end hears of it.
    fn end_work(&mut self, name: &SimWorkName, outcome: EffectOutcome) {
        let (home, stream, called) = name;
        let Some(work) = self.works.0.get_mut(name) else { return };
        work.stage = SimWorkStage::Over(outcome.clone());
        let who = work.who;
        self.watch.ends(stream, &work.effect, who);
        self.here = *home;
        self.note(&format!("{stream}: {called} ends ({who})"));
        if let Some(assignment) = self.engine().attending.remove(&(stream.clone(), called.clone())) {
            let wait = self.soon(100);
            self.at(wait, SimEvent::Reports { assignment, outcome });
        }
    }

    /// What a run wants beside its steps is done: something is ended, or somebody is told.
    pub(crate) fn does(&mut self, it: Assignment) -> Result<(), String> {
        if let Some(effect) = it.effect.id.strip_prefix("stop.") {
            let name = (self.here, it.stream.clone(), self.called(effect));
            self.engine().stopped.insert((it.stream.clone(), effect.to_owned()));
            let is_over = self.works.0.get(&name).is_none_or(|work| matches!(work.stage, SimWorkStage::Over(_)));
            if !is_over {
                self.end_work(&name, failed("it was ended"));
            }
            self.awaits_no_more(&it.stream, effect);
        }
        self.is_over(it, EffectOutcome::Done)
    }

    /// What a home has started does nothing for a while.
    pub(crate) fn pauses_work(&mut self, home: usize) {
        for name in self.works.of_home(home) {
            let (now, work) = (self.now, self.works.0.get_mut(&name));
            let Some((until, work)) = work.and_then(|work| match work.stage {
                SimWorkStage::Runs { until } => Some((until, work)),
                SimWorkStage::Paused { .. } | SimWorkStage::Over(_) => None,
            }) else {
                continue;
            };
            work.stage = SimWorkStage::Paused { left: (until - now).max(0) };
            self.watch.ends(&name.1, &work.effect, work.who);
        }
        self.ground.pauses(home);
    }

    pub(crate) fn resumes_work(&mut self, home: usize) -> Result<(), String> {
        self.note("what it has started goes on");
        for name in self.works.of_home(home) {
            let Some((left, work)) = self.works.0.get_mut(&name).and_then(|work| match work.stage {
                SimWorkStage::Paused { left } => Some((left, work)),
                SimWorkStage::Runs { .. } | SimWorkStage::Over(_) => None,
            }) else {
                continue;
            };
            let ((home, stream, effect), who) = (name, work.who);
            work.stage = SimWorkStage::Runs { until: self.now + left };
            self.watch.resumes(&stream, &work.effect, who)?;
            self.at(left, SimEvent::Works { home, stream, effect, who });
        }
        for (stream, session, stir) in self.ground.resumes(home)? {
            let wait = self.soon(1_000);
            self.at(wait, SimEvent::Agent { stream, session, stir });
        }
        Ok(())
    }

    pub(crate) fn ends_what_it_started(&mut self, home: usize) {
        for name in self.works.of_home(home) {
            if let Some(work) = self.works.0.remove(&name) {
                self.watch.ends(&name.1, &work.effect, work.who);
            }
        }
        self.ground.ends(home);
    }

    /// When everything has come to rest nothing runs for a run that is over.
    pub(crate) fn is_quiet(&self) -> Result<(), String> {
        match self.works.running().next() {
            Some((stream, effect)) => Err(format!("{stream}: {effect} runs on, and nobody knows")),
            None => Ok(()),
        }
    }

    /// Whether something of what an effect wants is there already.
    pub(crate) fn is_there(&self, it: &Assignment) -> Result<bool, String> {
        match is_task(&it.stream) {
            true => self.is_done_already(it),
            false => Ok(self.works.0.contains_key(&(self.here, it.stream.clone(), self.called(&it.effect.id)))),
        }
    }

    pub(crate) fn panics(&mut self) -> bool {
        self.now < CALM && self.chance.percent(1)
    }

    /// Something that the engine's hands were at is over, and a thread is free.
    pub(crate) fn is_over(&mut self, assignment: Assignment, outcome: EffectOutcome) -> Result<(), String> {
        let wait = self.soon(100);
        self.at(wait, SimEvent::Reports { assignment, outcome });
        Ok(())
    }

    pub(crate) fn has(&self, bug: SimBug) -> bool {
        self.bug == Some(bug)
    }
}
