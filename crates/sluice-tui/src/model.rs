//! What the dashboard knows and shows, as a machine: a message in, commands out. It has no clock, no thread and no terminal.

pub(crate) mod asking;
pub(crate) mod board;
mod deeds;
pub(crate) mod diff;
pub(crate) mod facts;
mod motion;
pub(crate) mod requests;
mod said;
mod typed;

use std::collections::{BTreeMap, VecDeque};

use crossterm::event::KeyEvent;
use jiff::Timestamp;
use serde_json::Value;
use sluice_api::board::{Board, BoardRow, BoardRowKind, BoardRows, SavedView};
use sluice_api::event::EventShown;
use sluice_api::problem::Problem;
use sluice_api::usage::CostsBy;

use crate::keys::KeyScope;
use crate::look::{RowTone, TerminalLook};
use asking::{Confirm, Form, LinePrompt};
use board::BoardState;
use diff::DiffReading;
use facts::{Facts, ScreenAsk, ScreenFact};
use requests::{PersonRequest, Requests};

/// The most events that the screen of events keeps.
const MOST_EVENTS: usize = 500;

/// Something that the model hears of.
#[derive(Clone, Debug)]
pub(crate) enum DashboardMessage {
    /// The person pressed a key.
    Key(KeyEvent),
    /// The terminal has another size.
    Resized(u16, u16),
    /// The time is this.
    Tick(Timestamp),
    /// The whole board, at the beginning or after the engine was away.
    Board(Box<Board>),
    /// The whole board, while the engine is there.
    Renewed(Box<Board>),
    /// Rows that have changed.
    Rows(Box<BoardRows>),
    /// Events, as they come.
    Happened(Vec<EventShown>),
    /// The engine does not answer.
    Away(Problem),
    /// The engine is there, and does not tell how the board is.
    Unread(Problem),
    /// An answer to what a screen wants.
    Got(ScreenAsk, Box<Result<ScreenFact, Problem>>),
    /// An answer to what the person wants done.
    Answered(u64, Box<Result<Value, Problem>>),
    /// Another program had the terminal, and why it could not do what it should.
    CameBack(Option<String>),
}

/// Something to be done outside.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum DashboardCommand {
    /// Ask the engine something.
    Fetch(ScreenAsk),
    /// Ask the engine for rows whose terminals may show something else.
    Look(Vec<String>),
    /// Have the engine do something.
    Send(PersonRequest),
    /// Read the whole board again, to see what came of a request.
    ReadAgain,
    /// Give the terminal to the session of a task.
    Attach(String),
    /// Give the terminal to an editor, in this folder.
    Edit(String),
    /// Give the terminal to `sluice doctor`.
    Doctor,
    /// Put a text into the clipboard of the terminal.
    Copy(String),
    /// The dashboard is left.
    Quit,
}

/// How it stands with the engine.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum EngineLink {
    /// Nothing was heard yet.
    Begins,
    /// It answers what is asked.
    Live,
    /// It does not answer, and why.
    Away {
        /// It is there, and says nothing: it may be stopped.
        is_silent: bool,
        /// Why it is thought to be away.
        why: String,
    },
}

/// A tab of the details.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tab {
    Terminal,
    Diff,
    File,
    Log,
    History,
    States,
    Steps,
    Usage,
}

impl Tab {
    /// The tabs of a task or of a run.
    pub(crate) fn of(kind: BoardRowKind) -> &'static [Tab] {
        match kind {
            BoardRowKind::Task => {
                &[Tab::Terminal, Tab::Diff, Tab::File, Tab::Log, Tab::History, Tab::States, Tab::Steps, Tab::Usage]
            }
            BoardRowKind::Run => &[Tab::Terminal, Tab::Diff, Tab::Log, Tab::History, Tab::Steps, Tab::Usage],
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Tab::Terminal => "terminal",
            Tab::Diff => "diff",
            Tab::File => "TASK.md",
            Tab::Log => "log",
            Tab::History => "history",
            Tab::States => "graph",
            Tab::Steps => "steps",
            Tab::Usage => "usage",
        }
    }
}

/// A list that is about no single row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListSubject {
    Workers,
    Workspaces,
    Costs(CostsBy),
    Schedules,
    Events,
}

/// What fills the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DashboardScreen {
    Board,
    Detail {
        id: String,
        tab: Tab,
        scroll: usize,
    },
    Diff {
        id: String,
    },
    Run {
        id: String,
        step: usize,
        scroll: usize,
    },
    /// What waits: the id of the one that is looked at, and where it stands or stood.
    Inbox {
        at: Option<String>,
        place: usize,
    },
    List {
        what: ListSubject,
        scroll: usize,
    },
}

/// What stands over the screen.
#[derive(Clone, Debug)]
pub(crate) enum Overlay {
    Help {
        scroll: usize,
    },
    /// A row, and the id of what it waited for when the person began to look.
    Peek {
        id: String,
        attention: Option<String>,
    },
    Prompt(LinePrompt),
    Form(Form),
    Confirm(Confirm),
}

/// A sentence in the last line but one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DashboardNote {
    pub(crate) text: String,
    pub(crate) tone: RowTone,
}

/// Everything that the dashboard knows.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) look: TerminalLook,
    pub(crate) size: (u16, u16),
    pub(crate) now: Timestamp,
    /// The folder in which the dashboard was started.
    pub(crate) here: String,
    /// Whether the engine is elsewhere: then nothing of this machine can be opened.
    pub(crate) is_remote: bool,
    pub(crate) link: EngineLink,
    pub(crate) board: Option<BoardState>,
    /// The screens that were opened one from the other; the board is below them.
    pub(crate) screens: Vec<DashboardScreen>,
    pub(crate) overlay: Option<Overlay>,
    pub(crate) facts: Facts,
    pub(crate) requests: Requests,
    pub(crate) readings: BTreeMap<String, DiffReading>,
    pub(crate) events: VecDeque<EventShown>,
    pub(crate) note: Option<DashboardNote>,
    /// Why the board may be old although the engine is there.
    pub(crate) unread: Option<String>,
    /// What was cancelled or deleted last.
    pub(crate) ended: Option<String>,
    /// Seconds since the rows of living agents were asked for.
    pub(crate) looked: u32,
    /// What is opened when its answer has come: the form of a recipe, the folder of kept work. The next key takes it back.
    pub(crate) awaits: Option<AwaitedAnswer>,
    /// The view that is added to the saved ones when those have come.
    pub(crate) saving: Option<SavedView>,
}

/// What is opened when its answer has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AwaitedAnswer {
    /// The choice of a recipe of this project.
    Recipes(String),
    /// The saved view with this number.
    View(usize),
    /// The folder in which a task works, for an editor.
    Worktree(String),
    /// The kept work of a task or run.
    Kept(String),
}

impl AwaitedAnswer {
    /// What is asked for it.
    pub(crate) fn ask(&self) -> ScreenAsk {
        match self {
            AwaitedAnswer::Recipes(project) => ScreenAsk::Recipes(project.clone()),
            AwaitedAnswer::View(_) => ScreenAsk::Views,
            AwaitedAnswer::Worktree(id) => ScreenAsk::Task(id.clone()),
            AwaitedAnswer::Kept(_) => ScreenAsk::Workspaces,
        }
    }
}

impl Model {
    pub(crate) fn new(look: TerminalLook, here: String, is_remote: bool, now: Timestamp) -> Model {
        Model {
            look,
            size: (80, 24),
            now,
            here,
            is_remote,
            link: EngineLink::Begins,
            board: None,
            screens: Vec::new(),
            overlay: None,
            facts: Facts::default(),
            requests: Requests::default(),
            readings: BTreeMap::new(),
            events: VecDeque::new(),
            note: None,
            unread: None,
            ended: None,
            looked: 0,
            awaits: None,
            saving: None,
        }
    }

    /// What fills the terminal now.
    pub(crate) fn screen(&self) -> &DashboardScreen {
        self.screens.last().unwrap_or(&DashboardScreen::Board)
    }

    /// Where keys hold now.
    pub(crate) fn scope(&self) -> KeyScope {
        if matches!(self.overlay, Some(Overlay::Peek { .. })) {
            return KeyScope::Peek;
        }
        match self.screen() {
            DashboardScreen::Board => KeyScope::Board,
            DashboardScreen::Detail { .. } => KeyScope::Detail,
            DashboardScreen::Diff { .. } => KeyScope::Diff,
            DashboardScreen::Run { .. } => KeyScope::Run,
            DashboardScreen::Inbox { .. } => KeyScope::Inbox,
            DashboardScreen::List { .. } => KeyScope::List,
        }
    }

    /// The row that keys are about.
    pub(crate) fn subject(&self) -> Option<&BoardRow> {
        let board = self.board.as_ref()?;
        if let Some(Overlay::Peek { id, .. }) = &self.overlay {
            return board.row(id);
        }
        match self.screen() {
            DashboardScreen::Board => board.chosen(),
            DashboardScreen::Detail { id, .. } | DashboardScreen::Diff { id } | DashboardScreen::Run { id, .. } => {
                board.row(id)
            }
            DashboardScreen::Inbox { .. } => {
                self.letter().and_then(|it| it.task.as_deref().or(it.run.as_deref())).and_then(|id| board.row(id))
            }
            DashboardScreen::List { .. } => None,
        }
    }

    pub(crate) fn is_away(&self) -> bool {
        match &self.link {
            EngineLink::Away { .. } => true,
            EngineLink::Begins | EngineLink::Live => false,
        }
    }

    pub(crate) fn say(&mut self, tone: RowTone, text: impl Into<String>) {
        self.note = Some(DashboardNote { text: text.into(), tone });
    }

    pub(crate) fn wants_preview(&self) -> bool {
        self.size.0 >= PREVIEW_FROM && self.scope() == KeyScope::Board
    }

    /// What the screens that are shown are made of.
    pub(crate) fn wanted(&self) -> Vec<ScreenAsk> {
        let mut wanted = Vec::new();
        match self.screen() {
            DashboardScreen::Board => {
                if let Some(row) = self.board.as_ref().and_then(BoardState::chosen).filter(|_| self.wants_preview()) {
                    wanted.push(ScreenAsk::Screen(row.kind, row.id.clone()));
                }
            }
            DashboardScreen::Detail { id, tab, .. } => wanted.extend(self.wanted_by_tab(id, *tab)),
            DashboardScreen::Diff { id } => wanted.push(ScreenAsk::Changes(self.kind(id), id.clone())),
            DashboardScreen::Run { id, step, .. } => {
                wanted.extend([ScreenAsk::Run(id.clone()), ScreenAsk::Timeline(id.clone())]);
                let run = self.facts.run(&ScreenAsk::Run(id.clone()));
                wanted.extend(
                    run.and_then(|run| run.steps.get(*step)).map(|it| ScreenAsk::StepLog(id.clone(), it.id.clone())),
                );
            }
            DashboardScreen::Inbox { .. } => wanted.push(ScreenAsk::Inbox),
            DashboardScreen::List { what: ListSubject::Workers, .. } => wanted.push(ScreenAsk::Workers),
            DashboardScreen::List { what: ListSubject::Workspaces, .. } => wanted.push(ScreenAsk::Workspaces),
            DashboardScreen::List { what: ListSubject::Costs(by), .. } => wanted.push(ScreenAsk::Costs(*by)),
            DashboardScreen::List { what: ListSubject::Schedules, .. } => wanted.push(ScreenAsk::Schedules),
            DashboardScreen::List { what: ListSubject::Events, .. } => wanted.push(ScreenAsk::Events),
        }
        if let Some(Overlay::Peek { id, .. }) = &self.overlay {
            wanted.extend([ScreenAsk::Screen(self.kind(id), id.clone()), ScreenAsk::Inbox]);
        }
        wanted.extend(self.awaits.as_ref().map(AwaitedAnswer::ask));
        wanted.extend(self.saving.as_ref().map(|_| ScreenAsk::Views));
        wanted
    }

    fn wanted_by_tab(&self, id: &str, tab: Tab) -> Vec<ScreenAsk> {
        let kind = self.kind(id);
        let id = id.to_owned();
        let head = match kind {
            BoardRowKind::Task => ScreenAsk::Task(id.clone()),
            BoardRowKind::Run => ScreenAsk::Run(id.clone()),
        };
        let run = self.run_of(&id);
        let more = match tab {
            Tab::Terminal => Some(ScreenAsk::Screen(kind, id)),
            Tab::Diff => Some(ScreenAsk::Changes(kind, id)),
            Tab::File => Some(ScreenAsk::File(id)),
            Tab::Log => Some(ScreenAsk::Log(kind, id)),
            Tab::History => Some(ScreenAsk::History(kind, id)),
            Tab::States => None,
            Tab::Steps => run.map(ScreenAsk::Run),
            Tab::Usage => Some(ScreenAsk::Usage(kind, id)),
        };
        std::iter::once(head).chain(more).collect()
    }

    /// Whether it is a task or a run; what the board does not have is a task.
    pub(crate) fn kind(&self, id: &str) -> BoardRowKind {
        self.board.as_ref().and_then(|board| board.row(id)).map_or(BoardRowKind::Task, |row| row.kind)
    }

    /// The run of a row: itself, or the one that the state of a task has started.
    pub(crate) fn run_of(&self, id: &str) -> Option<String> {
        let row = self.board.as_ref()?.row(id)?;
        match row.kind {
            BoardRowKind::Run => Some(row.id.clone()),
            BoardRowKind::Task => row.run.clone(),
        }
    }
}

pub(crate) use deeds::{COMMANDS, name_of as name};
pub(crate) use typed::{holds, possible};

/// The commands that can be typed, with what they do.
pub(crate) fn commands() -> &'static [(&'static str, &'static str)] {
    COMMANDS
}

/// From so many columns on the board has a preview beside it.
pub(crate) const PREVIEW_FROM: u16 = 160;

/// What follows from a message.
pub(crate) fn update(model: &mut Model, message: DashboardMessage) -> Vec<DashboardCommand> {
    let mut commands = match message {
        DashboardMessage::Key(key) => typed::key(model, key),
        DashboardMessage::Resized(columns, rows) => {
            model.size = (columns, rows);
            Vec::new()
        }
        DashboardMessage::Tick(now) => said::tick(model, now),
        DashboardMessage::Board(board) => said::board(model, *board),
        DashboardMessage::Renewed(board) => said::renewed(model, *board),
        DashboardMessage::Rows(rows) => said::rows(model, *rows),
        DashboardMessage::Happened(events) => said::happened(model, events),
        DashboardMessage::Away(problem) => said::away(model, problem),
        DashboardMessage::Unread(problem) => said::unread(model, &problem),
        DashboardMessage::Got(ask, answer) => said::got(model, ask, *answer),
        DashboardMessage::Answered(number, answer) => said::answered(model, number, *answer),
        DashboardMessage::CameBack(trouble) => {
            if let Some(trouble) = trouble {
                model.say(RowTone::Bad, trouble);
            }
            Vec::new()
        }
    };
    if model.link == EngineLink::Live {
        let wanted = model.wanted();
        commands.extend(model.facts.missing(&wanted).into_iter().map(DashboardCommand::Fetch));
    }
    commands
}
