//! Screens and tabs that are opened, and what is opened only when its answer has come.

use sluice_api::board::BoardRowKind;
use sluice_api::problem::Problem;
use sluice_api::usage::CostsBy;

use super::{forms, name_of};
use crate::keys::OpenedPlace;
use crate::look::RowTone;
use crate::model::asking::{LinePrompt, Purpose};
use crate::model::facts::ScreenAsk;
use crate::model::{AwaitedAnswer, DashboardCommand, DashboardNote, DashboardScreen, ListSubject, Model, Overlay, Tab};

/// The most screens that are opened one from the other.
const DEEPEST: usize = 16;

fn show(model: &mut Model, screen: DashboardScreen) {
    model.overlay = None;
    // A screen that is opened from its like takes its place.
    let alike =
        model.screens.last().is_some_and(|last| std::mem::discriminant(last) == std::mem::discriminant(&screen));
    if alike || model.screens.len() >= DEEPEST {
        model.screens.pop();
    }
    model.screens.push(screen);
}

pub(super) fn list(model: &mut Model, what: ListSubject) {
    show(model, DashboardScreen::List { what, scroll: 0 });
}

pub(super) fn inbox(model: &mut Model) {
    show(model, DashboardScreen::Inbox { at: None, place: 0 });
    // What is known may have been answered since: then the first that waits comes with the answer.
    if !model.facts.is_stale(&ScreenAsk::Inbox) {
        settle_inbox(model);
    }
}

/// An inbox that shows nothing yet shows the first that waits. One that shows something stays with it, also when it has passed.
pub(in crate::model) fn settle_inbox(model: &mut Model) {
    let first = model.facts.inbox(&ScreenAsk::Inbox).and_then(|letters| letters.first()).map(|it| it.id.clone());
    if let Some(DashboardScreen::Inbox { at: at @ None, place }) = model.screens.last_mut() {
        (*at, *place) = (first, 0);
    }
}

pub(super) fn details(model: &mut Model, id: String) {
    match model.kind(&id) {
        BoardRowKind::Task => show(model, DashboardScreen::Detail { id, tab: Tab::Terminal, scroll: 0 }),
        BoardRowKind::Run => show(model, DashboardScreen::Run { id, step: 0, scroll: 0 }),
    }
}

pub(super) fn open(model: &mut Model, id: String, place: OpenedPlace) {
    let tab = match place {
        OpenedPlace::Diff => return show(model, DashboardScreen::Diff { id }),
        OpenedPlace::Workspaces => return list(model, ListSubject::Workspaces),
        OpenedPlace::Graph if model.kind(&id) == BoardRowKind::Run => return details(model, id),
        OpenedPlace::Graph => Tab::States,
        OpenedPlace::Log => Tab::Log,
        OpenedPlace::File => Tab::File,
        OpenedPlace::History => Tab::History,
    };
    show(model, DashboardScreen::Detail { id, tab, scroll: 0 });
}

/// The next tab, or the one before; from the picture of a run its tabs are opened.
pub(super) fn turn(model: &mut Model, is_forward: bool) {
    let Some(id) = model.subject().map(|row| row.id.clone()) else { return };
    let tabs = Tab::of(model.kind(&id));
    match model.screens.last_mut() {
        Some(DashboardScreen::Detail { tab, scroll, .. }) => {
            let at = tabs.iter().position(|it| it == tab).unwrap_or_default();
            let step = if is_forward { 1 } else { tabs.len() - 1 };
            (*tab, *scroll) = (tabs[(at + step) % tabs.len()], 0);
        }
        Some(
            DashboardScreen::Board
            | DashboardScreen::Diff { .. }
            | DashboardScreen::Run { .. }
            | DashboardScreen::Inbox { .. }
            | DashboardScreen::List { .. },
        )
        | None => show(model, DashboardScreen::Detail { id, tab: Tab::Log, scroll: 0 }),
    }
}

/// Adds costs up by the next thing.
pub(super) fn next_sum(model: &mut Model) {
    if let Some(DashboardScreen::List { what: ListSubject::Costs(by), scroll }) = model.screens.last_mut() {
        let at = CostsBy::ALL.iter().position(|it| it == by).map_or(0, |at| at + 1);
        (*by, *scroll) = (CostsBy::ALL[at % CostsBy::ALL.len()], 0);
    }
}

/// An answer has come that something may have waited for.
pub(in crate::model) fn arrived(model: &mut Model, ask: &ScreenAsk) -> Vec<DashboardCommand> {
    // One that is old already is asked for again: views that another has saved meanwhile must not be lost.
    if let Some(view) = model.saving.take_if(|_| *ask == ScreenAsk::Views && !model.facts.is_stale(ask)) {
        return forms::save_view(model, view);
    }
    let Some(awaits) = model.awaits.take_if(|awaits| awaits.ask() == *ask) else { return Vec::new() };
    match awaits {
        AwaitedAnswer::Recipes(project) => forms::recipes(model, &project),
        AwaitedAnswer::View(number) => view(model, number),
        AwaitedAnswer::Worktree(_) => return edit(model, ask),
        AwaitedAnswer::Kept(id) => restore(model, &id),
    }
    Vec::new()
}

/// What was waited for does not come: the person is told why, and nothing waits any more.
pub(in crate::model) fn failed(model: &mut Model, ask: &ScreenAsk, problem: &Problem) {
    let opened = model.awaits.take_if(|awaits| awaits.ask() == *ask).map(|awaits| match awaits {
        AwaitedAnswer::Recipes(project) => format!("the recipes of {project}"),
        AwaitedAnswer::View(_) => "the saved views".to_owned(),
        AwaitedAnswer::Worktree(id) => format!("the worktree of {}", name_of(model, &id)),
        AwaitedAnswer::Kept(id) => format!("the kept work of {}", name_of(model, &id)),
    });
    let saved = model.saving.take_if(|_| *ask == ScreenAsk::Views);
    let saved = saved.map(|view| format!("the view {} is not saved", view.name));
    if let Some(what) = saved.or(opened) {
        let hint = problem.hint.iter().map(|hint| format!(" ({hint})")).collect::<String>();
        model.say(RowTone::Bad, format!("{what}: {}{hint}", problem.message));
    }
}

fn view(model: &mut Model, number: usize) {
    let view = model.facts.views(&ScreenAsk::Views).and_then(|views| views.get(number)).cloned();
    match (view, &mut model.board) {
        (Some(view), Some(board)) => {
            model.note =
                Some(DashboardNote { text: format!("view {}: {}", number + 1, view.name), tone: RowTone::Quiet });
            board.set_filter(view);
        }
        _ => model.say(RowTone::Quiet, format!("there is no view {}; [S] saves what is filtered as one", number + 1)),
    }
}

fn edit(model: &mut Model, ask: &ScreenAsk) -> Vec<DashboardCommand> {
    match model.facts.task(ask).and_then(|task| task.workspace.clone()) {
        Some(folder) => vec![DashboardCommand::Edit(folder)],
        None => {
            model.say(RowTone::Quiet, "it has no worktree now");
            Vec::new()
        }
    }
}

/// Asks for the folder into which the newest kept work is restored.
fn restore(model: &mut Model, id: &str) {
    let kept =
        model.facts.workspaces(&ScreenAsk::Workspaces).is_some_and(|list| list.kept.iter().any(|kept| kept.task == id));
    if !kept {
        model.say(RowTone::Quiet, format!("{}: no work was kept; nothing would have been lost", name_of(model, id)));
        return;
    }
    let name = name_of(model, id).replace('/', "-");
    let parent = model.here.rsplit_once('/').map_or("", |(parent, _)| parent);
    let folder = format!("{parent}/{name}-restored");
    model.overlay = Some(Overlay::Prompt(LinePrompt::new(Purpose::Restore(id.to_owned()), &folder)));
}
