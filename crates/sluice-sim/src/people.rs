//! What people do in a simulated life: they start runs, answer what is asked, cancel, and want things tried again. What
//! they do with tasks stands in `tasks`.

mod tasks;

use sluice_core::machine::Moment;
use sluice_core::run::{Given, Input, Mode, Origin};
use sluice_engine::actor::Said;
use sluice_engine::reactor::{Message, Token};
use sluice_engine::run_actor::RunActor;
use sluice_store::StreamId;

use crate::definitions;
use crate::watch::run_of;
use crate::world::{Asked, Life};

impl Life {
    pub(crate) fn person(&mut self) {
        if self.chance.percent(50) {
            return self.person_with_tasks();
        }
        let runs = self.watch.runs();
        if runs.is_empty() || self.chance.percent(60) {
            return self.start_run();
        }
        let stream = self.chance.pick(&runs).clone();
        let input = match self.chance.below(10) {
            0 => Input::Cancel { reason: "enough".into() },
            1..=3 => Input::Retry { step: None, guidance: None },
            _ => match self.open_question(&stream) {
                Some(input) => input,
                None => return,
            },
        };
        self.note(&format!("{stream}: a person says {input:?}"));
        self.reactor.receive(Message::Say { token: None, stream, said: Said::Run(input) }, Moment(self.now));
    }

    fn start_run(&mut self) {
        self.number += 1;
        let id = format!("run-{:05}", self.number);
        let known = self.chance.pick(definitions::recipes());
        let given = Given {
            id: id.clone(),
            mode: Mode::Engine,
            inputs: Vec::new(),
            prompt: "do it".into(),
            workspace: String::new(),
            work_order: String::new(),
            origin: Origin::default(),
        };
        self.note(&format!("{id}: starts {}", known.plan.recipe.name));
        let now = Moment(self.now);
        let (actor, change) = RunActor::create(known.plan.clone(), known.digest.to_string(), "sim".into(), given, now);
        let (token, stream) = (Token(self.number), StreamId::new(id));
        self.asked.insert(token, Asked::Begins(stream.clone(), None));
        let blobs = vec![(known.digest, b"pinned".to_vec())];
        let message = Message::Create { token: Some(token), stream, actor: Box::new(actor), change, blobs };
        self.reactor.receive(message, now);
    }

    fn open_question(&mut self, stream: &StreamId) -> Option<Input> {
        let stored = self.reader.load(stream).ok()??;
        let state = run_of(&stored).ok()?;
        let (_, question) = state.question().filter(|_| state.end.is_none())?;
        let option = (*self.chance.pick(question.kind.options())).to_owned();
        Some(Input::Answer { question: question.id, option, message: None })
    }

    /// When nothing else is due, people answer what is asked, so that every life comes to an end.
    pub(crate) fn answer_somebody(&mut self) -> bool {
        let runs = self.watch.runs();
        let asked = runs.into_iter().find_map(|stream| self.open_question(&stream).map(|input| (stream, input)));
        let Some((stream, input)) = asked else { return false };
        self.note(&format!("{stream}: a person says {input:?}"));
        self.reactor.receive(Message::Say { token: None, stream, said: Said::Run(input) }, Moment(self.now));
        true
    }
}
