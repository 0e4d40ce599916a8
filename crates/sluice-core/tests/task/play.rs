//! Plays a script: each line that starts with `>` is said to the machine, and its answer is written below.
//!
//! | line | means |
//! |---|---|
//! | `[WHO:] create "SUMMARY" [in STATE] [no-spawn] [full]` | a new task, with files of its own; `full`: no workspace is free |
//! | `[WHO:] spawn [full]`, `move STATE [full] [saying TEXT]`, `cancel`, `changes TEXT`, `merge [--force]`, `merged [WHY NOT PUSHED]`, `respawn`, `summary TEXT` (`\0` is a NUL), `long-summary BYTES`, `branch NAME`, `pr URL`, `clear`, `retry` | WHO asks: `person` (or nobody), `engine`, `stranger`, `worker`, `reviewer`, `s3` |
//! | `writes ## TITLE: TEXT`, `commits TREE` | TASK.md or the branch changes; the machine hears nothing |
//! | `ok`, `fail REASON`, `skip REASON`, `settle` | the outcome of the open effect; of all that follow |
//! | `again`, `unwritten REASON` | the last outcome once more; TASK.md could not be written |
//! | `exit WHO`, `killed WHO`, `lost WHO`, `adopt WHO` | what the engine hears of sessions |
//! | `run-ended RUN completed\|failed\|cancelled [WHY]` | what the engine hears of runs; `run: run-ended …`: the newest commits are its own; `strayed: run-ended …`: the work was elsewhere in between |
//! | `waits WHO CHANNEL KIND TEXT`, `quiet WHO SECONDS`, `works WHO CHANNEL` | what a channel says of the agent in a session |
//! | `choices` | shows what a person can answer |
//! | `state` | shows where the task stands |

use std::collections::BTreeMap;

use sluice_core::attention::{AttentionChannel, DialogKind, SessionSignal};
use sluice_core::lifecycle::Lifecycle;
use sluice_core::machine::{Decision, Moment, Refusal};
use sluice_core::name::StateName;
use sluice_core::task::choices::{TaskChoice, answers};
use sluice_core::task::input::{
    RunEnd, TaskEffectOutcome, TaskEffectProduct, TaskUpdate, WorkEvidence, WorkHead, WorkStanding,
    WorkspaceReservation,
};
use sluice_core::task::law::LawRow;
use sluice_core::task::session::{SessionExit, SessionNumber, SessionRole, TaskSessionPlace};
use sluice_core::task::state::{CommitId, TaskSubject, TreeId, WorkSnapshot, WorktreePath};
use sluice_core::task::{
    EffectKey, Evidence, Instruction, NewTask, PlainEffect, TaskAction, TaskAsker, TaskEffect, TaskEvent, TaskInput,
    TaskState, create, decide, trace,
};
use sluice_dialect::prompts::NoPrompts;
use sluice_dialect::{Definition, DefinitionFile, Sources, load};

use super::show;

/// What a script gave.
pub(crate) struct Played {
    pub(crate) text: String,
    pub(crate) rows: Vec<LawRow>,
}

/// The built-in lifecycle of this name, or the one that lies beside the scripts.
pub(crate) fn lifecycle(name: &str) -> Lifecycle {
    let file = format!("{name}.yml");
    let text = match sluice_dialect::builtin::ALL.iter().find(|built_in| built_in.file == file) {
        Some(built_in) => built_in.text.to_owned(),
        None => std::fs::read_to_string(super::folder().join(&file)).unwrap(),
    };
    let source = DefinitionFile { path: &file, bytes: text.as_bytes() };
    let loaded = load(&source, &mut NoPrompts, &mut Sources::default());
    match loaded.definition {
        Some(Definition::Lifecycle(lifecycle)) => lifecycle,
        _ => panic!("{file} is not a lifecycle: {:?}", loaded.problems),
    }
}

pub(crate) fn play(script: &str) -> Played {
    let mut player: Option<Player> = None;
    let mut text = String::new();
    let mut rows = Vec::new();
    for line in script.lines() {
        if let Some(name) = line.strip_prefix("lifecycle ") {
            player = Some(Player::new(lifecycle(name)));
        }
        if line.starts_with('#') || line.starts_with("lifecycle ") || line.is_empty() {
            text.push_str(&format!("{line}\n"));
        }
        if let Some(said) = line.strip_prefix("> ") {
            let player = player.as_mut().expect("a script says its lifecycle first");
            text.push_str(&format!("{line}\n"));
            for answer in player.say(said) {
                text.push_str(&format!("    {answer}\n"));
            }
            rows.append(&mut player.rows);
        }
    }
    Played { text, rows }
}

struct Player {
    lifecycle: Lifecycle,
    state: Option<TaskState>,
    events: Vec<TaskEvent>,
    body: Vec<(String, String)>,
    /// Whether somebody wrote since the last move.
    is_written: bool,
    work: WorkEvidence,
    now: i64,
    open: Vec<TaskEffect>,
    last_key: Option<EffectKey>,
    last_write: Option<EffectKey>,
    known: BTreeMap<SessionRole, SessionNumber>,
    rows: Vec<LawRow>,
}

impl Player {
    fn new(lifecycle: Lifecycle) -> Self {
        Player {
            lifecycle,
            state: None,
            events: Vec::new(),
            body: Vec::new(),
            is_written: false,
            work: WorkEvidence::Unseen,
            now: 0,
            open: Vec::new(),
            last_key: None,
            last_write: None,
            known: BTreeMap::new(),
            rows: Vec::new(),
        }
    }

    fn say(&mut self, said: &str) -> Vec<String> {
        let (who, what) = said.split_once(": ").filter(|(who, _)| !who.contains(' ')).unwrap_or(("person", said));
        let (verb, rest) = what.split_once(' ').unwrap_or((what, ""));
        match verb {
            "create" => self.create(who, rest),
            "writes" => {
                self.is_written = true;
                self.write(rest)
            }
            "commits" | "stands" | "dirties" | "unreadable" | "unseen" => self.work(verb, rest),
            "ok" | "fail" | "skip" => self.outcome(verb, rest),
            "settle" => {
                let mut said = Vec::new();
                while !self.open.is_empty() {
                    said.extend(self.outcome("ok", ""));
                }
                said
            }
            "again" => {
                let key = self.last_key.unwrap();
                self.decide(TaskInput::EffectDone { key, outcome: TaskEffectOutcome::Ok(TaskEffectProduct::Nothing) })
            }
            "unwritten" => {
                let key = self.last_write.unwrap();
                self.decide(TaskInput::EffectDone { key, outcome: TaskEffectOutcome::Failed(rest.to_owned()) })
            }
            "choices" => vec![self.choices()],
            "state" => vec![show::state(self.state.as_ref().unwrap())],
            _ => {
                let input = self.input(who, verb, rest);
                self.decide(input)
            }
        }
    }

    fn choices(&self) -> String {
        let choices = answers(&self.lifecycle, self.state.as_ref().unwrap());
        let words: Vec<&str> = choices.iter().map(|choice| choice.word(&self.lifecycle)).collect();
        for (choice, word) in choices.iter().zip(&words) {
            assert_eq!(TaskChoice::read(word, &choices, &self.lifecycle), Some(*choice), "a word can be read back");
        }
        if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
    }

    fn signal(&self, verb: &str, rest: &str) -> TaskInput {
        let words: Vec<&str> = rest.splitn(4, ' ').collect();
        let channel = |word: &str| AttentionChannel::ALL.into_iter().find(|channel| channel.word() == word).unwrap();
        let signal = match verb {
            "quiet" => SessionSignal::Quiet { seconds: words[1].parse().unwrap() },
            "works" => SessionSignal::Works { by: channel(words[1]) },
            _ => {
                let what = DialogKind::ALL.into_iter().find(|kind| kind.word() == words[2]).unwrap();
                let text = words.get(3).copied().unwrap_or_default().to_owned();
                SessionSignal::Waits { what, text, by: channel(words[1]) }
            }
        };
        TaskInput::Signal { session: self.session(words[0]), signal }
    }

    fn evidence(&self) -> Evidence {
        let section = |(title, text): &(String, String)| format!("## {title}\n{text}\n\n");
        let body = self.body.iter().map(section).collect();
        Evidence { body, is_written: self.is_written, work: self.work.clone() }
    }

    /// `commits c1`: on its branch, with nothing beside it. `stands on other` or `on nothing`, `dirties a.txt`. `unseen`: its
    /// branch is gone.
    fn work(&mut self, verb: &str, rest: &str) -> Vec<String> {
        let standing = match (std::mem::take(&mut self.work), verb) {
            (WorkEvidence::Read(standing), "stands") => {
                let name = rest.strip_prefix("on ").unwrap();
                let head = match name.split_once(' ') {
                    Some(("rebased", name)) => WorkHead::Rebasing(name.to_owned()),
                    Some(_) | None if name == "nothing" => WorkHead::Detached,
                    Some(_) | None => WorkHead::Branch(name.to_owned()),
                };
                WorkStanding { head, ..standing }
            }
            (WorkEvidence::Read(standing), "dirties") => WorkStanding { dirty: rest.to_owned(), ..standing },
            (_, "commits") => {
                let (commit, tree) = (CommitId(rest.to_owned()), TreeId(format!("tree of {rest}")));
                WorkStanding { head: WorkHead::Branch("fix".to_owned()), commit, tree, dirty: String::new() }
            }
            (_, "unseen") => return Vec::new(),
            _ => {
                self.work = WorkEvidence::Unreadable(rest.to_owned());
                return Vec::new();
            }
        };
        self.work = WorkEvidence::Read(standing);
        Vec::new()
    }

    /// `## Handoff: DONE: the parser`, in place of an older section of that name.
    fn write(&mut self, rest: &str) -> Vec<String> {
        let (title, text) = rest.strip_prefix("## ").and_then(|rest| rest.split_once(": ")).unwrap();
        self.body.retain(|(known, _)| known != title);
        self.body.push((title.to_owned(), text.replace("\\n", "\n")));
        Vec::new()
    }

    fn room(rest: &str, otherwise: WorkspaceReservation) -> WorkspaceReservation {
        match rest.rsplit(' ').next() {
            Some("full") => WorkspaceReservation::Full,
            Some(room @ ("coffee-1" | "coffee-2")) => WorkspaceReservation::Reserved(WorktreePath(room.to_owned())),
            Some(_) | None => otherwise,
        }
    }

    fn create(&mut self, who: &str, rest: &str) -> Vec<String> {
        let (summary, rest) = rest.strip_prefix('"').and_then(|rest| rest.split_once('"')).unwrap();
        let words: Vec<&str> = rest.split_whitespace().collect();
        let status = words.iter().position(|word| *word == "in").map(|index| StateName::new(words[index + 1]));
        let about = TaskSubject {
            summary: summary.to_owned(),
            project: "coffee".to_owned(),
            branch: "fix".to_owned(),
            harness: "claude".to_owned(),
            ..TaskSubject::default()
        };
        // A new task, with files of its own.
        let rows = std::mem::take(&mut self.rows);
        let body = if self.state.is_none() { std::mem::take(&mut self.body) } else { Vec::new() };
        *self = Player { rows, body, ..Player::new(self.lifecycle.clone()) };
        let room = Self::room(rest, WorkspaceReservation::Reserved(WorktreePath("coffee-1".to_owned())));
        let by = match who {
            "engine" => TaskAsker::Engine,
            "stranger" => TaskAsker::Stranger,
            _ => TaskAsker::Person,
        };
        let wanted = NewTask {
            status,
            about,
            by,
            spawn: !words.contains(&"no-spawn"),
            evidence: self.evidence(),
            room,
            sessions: 0,
        };
        let answer = create(&self.lifecycle, &wanted, Moment(0));
        self.answered(answer)
    }

    fn session(&self, who: &str) -> SessionNumber {
        let role = match who {
            "worker" => SessionRole::Worker,
            "reviewer" => SessionRole::Reviewer,
            number => return SessionNumber(number.strip_prefix('s').unwrap().parse().unwrap()),
        };
        let state = self.state.as_ref().unwrap();
        let present = [TaskSessionPlace::Main, TaskSessionPlace::Beside]
            .into_iter()
            .filter_map(|place| state.session(place).agent());
        present
            .filter(|agent| agent.role == role)
            .map(|agent| agent.id)
            .next()
            .unwrap_or_else(|| *self.known.get(&role).unwrap_or_else(|| panic!("there was never a {who}")))
    }

    fn input(&self, who: &str, verb: &str, rest: &str) -> TaskInput {
        let by = match who {
            "person" => TaskAsker::Person,
            "engine" | "run" | "strayed" => TaskAsker::Engine,
            "stranger" => TaskAsker::Stranger,
            session => TaskAsker::Session(self.session(session)),
        };
        let evidence = self.evidence();
        let reserved = WorkspaceReservation::Reserved(WorktreePath("coffee-1".to_owned()));
        match verb {
            "spawn" => TaskInput::Spawn { by, evidence, room: Self::room(rest, reserved) },
            "move" => {
                let (rest, feedback) = match rest.split_once(" saying ") {
                    Some((rest, said)) => (rest, Some(said.to_owned())),
                    None => (rest, None),
                };
                let to = StateName::new(rest.split(' ').next().unwrap());
                TaskInput::Move { by, to, evidence, room: Self::room(rest, WorkspaceReservation::Unasked), feedback }
            }
            "verdict" => TaskInput::Verdict { by, to: StateName::new(rest), evidence },
            "cancel" => TaskInput::Cancel { by, evidence },
            "changes" => {
                let room = Self::room(rest, WorkspaceReservation::Unasked);
                TaskInput::RequestChanges { by, message: rest.to_owned(), evidence, room }
            }
            "merge" => TaskInput::Merge { by, force: rest == "--force", evidence },
            "merged" => {
                let push_failed = (!rest.is_empty()).then(|| rest.to_owned());
                let commit = evidence.work.standing().map(|standing| standing.commit.clone());
                TaskInput::Merged { by, commit, forced: false, push_failed, evidence, feedback: None }
            }
            "respawn" => TaskInput::Respawn { by, room: Self::room(rest, WorkspaceReservation::Unasked) },
            "lend" => {
                let state = self.state.as_ref().unwrap();
                let events = if rest == "late" { state.events - 1 } else { state.events };
                let workspace = WorktreePath("coffee-1".to_owned());
                TaskInput::Lend { workspace, events, work: evidence.work }
            }
            "take-up" => TaskInput::TakeUp { room: Self::room(rest, reserved) },
            "long-summary" => {
                TaskInput::Update { by, update: TaskUpdate::Summary("x".repeat(rest.parse::<usize>().unwrap())) }
            }
            "summary" => TaskInput::Update { by, update: TaskUpdate::Summary(rest.replace("\\0", "\0")) },
            "branch" => TaskInput::Update { by, update: TaskUpdate::Branch(rest.to_owned()) },
            "pr" => TaskInput::Update { by, update: TaskUpdate::PullRequest(rest.to_owned()) },
            "clear" => TaskInput::ClearAttention { by },
            "retry" => TaskInput::Retry { by, room: Self::room(rest, WorkspaceReservation::Unasked) },
            "waits" | "quiet" | "works" => self.signal(verb, rest),
            "exit" => TaskInput::SessionExited { session: self.session(rest), exit: SessionExit::Code(0), evidence },
            "killed" => {
                TaskInput::SessionExited { session: self.session(rest), exit: SessionExit::Signal(9), evidence }
            }
            "lost" => TaskInput::SessionExited { session: self.session(rest), exit: SessionExit::Lost, evidence },
            "adopt" => TaskInput::SessionAdopted { session: self.session(rest) },
            "run-reopened" => TaskInput::RunReopened { run: rest.parse().unwrap() },
            "run-ended" => {
                let words: Vec<&str> = rest.splitn(3, ' ').collect();
                let end = match words[1] {
                    "completed" => RunEnd::Completed,
                    "failed" => RunEnd::Failed,
                    "cancelled" => RunEnd::Cancelled,
                    other => panic!("a run cannot end `{other}`"),
                };
                let why = words.get(2).copied().unwrap_or_default().to_owned();
                let began = self.state.as_ref().and_then(|state| state.run.as_ref()?.began.clone()).unwrap_or_default();
                let own = match who {
                    "run" => true,
                    "strayed" => false,
                    _ => began.commit == WorkSnapshot::of(&evidence.work).commit,
                };
                TaskInput::RunEnded { run: words[0].parse().unwrap(), end, why, own, evidence }
            }
            other => panic!("a script cannot say `{other}`"),
        }
    }

    fn outcome(&mut self, verb: &str, rest: &str) -> Vec<String> {
        let effect = self.open.first().expect("an effect is open").clone();
        let found = match (&effect.instruction, rest) {
            (Instruction::AcquireWorkspace { reserved: None }, _) => {
                TaskEffectProduct::Workspace(WorktreePath("coffee-2".to_owned()))
            }
            (Instruction::StartRun { recipe, .. }, _) => {
                let EffectKey::Job { turn, .. } = effect.key else { panic!("no job starts {recipe}") };
                TaskEffectProduct::Run {
                    id: format!("r{turn}").parse().unwrap(),
                    began: Some(WorkSnapshot::of(&self.work)),
                }
            }
            (Instruction::Plain(PlainEffect::CreatePr {}), _) => {
                TaskEffectProduct::PullRequest("https://forge/pr/1".to_owned())
            }
            _ => TaskEffectProduct::Nothing,
        };
        let outcome = match verb {
            "ok" => TaskEffectOutcome::Ok(found),
            "fail" => TaskEffectOutcome::Failed(rest.to_owned()),
            _ => TaskEffectOutcome::Skipped(rest.to_owned()),
        };
        self.last_key = Some(effect.key);
        self.open.remove(0);
        self.decide(TaskInput::EffectDone { key: effect.key, outcome })
    }

    fn decide(&mut self, input: TaskInput) -> Vec<String> {
        self.now += 1;
        let state = self.state.as_ref().expect("the task is created first");
        let (answer, rows) = trace(&self.lifecycle, state, &input, Moment(self.now));
        assert_eq!(answer, decide(&self.lifecycle, state, &input, Moment(self.now)), "decide is deterministic");
        self.rows.extend(rows);
        self.answered(answer)
    }

    fn answered(&mut self, answer: Result<Decision<TaskEvent, TaskEffect>, Refusal>) -> Vec<String> {
        let decision = match answer {
            Ok(decision) => decision,
            Err(refusal) => return show::refusal(&refusal),
        };
        let mut said: Vec<String> =
            decision.events.iter().filter_map(|event| show::event(&self.lifecycle, event)).collect();
        self.is_written &= !decision.events.iter().any(|event| matches!(event, TaskEvent::Moved(_)));
        self.events.extend(decision.events.iter().cloned());
        let state = TaskState::fold(&self.lifecycle, &self.events).unwrap();
        state.check_invariants(&self.lifecycle).unwrap();
        for agent in [TaskSessionPlace::Main, TaskSessionPlace::Beside]
            .into_iter()
            .filter_map(|place| state.session(place).agent())
        {
            self.known.insert(agent.role, agent.id);
        }
        self.state = Some(state);
        for effect in decision.effects {
            said.push(show::effect(&effect));
            assert_eq!(EffectKey::read(&effect.key.to_string()), Some(effect.key), "a key can be read back");
            match effect.key {
                EffectKey::Write { .. } => self.last_write = Some(effect.key),
                EffectKey::Job { action, .. } => {
                    assert_ne!(action, TaskAction::WriteArtifact);
                    self.open.push(effect);
                }
            }
        }
        assert!(self.open.len() < 2, "hooks run one after another");
        if said.is_empty() {
            said.push("nothing".to_owned());
        }
        said
    }
}
