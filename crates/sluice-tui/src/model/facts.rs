//! What a screen shows besides the board, asked for when it is looked at, and again when an event names what it is about.

use std::collections::BTreeMap;

use sluice_api::attention::Attention;
use sluice_api::board::{BoardRowKind, SavedView};
use sluice_api::changes::Changes;
use sluice_api::event::EventShown;
use sluice_api::grimoire::Grimoire;
use sluice_api::problem::Problem;
use sluice_api::schedules::Schedules;
use sluice_api::screen::Screen;
use sluice_api::shown::Run;
use sluice_api::task::{Task, TaskFile};
use sluice_api::timeline::Timeline;
use sluice_api::usage::{Costs, CostsBy, UsageShown};
use sluice_api::workers::Workers;
use sluice_api::workspace::WorkspaceList;

/// The most answers that are kept; those that no screen wants go first.
const MOST_FACTS: usize = 64;

/// Something that can be asked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ScreenAsk {
    Task(String),
    Run(String),
    Screen(BoardRowKind, String),
    Changes(BoardRowKind, String),
    File(String),
    History(BoardRowKind, String),
    Log(BoardRowKind, String),
    StepLog(String, String),
    Usage(BoardRowKind, String),
    Timeline(String),
    Inbox,
    Workers,
    Workspaces,
    Costs(CostsBy),
    Schedules,
    Events,
    Views,
    Recipes(String),
}

impl ScreenAsk {
    /// The task or run that it is about.
    pub(crate) fn about(&self) -> Option<&str> {
        match self {
            ScreenAsk::Task(id)
            | ScreenAsk::Run(id)
            | ScreenAsk::File(id)
            | ScreenAsk::Timeline(id)
            | ScreenAsk::StepLog(id, _) => Some(id),
            ScreenAsk::Screen(_, id)
            | ScreenAsk::Changes(_, id)
            | ScreenAsk::History(_, id)
            | ScreenAsk::Log(_, id)
            | ScreenAsk::Usage(_, id) => Some(id),
            ScreenAsk::Inbox
            | ScreenAsk::Workers
            | ScreenAsk::Workspaces
            | ScreenAsk::Costs(_)
            | ScreenAsk::Schedules
            | ScreenAsk::Events
            | ScreenAsk::Views
            | ScreenAsk::Recipes(_) => None,
        }
    }

    /// Whether any event may change the answer.
    fn changes_with_events(&self) -> bool {
        match self {
            ScreenAsk::Inbox
            | ScreenAsk::Workers
            | ScreenAsk::Workspaces
            | ScreenAsk::Costs(_)
            | ScreenAsk::Schedules => true,
            ScreenAsk::Task(_)
            | ScreenAsk::Run(_)
            | ScreenAsk::Screen(..)
            | ScreenAsk::Changes(..)
            | ScreenAsk::File(_)
            | ScreenAsk::History(..)
            | ScreenAsk::Log(..)
            | ScreenAsk::StepLog(..)
            | ScreenAsk::Usage(..)
            | ScreenAsk::Timeline(_)
            | ScreenAsk::Events
            | ScreenAsk::Views
            | ScreenAsk::Recipes(_) => false,
        }
    }
}

/// An answer to such a question.
#[derive(Clone, Debug)]
pub(crate) enum ScreenFact {
    Task(Box<Task>),
    Run(Box<Run>),
    Screen(Screen),
    Changes(Box<Changes>),
    File(TaskFile),
    History(Vec<EventShown>),
    Log(String),
    Usage(UsageShown),
    Timeline(Timeline),
    Inbox(Vec<Attention>),
    Workers(Workers),
    Workspaces(Box<WorkspaceList>),
    Costs(Costs),
    Schedules(Schedules),
    Views(Vec<SavedView>),
    Recipes(Vec<Grimoire>),
}

/// What is known of an answer.
#[derive(Clone, Debug, Default)]
struct FactSlot {
    fact: Option<ScreenFact>,
    problem: Option<Problem>,
    is_asked: bool,
    is_stale: bool,
}

/// Every answer that is known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts(BTreeMap<ScreenAsk, FactSlot>);

macro_rules! readers {
    ($($name:ident: $variant:ident -> $type:ty;)+) => {
        impl Facts {
            $(pub(crate) fn $name(&self, ask: &ScreenAsk) -> Option<&$type> {
                let Some(ScreenFact::$variant(fact)) = self.0.get(ask)?.fact.as_ref() else { return None };
                Some(fact)
            })+
        }
    };
}

readers! {
    task: Task -> Task;
    run: Run -> Run;
    screen: Screen -> Screen;
    changes: Changes -> Changes;
    file: File -> TaskFile;
    history: History -> Vec<EventShown>;
    log: Log -> String;
    usage: Usage -> UsageShown;
    timeline: Timeline -> Timeline;
    inbox: Inbox -> Vec<Attention>;
    workers: Workers -> Workers;
    workspaces: Workspaces -> WorkspaceList;
    costs: Costs -> Costs;
    schedules: Schedules -> Schedules;
    views: Views -> Vec<SavedView>;
    recipes: Recipes -> Vec<Grimoire>;
}

impl Facts {
    /// Why there is no answer, if that is known.
    pub(crate) fn problem(&self, ask: &ScreenAsk) -> Option<&Problem> {
        self.0.get(ask)?.problem.as_ref()
    }

    /// Whether what is known may have changed since it was asked for.
    pub(crate) fn is_stale(&self, ask: &ScreenAsk) -> bool {
        self.0.get(ask).is_none_or(|slot| slot.is_stale)
    }

    /// Those of what a screen wants that are to be asked for now.
    pub(crate) fn missing(&mut self, wanted: &[ScreenAsk]) -> Vec<ScreenAsk> {
        if self.0.len() > MOST_FACTS {
            self.0.retain(|ask, slot| slot.is_asked || wanted.contains(ask));
        }
        let mut missing = Vec::new();
        for ask in wanted {
            let slot = self.0.entry(ask.clone()).or_insert_with(|| FactSlot { is_stale: true, ..FactSlot::default() });
            if slot.is_stale && !slot.is_asked {
                (slot.is_asked, slot.is_stale) = (true, false);
                missing.push(ask.clone());
            }
        }
        missing
    }

    /// An answer has come. One that could not be given because the engine was away is asked for again when it is back.
    pub(crate) fn take(&mut self, ask: ScreenAsk, answer: Result<ScreenFact, Problem>) {
        let slot = self.0.entry(ask).or_default();
        slot.is_asked = false;
        match answer {
            Ok(fact) => (slot.fact, slot.problem) = (Some(fact), None),
            Err(problem) => slot.problem = Some(problem),
        }
    }

    /// Something happened to these tasks and runs.
    pub(crate) fn age(&mut self, ids: &[&str]) {
        for (ask, slot) in &mut self.0 {
            slot.is_stale |= ask.changes_with_events() || ask.about().is_some_and(|id| ids.contains(&id));
        }
    }

    /// Whether the answer is one that a screen wants anew.
    pub(crate) fn age_if(&mut self, is_old: impl Fn(&ScreenAsk) -> bool) {
        self.0.iter_mut().filter(|(ask, _)| is_old(ask)).for_each(|(_, slot)| slot.is_stale = true);
    }
}
