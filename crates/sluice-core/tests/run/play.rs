//! Plays a script against a recipe and writes down what happens.
//!
//! ```text
//! complete STEP[/PART] [result=R] [output=JSON] [exit=N]      fail STEP[/PART] [kind] text      lost STEP[/PART]
//! timer timeout|backoff STEP · timer run · timer question N      answer N OPTION [message]      retry [STEP] [guidance]
//! ask STEP[/PART] text [options=A,B] [default=A] [wait=SECONDS]      say STEP[/PART] complete|fail [as above]
//! person: LINE · agent STEP[/PART]: LINE · stranger: LINE
//! cancel      hand STEP start|complete|fail|skip      close      start by hand      wait SECONDS
//! ```

use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

use sluice_core::machine::{Decision, Moment, Refusal};
use sluice_core::recipe::{Data, FailureKind, StepId, StepWorkspace};
use sluice_core::run::law::{StepHappening, StepStatusKind};
use sluice_core::run::{
    Answerer, AttemptPart, AttemptReport, ManualStepInput, QuestionRequest, RunAsker, RunEffect, RunEvent, RunInput,
    RunJob, RunMode, RunOrigin, RunParameters, RunPlan, RunState, Speaker, StepOutcome, TimerKey, begin, decide,
};
use sluice_dialect::prompts::NoPrompts;
use sluice_dialect::{Definition, DefinitionFile, Sources, load};

/// A row of the law that a script took.
pub(crate) type Row = (StepStatusKind, StepHappening);

/// The plan of a recipe.
pub(crate) fn plan(recipe: &str) -> RunPlan {
    usable_plan(recipe).unwrap_or_else(|problems| panic!("not a recipe: {problems}"))
}

/// The plan of a recipe, if it can be used.
pub(crate) fn usable_plan(recipe: &str) -> Result<RunPlan, String> {
    let name = if recipe.contains("[[steps]]") { "play.toml" } else { "play.yml" };
    let source = DefinitionFile { path: name, bytes: recipe.as_bytes() };
    let loaded = load(&source, &mut NoPrompts, &mut Sources::new());
    match loaded.definition {
        Some(Definition::Recipe(recipe)) => Ok(RunPlan::new(recipe)),
        Some(Definition::Lifecycle(_)) | None => Err(format!("{:#?}", loaded.problems)),
    }
}

/// A run that is being played.
pub(crate) struct Play {
    pub(crate) plan: RunPlan,
    pub(crate) state: Option<RunState>,
    pub(crate) now: i64,
    pub(crate) log: String,
    pub(crate) rows: BTreeSet<Row>,
    /// Why it came to wait for a person, each time.
    pub(crate) blocked: Vec<String>,
    mode: RunMode,
}

/// Plays `script` against `recipe` and gives the log.
pub(crate) fn play(recipe: &str, script: &str) -> String {
    played(recipe, script).log
}

pub(crate) fn played(recipe: &str, script: &str) -> Play {
    let (log, rows, blocked) = (String::new(), BTreeSet::new(), Vec::new());
    let mut play = Play { plan: plan(recipe), state: None, now: 0, log, rows, blocked, mode: RunMode::Engine };
    let mut lines = script.lines().map(str::trim).filter(|line| !line.is_empty()).peekable();
    if lines.next_if_eq(&"start by hand").is_some() {
        play.mode = RunMode::ByHand;
    }
    play.begin(&[]);
    for line in lines {
        let _ = writeln!(play.log, "> {line}");
        play.line(line);
    }
    play
}

impl Play {
    fn begin(&mut self, inputs: &[(String, Data)]) {
        let has_scratch = self.plan.recipe.working(|it| it == StepWorkspace::Scratch).is_some();
        let given = RunParameters {
            id: "run-1".parse().unwrap(),
            mode: self.mode,
            inputs: inputs.to_vec(),
            prompt: "Fix issue 6".into(),
            workspace: "/tree".into(),
            scratch: if has_scratch { "/scratch".to_owned() } else { String::new() },
            work_order: "wo-7".into(),
            origin: RunOrigin::default(),
        };
        self.state = Some(RunState::new(&self.plan, given.clone(), Moment(0)));
        let decision = begin(&self.plan, given, Moment(0));
        self.take(Ok(decision));
    }

    /// Says one line and writes down the answer.
    pub(crate) fn line(&mut self, line: &str) {
        if let Some(seconds) = line.strip_prefix("wait ") {
            self.now += 1000 * seconds.parse::<i64>().unwrap();
            return;
        }
        let input = self.read(line);
        let answer = decide(&self.plan, self.state.as_ref().unwrap(), &input, Moment(self.now));
        self.take(answer);
    }

    pub(crate) fn take(&mut self, answer: Result<Decision<RunEvent, RunEffect>, Refusal>) {
        match answer {
            Err(refusal) => {
                let _ = writeln!(self.log, "refused: {refusal}");
                if let Some(hint) = &refusal.hint {
                    let _ = writeln!(self.log, "hint: {hint}");
                }
            }
            Ok(decision) => {
                for event in &decision.events {
                    self.apply(event);
                    match event {
                        RunEvent::Blocked { reason, .. } => {
                            self.blocked.push(reason.clone());
                            continue;
                        }
                        RunEvent::AttemptFailed { .. } => continue,
                        _ => {}
                    }
                    let line = self.show_event(event);
                    let _ = writeln!(self.log, "{line}");
                }
                for effect in &decision.effects {
                    let line = self.show_effect(effect);
                    let _ = writeln!(self.log, "    {line}");
                }
            }
        }
    }

    /// Applies an event, notes the rows of the law it takes, and checks that what is at hand is what would be found.
    fn apply(&mut self, event: &RunEvent) {
        let state = self.state.as_mut().unwrap();
        let before: Vec<StepStatusKind> = state.steps.iter().map(|step| step.status.kind()).collect();
        state.apply(&self.plan, event);
        let happening = happening(event);
        for (index, (step, before)) in state.steps.iter().zip(&before).enumerate() {
            let named = event.step().is_some_and(|id| id.0 as usize == index);
            if named || step.status.kind() != *before {
                self.rows.extend(happening.map(|happening| (*before, happening)));
            }
        }
        let mut restored = RunState::restore(
            &self.plan,
            state.given.clone(),
            state.started,
            state.end.clone(),
            state.steps.clone(),
            state.items.clone(),
            state.questions,
        );
        restored.ending.clone_from(&state.ending);
        assert_eq!(*state, restored, "what is at hand is not what the steps say, after {event:?}");
    }

    fn step(&self, name: &str) -> StepId {
        self.plan.recipe.find(name).unwrap_or_else(|| panic!("no step {name}"))
    }

    /// The agent of `STEP[/PART]`, in its newest attempt unless `attempt=` says otherwise.
    fn speaker(&self, words: &[&str]) -> Speaker {
        let (name, part) = words[1].split_once('/').map_or((words[1], AttemptPart::Whole), |(name, part)| {
            (name, AttemptPart::parse(part).unwrap_or_else(|| panic!("no part {part}")))
        });
        let step = self.step(name);
        let state = self.state.as_ref().unwrap();
        let under_way = state.under_way().into_iter().find(|it| (it.0, it.2) == (step, part));
        let attempt = under_way.map_or(state.step(step).attempts, |(_, attempt, _)| attempt);
        Speaker { step, attempt: value(words, "attempt").map_or(attempt, |number| number.parse().unwrap()), part }
    }

    fn read(&self, line: &str) -> RunInput {
        if let Some((who, line)) = line.split_once(": ") {
            let asker = match who.split_once(' ').unwrap_or((who, "")) {
                ("person", _) => RunAsker::Person,
                ("stranger", _) => RunAsker::Stranger,
                _ => RunAsker::Agent(self.speaker(&who.split(' ').collect::<Vec<_>>())),
            };
            return RunInput::By { asker, input: Box::new(self.read(line)) };
        }
        let words: Vec<&str> = line.split(' ').collect();
        let rest = |from: usize| Some(words[from.min(words.len())..].join(" ")).filter(|text| !text.is_empty());
        match words[0] {
            "complete" | "fail" | "lost" => self.ended(&words),
            "ask" => RunInput::Ask { by: self.speaker(&words), ask: ask(&words) },
            "say" => {
                let by = self.speaker(&words);
                let end = self.ended(&[&[words[2], words[1]], &words[3..]].concat());
                let RunInput::Ended { report, .. } = end else { panic!("say complete or fail") };
                RunInput::Said { by, report }
            }
            "timer" => RunInput::Timer(match words[1] {
                "run" => TimerKey::Run,
                "question" => TimerKey::Question(words[2].parse().unwrap()),
                kind => {
                    let step = self.step(words[2]);
                    let state = self.state.as_ref().unwrap().step(step);
                    let attempt = if kind == "timeout" { state.since } else { state.attempts };
                    let attempt = words.get(3).map_or(attempt, |number| number.parse().unwrap());
                    if kind == "timeout" { TimerKey::Timeout(step, attempt) } else { TimerKey::Backoff(step, attempt) }
                }
            }),
            "answer" => {
                RunInput::Answer { question: words[1].parse().unwrap(), option: words[2].into(), message: rest(3) }
            }
            "retry" => RunInput::Retry { step: words.get(1).map(|name| self.step(name)), guidance: rest(2) },
            "cancel" => RunInput::Cancel { reason: rest(1).unwrap_or_default() },
            "close" => RunInput::Close { summary: rest(1).unwrap_or_default() },
            "hand" => RunInput::ByHand {
                step: self.step(words[1]),
                what: match words[2] {
                    "start" => ManualStepInput::Start,
                    "complete" => {
                        ManualStepInput::Complete(StepOutcome { summary: "done".into(), ..StepOutcome::default() })
                    }
                    "fail" => ManualStepInput::Fail(rest(3).unwrap_or_default()),
                    "skip" => ManualStepInput::Skip,
                    other => panic!("by hand: {other}"),
                },
            },
            other => panic!("no input `{other}`"),
        }
    }

    fn ended(&self, words: &[&str]) -> RunInput {
        let Speaker { step, attempt, part } = self.speaker(words);
        let name = self.name(step);
        let value = |key: &str| value(words, key);
        let outcome = StepOutcome {
            summary: value("summary").map_or(format!("{name} did it"), str::to_owned),
            result: value("result").map(str::to_owned),
            output: value("output").map_or(Data::Null, data),
            exit_code: value("exit").map(|code| code.parse().unwrap()),
            stderr: None,
            commit: None,
            usage: None,
        };
        let kind =
            FailureKind::ALL.into_iter().find(|kind| words.contains(&kind.word())).unwrap_or(FailureKind::Failed);
        match words[0] {
            "complete" => RunInput::Ended { step, attempt, part, report: AttemptReport::Completed(outcome) },
            "fail" => {
                let error = value("error").map_or("it broke".into(), |word| format!("{word}: it broke"));
                let report = AttemptReport::Failed { kind, error, outcome };
                RunInput::Ended { step, attempt, part, report }
            }
            _ => RunInput::Lost { step, attempt, part },
        }
    }

    fn name(&self, id: StepId) -> String {
        self.plan.recipe.step(id).name.to_string()
    }

    fn show_event(&self, event: &RunEvent) -> String {
        let step = event.step().map(|id| self.name(id)).unwrap_or_default();
        match event {
            RunEvent::Started { .. } => "run started".into(),
            RunEvent::StepReady(_) => format!("{step} ready"),
            RunEvent::StepStarted { attempt, items, .. } => match items {
                Some(items) => format!("{step} started, attempt {attempt}, {} items", items.len()),
                None => format!("{step} started, attempt {attempt}"),
            },
            RunEvent::PartStarted { part, .. } => format!("{step}/{part} started"),
            RunEvent::PartEnded { part, result, .. } => {
                format!("{step}/{part} {}", if result.is_ok() { "completed" } else { "failed" })
            }
            RunEvent::PartLost { part, until: None, .. } => format!("{step}/{part} lost"),
            RunEvent::PartLost { part, until: Some(until), .. } => format!("{step}/{part} lost until {}", until.0),
            RunEvent::StepCompleted { outcome, .. } => match (&outcome.result, &outcome.output) {
                (Some(result), _) => format!("{step} completed, {result}"),
                (None, Data::Null) => format!("{step} completed"),
                (None, output) => format!("{step} completed, {}", output.to_json()),
            },
            RunEvent::AttemptFailed { outcome, .. } => format!("{step} left {outcome:?}"),
            RunEvent::StepFailed { failure, .. } => format!("{step} failed: {failure:?}"),
            RunEvent::StepRetried { failure: _, until, .. } => format!("{step} to be tried again at {}", until.0),
            RunEvent::StepSkipped { reason, .. } => format!("{step} skipped: {reason:?}"),
            RunEvent::StepHeld { question, .. } => {
                let options = question.options().join("|");
                format!("{step} held: question {} ({}) {options}", question.id, question.reason)
            }
            RunEvent::Answered { question, option, by, .. } => {
                let by = if *by == Answerer::Deadline { ", because nobody did in time" } else { "" };
                format!("{step} question {question} answered: {option}{by}")
            }
            RunEvent::Asked { part, question, .. } => {
                let options = question.options().join("|");
                let asks = format!("{step}/{part} asks: question {} ({}) {options}", question.id, question.reason);
                asks.trim_end().to_owned()
            }
            RunEvent::Withdrawn { question, .. } => format!("{step} question {question} withdrawn"),
            RunEvent::Said { part, report: AttemptReport::Completed(outcome), .. } => {
                format!("{step}/{part} says that it is done: {}", outcome.summary)
            }
            RunEvent::Said { part, report: AttemptReport::Failed { error, .. }, .. } => {
                format!("{step}/{part} says that it failed: {error}")
            }
            RunEvent::StepStopping { .. } => format!("{step} stopping"),
            RunEvent::LoopedBack { from, to } => format!("{} loops back to {}", self.name(*from), self.name(*to)),
            RunEvent::Reopened { .. } => format!("{step} reopened"),
            RunEvent::Blocked { reason, .. } => format!("{step} blocks the run: {reason}"),
            RunEvent::Ending { end, .. } => format!("run is being ended: {end:?}"),
            RunEvent::StepCancelled { .. } => format!("{step} cancelled"),
            RunEvent::Ended { end, .. } => format!("run ended: {end:?}"),
        }
    }

    fn show_effect(&self, effect: &RunEffect) -> String {
        match effect {
            RunEffect::Perform(it) => {
                let job = match &it.job {
                    RunJob::Agent { prompt, .. } => format!("agent: {prompt:?}"),
                    RunJob::Arbiter { prompt, .. } => format!("arbiter: {prompt:?}"),
                    RunJob::Script(script) => format!("script: {:?} {:?}", script.script, script.environment),
                    RunJob::Gate(script) => format!("gate: {:?}", script.script),
                    RunJob::Task { summary, .. } => format!("task: {summary:?}"),
                };
                format!("perform {}/{}.{} {job}", self.name(it.step), it.attempt, it.part)
            }
            RunEffect::Stop { step, attempt, part } => format!("stop {}/{attempt}.{part}", self.name(*step)),
            RunEffect::SetTimer(key, at) => format!("set timer {key} at {}", at.0),
            RunEffect::ClearTimer(key) => format!("clear timer {key}"),
            RunEffect::Notify(text) => format!("notify: {text}"),
            RunEffect::RunCommand(script) => format!("run {:?} {:?}", script.script, script.environment),
            RunEffect::Start { recipe } => format!("start {recipe}"),
            RunEffect::Release => "release what it worked in".to_owned(),
            RunEffect::Repeat { at } => format!("repeat at {}", at.0),
        }
    }
}

fn happening(event: &RunEvent) -> Option<StepHappening> {
    match event {
        RunEvent::Started { .. } | RunEvent::Blocked { .. } => None,
        RunEvent::StepReady(_) => Some(StepHappening::Ready),
        RunEvent::StepStarted { .. } => Some(StepHappening::Started),
        RunEvent::PartStarted { .. }
        | RunEvent::PartEnded { .. }
        | RunEvent::PartLost { .. }
        | RunEvent::AttemptFailed { .. } => Some(StepHappening::Part),
        RunEvent::StepCompleted { .. } => Some(StepHappening::Completed),
        RunEvent::StepFailed { .. } => Some(StepHappening::Failed),
        RunEvent::StepRetried { .. } => Some(StepHappening::Retried),
        RunEvent::StepSkipped { .. } => Some(StepHappening::Skipped),
        RunEvent::StepHeld { .. } => Some(StepHappening::Held),
        RunEvent::Answered { .. } => Some(StepHappening::Answered),
        RunEvent::Asked { .. } => Some(StepHappening::Asked),
        RunEvent::Withdrawn { .. } => Some(StepHappening::Withdrawn),
        RunEvent::Said { .. } => Some(StepHappening::Said),
        RunEvent::StepStopping { .. } => Some(StepHappening::Stopping),
        RunEvent::LoopedBack { .. } => Some(StepHappening::Looped),
        RunEvent::Reopened { .. } => Some(StepHappening::Reopened),
        RunEvent::Ending { .. } | RunEvent::StepCancelled { .. } | RunEvent::Ended { .. } => {
            Some(StepHappening::RunEnded)
        }
    }
}

fn value<'a>(words: &[&'a str], key: &str) -> Option<&'a str> {
    words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
}

/// What an agent wants to know: the words that are no setting.
fn ask(words: &[&str]) -> QuestionRequest {
    let text: Vec<&str> = words[2..].iter().copied().filter(|word| !word.contains('=')).collect();
    let options = value(words, "options").map(|options| options.split(',').map(str::to_owned).collect());
    QuestionRequest {
        text: text.join(" "),
        options: options.unwrap_or_default(),
        default: value(words, "default").map(str::to_owned),
        wait: value(words, "wait").map(|seconds| Duration::from_secs(seconds.parse().unwrap())),
    }
}

/// A value written as `[a,b]`, a number, or text: enough for scripts.
fn data(text: &str) -> Data {
    match text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        Some("") => Data::List(Vec::new()),
        Some(items) => Data::List(items.split(',').map(data).collect()),
        None if text.parse::<f64>().is_ok() => Data::Number(text.into()),
        None => Data::Text(text.into()),
    }
}
