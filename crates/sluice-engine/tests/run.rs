//! A run as an actor: what agents ask and say outlives the engine, and the log says who spoke.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::sync::Arc;

use sluice_core::machine::{Moment, RefusalCode};
use sluice_core::recipe::StepId;
use sluice_core::run::{
    AttemptPart, AttemptReport, QuestionRequest, RunAsker, RunInput, RunMode, RunOrigin, RunParameters, RunPlan,
    Speaker, StepOutcome,
};
use sluice_dialect::prompts::NoPrompts;
use sluice_dialect::{Definition, DefinitionFile, Sources, load};
use sluice_engine::actor::{Actor, ActorChange, ActorInput, EffectOutcome};
use sluice_engine::run_actor::RunActor;
use sluice_store::{OpenEffect, StoredStream};

const RECIPE: &str = "name: one\nsteps:\n  - {name: build, timeout: 1h, prompt: build it}\n";
const BY: Speaker = Speaker { step: StepId(0), attempt: 1, part: AttemptPart::Whole };

fn plan() -> Arc<RunPlan> {
    let source = DefinitionFile { path: "one.yml", bytes: RECIPE.as_bytes() };
    match load(&source, &mut NoPrompts, &mut Sources::default()).definition {
        Some(Definition::Recipe(recipe)) => Arc::new(RunPlan::new(recipe)),
        _ => panic!("not a recipe"),
    }
}

fn create() -> (RunActor, ActorChange) {
    let given = RunParameters {
        id: "run-1".parse().unwrap(),
        mode: RunMode::Engine,
        inputs: Vec::new(),
        prompt: String::new(),
        workspace: String::new(),
        scratch: String::new(),
        work_order: String::new(),
        origin: RunOrigin::default(),
    };
    RunActor::create(plan(), "d1".into(), "local".into(), given, Moment(0))
}

/// What a store would keep: the changes one after the other.
#[derive(Default)]
struct Kept {
    stored: Option<StoredStream>,
    /// Who caused each event, and what it was.
    log: Vec<(String, String)>,
}

impl Kept {
    fn keep(&mut self, change: ActorChange) {
        self.log.extend(change.events.iter().map(|event| (event.actor.clone(), event.kind.clone())));
        let stored = self.stored.get_or_insert_with(|| StoredStream {
            version: 0,
            header: change.header.clone(),
            rows: Vec::new(),
            effects: Vec::new(),
            timers: Vec::new(),
        });
        stored.version += change.events.len() as u64;
        stored.header = change.header;
        for (key, row) in change.rows {
            stored.rows.retain(|(known, _)| *known != key);
            stored.rows.extend(row.map(|row| (key, row)));
        }
        stored.effects.extend(change.effects.into_iter().map(|effect| OpenEffect { effect, lease: None }));
        stored.effects.retain(|open| !change.settled.contains(&open.effect.id));
        for (key, at) in change.timers {
            stored.timers.retain(|(known, _)| *known != key);
            stored.timers.extend(at.map(|at| (key, at)));
        }
    }

    fn timers(&self) -> Vec<&str> {
        self.stored.as_ref().unwrap().timers.iter().map(|(key, _)| key.as_str()).collect()
    }

    /// The run as an engine finds it that was started again; it is where the one before it was.
    fn again(&self, before: &RunActor) -> RunActor {
        let found = RunActor::restore(plan(), self.stored.as_ref().unwrap()).unwrap();
        assert_eq!(found.state(), before.state());
        assert_eq!(found.image(), before.image());
        found
    }
}

fn by(asker: RunAsker, input: RunInput) -> ActorInput {
    ActorInput::Run(RunInput::By { asker, input: Box::new(input) })
}

#[test]
fn what_an_agent_asks_and_says_outlives_the_engine() {
    let (mut run, change) = create();
    let mut kept = Kept::default();
    kept.keep(change);
    assert_eq!(kept.timers(), ["timeout.0.1"]);

    let ask =
        QuestionRequest { text: "which?".into(), options: vec!["a".into(), "b".into()], default: None, wait: None };
    let asking = || by(RunAsker::Agent(BY), RunInput::Ask { by: BY, ask: ask.clone() });
    kept.keep(run.take(asking(), Moment(1)).unwrap().unwrap());
    assert_eq!(kept.timers(), [""; 0]);
    assert_eq!(kept.stored.as_ref().unwrap().header.card.status, "held");
    let mut run = kept.again(&run);
    // Its command was cut off, so the agent asks once more: the question is there, and nothing is stored.
    assert!(run.take(asking(), Moment(2)).unwrap().is_none());

    let answer = || RunInput::Answer { question: 1, option: "b".into(), message: None };
    let refused = run.take(by(RunAsker::Agent(BY), answer()), Moment(3)).unwrap_err();
    assert_eq!(refused.code, RefusalCode::NotYours);
    kept.keep(run.take(by(RunAsker::Person, answer()), Moment(3)).unwrap().unwrap());
    assert_eq!(kept.timers(), ["timeout.0.1"]);
    let mut run = kept.again(&run);
    let told = run.state().steps[0].asked(AttemptPart::Whole, &ask).and_then(|it| it.answer.clone()).unwrap();
    assert_eq!(told.option, "b");

    let outcome = StepOutcome { result: Some("PASS".into()), ..StepOutcome::default() };
    let report = AttemptReport::Completed(outcome);
    kept.keep(run.take(by(RunAsker::Agent(BY), RunInput::Said { by: BY, report }), Moment(4)).unwrap().unwrap());
    let mut run = kept.again(&run);
    let lost = ActorInput::Lost { effect: "0.1.whole".into() };
    kept.keep(run.take(lost, Moment(5)).unwrap().unwrap());
    assert_eq!(run.state().status(), "completed");
    kept.again(&run);
    let who = |kind: &str| kept.log.iter().find(|(_, is)| is == kind).map(|(who, _)| who.as_str());
    assert_eq!(who("step.asked"), Some("step build"));
    assert_eq!(who("run.answered"), Some("person"));
    assert_eq!(who("step.said"), Some("step build"));
    assert_eq!(who("step.completed"), Some("engine"));
}

#[test]
fn a_deadline_is_a_timer_that_answers() {
    let (mut run, change) = create();
    let mut kept = Kept::default();
    kept.keep(change);
    let wait = Some(std::time::Duration::from_secs(60));
    let ask = QuestionRequest { text: "which?".into(), options: Vec::new(), default: Some("either".into()), wait };
    kept.keep(run.take(ActorInput::Run(RunInput::Ask { by: BY, ask: ask.clone() }), Moment(0)).unwrap().unwrap());
    assert_eq!(kept.stored.as_ref().unwrap().timers, [("question.1".to_owned(), 60_000)]);
    let mut run = kept.again(&run);
    kept.keep(run.take(ActorInput::Timer("question.1".into()), Moment(60_000)).unwrap().unwrap());
    assert_eq!(kept.timers(), ["timeout.0.1"]);
    let ended = EffectOutcome::Run(AttemptReport::Completed(StepOutcome::default()));
    kept.keep(
        run.take(ActorInput::Outcome { effect: "0.1.whole".into(), outcome: ended }, Moment(60_001)).unwrap().unwrap(),
    );
    assert_eq!(kept.timers(), [""; 0]);
    assert!(kept.again(&run).state().end.is_some());
}

#[test]
fn what_an_earlier_engine_settled_without_a_report_has_failed() {
    let (run, change) = create();
    let mut kept = Kept::default();
    kept.keep(change);
    assert!(kept.again(&run).stranded().is_empty(), "its performance is open");
    kept.stored.as_mut().unwrap().effects.clear();
    let mut run = kept.again(&run);
    let said = run.stranded();
    assert_eq!(said.len(), 1);
    for said in said {
        kept.keep(run.take(said, Moment(1)).unwrap().unwrap());
    }
    assert_eq!(run.state().status(), "failed");
    assert!(kept.again(&run).stranded().is_empty());
}
