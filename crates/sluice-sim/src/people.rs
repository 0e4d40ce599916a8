//! What people do in a simulated life: they start runs, answer what is asked, cancel, and want things tried again. What
//! they do with tasks stands in `tasks`.

mod tasks;

use sluice_core::id::RunId;
use sluice_core::run::{RunInput, RunParameters};
use sluice_engine::actor::ActorInput;
use sluice_engine::reactor::{ReactorMessage, ReactorToken};
use sluice_engine::run_actor::RunActor;
use sluice_store::StreamId;

use crate::bug::SimBug;
use crate::definitions;
use crate::hands::is_task;
use crate::watch::run_of;
use crate::work::{ELSEWHERE, OWN};
use crate::world::{SimEvent, SimLife, SimRequest};

impl SimLife {
    pub(crate) fn person(&mut self) {
        if self.chance.percent(20) {
            self.here = self.some_engine();
        }
        if !self.is_heard() {
            return;
        }
        if self.chance.percent(50) {
            return self.person_with_tasks();
        }
        let queued = self.engine().waiting.iter().map(|it| &it.stream).find(|stream| !is_task(stream)).cloned();
        if let Some(stream) = queued.filter(|_| self.chance.percent(30)) {
            return self.says(stream, RunInput::Cancel { reason: "not yet, and never".into() });
        }
        let runs = self.watch.runs();
        if runs.is_empty() || self.chance.percent(60) {
            return self.start_run();
        }
        let stream = self.chance.pick(&runs).clone();
        let input = match self.chance.below(10) {
            0 => RunInput::Cancel { reason: "enough".into() },
            1..=3 => RunInput::Retry { step: None, guidance: None },
            _ => match self.open_question(&stream) {
                Some(input) => input,
                None => return,
            },
        };
        self.says(stream, input);
    }

    fn says(&mut self, stream: StreamId, input: RunInput) {
        self.note(&format!("{stream}: a person says {input:?}"));
        self.number += 1;
        let token = ReactorToken(self.number);
        self.engine().asked.insert(token, SimRequest::Hears(stream.clone()));
        self.hear(ReactorMessage::Say { token: Some(token), stream, said: ActorInput::Run(input) });
    }

    fn start_run(&mut self) {
        self.number += 1;
        let id: RunId = format!("run-{:05}", self.number).parse().expect("an id");
        let known = self.chance.pick(definitions::recipes());
        let given = RunParameters { prompt: "do it".into(), ..RunParameters::of(id.clone()) };
        self.note(&format!("{id}: starts {}", known.plan.recipe.name));
        let now = self.moment();
        let group = *self.chance.pick(&[OWN, ELSEWHERE]);
        let (actor, change) = RunActor::create(known.plan.clone(), known.digest.to_string(), group.into(), given, now);
        let (token, stream) = (ReactorToken(self.number), StreamId::new(id.as_str()));
        self.waits_for(token, SimRequest::Begins(stream.clone(), None));
        let blobs = vec![(known.digest, b"pinned".to_vec())];
        let actor = self.run(actor);
        self.hear(ReactorMessage::Create { token: Some(token), stream, actor, change, blobs });
    }

    fn waits_for(&mut self, token: ReactorToken, asked: SimRequest) {
        self.engine().asked.insert(token, asked);
        let patience = 300 + self.soon(5_000);
        self.at(patience, SimEvent::GivesUp(token));
    }

    /// Somebody waits no longer. What can be taken back never happens; what cannot is on its way, and they are told so.
    pub(crate) fn gives_up(&mut self, token: ReactorToken) -> Result<(), String> {
        let engine = &mut self.engines[self.here];
        if !matches!(engine.asked.get(&token), Some(SimRequest::Begins(..))) {
            return Ok(());
        }
        let is_broken = self.bug == Some(SimBug::DoesWhatWasGivenUp);
        if !is_broken && !engine.reactor.can_withdraw(token) {
            return Ok(());
        }
        if !is_broken {
            engine.reactor.withdraw(token);
        }
        let Some(SimRequest::Begins(stream, kept)) = engine.asked.remove(&token) else { return Ok(()) };
        engine.kept.retain(|name| Some(name) != kept.as_ref());
        self.note(&format!("{stream}: whoever wanted it gives it up"));
        self.watch.denied(&stream)
    }

    fn open_question(&mut self, stream: &StreamId) -> Option<RunInput> {
        let stored = self.reader.load(stream).ok()??;
        let state = run_of(&stored).ok()?;
        let (_, question) = state.question().filter(|_| state.end.is_none())?;
        let option = (*self.chance.pick(question.kind.options())).to_owned();
        Some(RunInput::Answer { question: question.id, option, message: None })
    }

    /// When nothing else is due, people answer what is asked, so that every life comes to an end.
    pub(crate) fn answer_somebody(&mut self) -> bool {
        let runs = self.watch.runs();
        let asked = runs.into_iter().find_map(|stream| self.open_question(&stream).map(|input| (stream, input)));
        let Some((stream, input)) = asked else { return false };
        self.says(stream, input);
        true
    }
}
