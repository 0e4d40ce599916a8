//! Lists that are about no single row: workers and pools, workspaces, costs, repeats, events.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use sluice_api::board::BoardProject;
use sluice_api::schedules::{ScheduledRepeat, Schedules};
use sluice_api::usage::Costs;
use sluice_api::workers::Workers;
use sluice_api::workspace::{Kept, WorkspaceList};

use super::{absent, put, words};
use crate::look::{RowTone, TerminalLook};
use crate::model::facts::ScreenAsk;
use crate::model::{ListSubject, Model};
use crate::text;

pub(super) fn draw(frame: &mut Frame, area: Rect, model: &Model, (what, scroll): (ListSubject, usize)) {
    let mut lines = vec![Line::styled(super::title(model), model.look.title())];
    let body = body(model, what, usize::from(area.width));
    let room = usize::from(area.height).saturating_sub(1);
    let first = scroll.min(body.len().saturating_sub(room));
    lines.extend(body.into_iter().skip(first).take(room));
    put(frame, area, lines);
}

/// The lines of a list.
pub(super) fn body(model: &Model, what: ListSubject, width: usize) -> Vec<Line<'static>> {
    let (facts, look) = (&model.facts, model.look);
    let (ask, shown) = match what {
        ListSubject::Workers => {
            (ScreenAsk::Workers, facts.workers(&ScreenAsk::Workers).map(|it| workers(look, it, width)))
        }
        ListSubject::Workspaces => {
            (ScreenAsk::Workspaces, facts.workspaces(&ScreenAsk::Workspaces).map(|it| workspaces(look, it, width)))
        }
        ListSubject::Costs(by) => {
            (ScreenAsk::Costs(by), facts.costs(&ScreenAsk::Costs(by)).map(|it| costs(look, it, width)))
        }
        ListSubject::Schedules => {
            (ScreenAsk::Schedules, facts.schedules(&ScreenAsk::Schedules).map(|it| schedules(model, it, width)))
        }
        ListSubject::Events => (ScreenAsk::Events, facts.history(&ScreenAsk::Events).map(|_| events(model, width))),
    };
    shown.unwrap_or_else(|| absent(model, &ask))
}

fn pool(look: TerminalLook, pool: &BoardProject, width: usize) -> Line<'static> {
    let waiting = match pool.waiting_count {
        0 => String::new(),
        count => format!(" · {count} wait: {}", pool.waiting.iter().take(5).cloned().collect::<Vec<_>>().join(", ")),
    };
    words(look, &format!("  {:<20} {} of {} worktrees in use{waiting}", pool.name, pool.used, pool.pool_size), width)
}

fn kept(look: TerminalLook, kept: &Kept, width: usize) -> Line<'static> {
    words(look, &format!("  {:<12} #{} {:<12} {} {}", kept.task, kept.number, kept.project, kept.at, kept.what), width)
}

fn heading(look: TerminalLook, title: &str) -> Line<'static> {
    Line::styled(title.to_owned(), look.title())
}

fn workers(look: TerminalLook, shown: &Workers, width: usize) -> Vec<Line<'static>> {
    let here = {
        let (sessions, steps) = (text::count(shown.here.sessions, "session"), text::count(shown.here.steps, "step"));
        format!("this machine: {sessions}, {steps} under way")
    };
    let mut lines = vec![words(look, &here, width)];
    for worker in &shown.workers {
        let lease = worker.lease.as_ref().map_or_else(
            || "no step".to_owned(),
            |lease| {
                let ends = lease.ends_in_seconds.map(|it| format!(", lost in {}s", it)).unwrap_or_default();
                format!("{} of {}{ends}", lease.step, lease.run)
            },
        );
        let silent = worker
            .silent_seconds
            .map_or_else(String::new, |it| format!(" · silent {}", text::span(i64::try_from(it).unwrap_or(i64::MAX))));
        let line = format!(
            "  {:<16} {:<10} {:<14} {:<8} {lease}{silent}",
            worker.name, worker.role, worker.group, worker.state
        );
        lines.push(words(look, &line, width));
    }
    if shown.workers.is_empty() {
        lines.push(Line::styled("  no worker elsewhere; `sluice worker --connect URL` starts one", look.faint()));
    }
    if shown.waiting_count > 0 {
        lines.push(heading(look, &format!("WAIT FOR A WORKER ({})", shown.waiting_count)));
        let step = |it: &sluice_api::workers::WaitingStep| {
            format!("  {:<16} {:<10} {:<14} {}", it.step, it.role, it.group, it.run)
        };
        lines.extend(shown.waiting.iter().map(|it| words(look, &step(it), width)));
    }
    lines.push(heading(look, "POOLS"));
    lines.extend(shown.pools.iter().map(|it| pool(look, it, width)));
    if shown.kept_count > 0 {
        lines.push(heading(look, &format!("KEPT WORK ({})", shown.kept_count)));
        lines.extend(shown.kept.iter().map(|it| kept(look, it, width)));
    }
    lines
}

fn workspaces(look: TerminalLook, list: &WorkspaceList, width: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for workspace in &list.workspaces {
        let task = workspace.task.as_deref().unwrap_or("free");
        lines.push(words(look, &format!("  {:<12} {:<12} {}", workspace.project, task, workspace.path), width));
    }
    for run in &list.runs {
        lines.push(words(look, &format!("  {:<12} {:<12} {}", "run", run.run, run.path), width));
    }
    if lines.is_empty() {
        lines.push(Line::styled("  there is no worktree yet; the first task makes one", look.faint()));
    }
    if !list.kept.is_empty() {
        lines.push(heading(look, &format!("KEPT WORK ({})", list.kept.len())));
        lines.extend(list.kept.iter().map(|it| kept(look, it, width)));
    }
    for disk in &list.disk {
        let low = if disk.is_low { " — low" } else { "" };
        lines.push(words(look, &format!("{} free at {}{low}", text::bytes(disk.free_bytes), disk.path), width));
    }
    lines
}

fn costs(look: TerminalLook, costs: &Costs, width: usize) -> Vec<Line<'static>> {
    let total = format!("since {}: {}", costs.since, super::detail::sum(&costs.total));
    let mut lines = vec![words(look, &total, width)];
    let name = |row: &sluice_api::usage::CostRow| match row.name.is_empty() {
        true => row.key.clone().unwrap_or_else(|| "not known".to_owned()),
        false => row.name.clone(),
    };
    lines.extend(costs.rows.iter().map(|row| {
        let name = text::fit(&look.shown(&name(row)), 28);
        words(look, &format!("  {name} {}", super::detail::sum(&row.sum)), width)
    }));
    lines.extend(costs.notes.iter().map(|note| words(look, note, width)));
    lines
}

/// What starts again by itself, and when.
fn schedules(model: &Model, shown: &Schedules, width: usize) -> Vec<Line<'static>> {
    let look = model.look;
    let repeat = |it: &ScheduledRepeat| {
        let next = match it.next_at.as_deref().map(|at| text::until(at, model.now)) {
            Some(next) => format!("next in {next}"),
            None => "under way".to_owned(),
        };
        let every = text::span(i64::try_from(it.every_seconds).unwrap_or(i64::MAX));
        let project = it.project.as_deref().unwrap_or("-");
        let error = it.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
        let line = format!(
            "  {:<16} {project:<12} {next:<13} {:<9} run {} · {every} after its end · {}{error}",
            it.recipe, it.status, it.turn, it.run
        );
        words(look, &line, width)
    };
    if shown.repeats.is_empty() {
        return vec![Line::styled(
            "  nothing repeats; a recipe with `repeat` starts again after its end",
            look.faint(),
        )];
    }
    let more = shown.count.saturating_sub(shown.repeats.len());
    let rest = (more > 0).then(|| words(look, &format!("  and {more} more"), width));
    shown.repeats.iter().map(repeat).chain(rest).collect()
}

/// What happened, the newest first.
fn events(model: &Model, width: usize) -> Vec<Line<'static>> {
    let before = model.facts.history(&ScreenAsk::Events).map(Vec::as_slice).unwrap_or_default();
    let last = before.last().map(|event| event.seq).unwrap_or_default();
    let since = model.events.iter().filter(|event| event.seq > last);
    let all: Vec<_> = before.iter().chain(since).collect();
    if all.is_empty() {
        return vec![Line::styled("nothing has happened yet", model.look.tone(RowTone::Quiet))];
    }
    all.into_iter().rev().map(|event| super::detail::event(model.look, event, width)).collect()
}
