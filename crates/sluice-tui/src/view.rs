//! Drawing: the model in, the terminal out. Columns drop by width, and no line is ever longer than its place.

mod board;
mod detail;
mod diff;
mod inbox;
mod lists;
mod over;
mod run;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph};

use crate::keys;
use crate::look::{self, RowTone, TerminalLook};
use crate::model::facts::ScreenAsk;
use crate::model::{DashboardScreen, EngineLink, ListSubject, Model, possible};
use crate::text;

pub(crate) use board::once;

/// Lines that come from the engine are cut to so many where a screen shows a text.
pub(crate) const MOST_LINES: usize = 5_000;

pub(crate) fn draw(frame: &mut Frame, model: &Model) {
    let area = frame.area();
    if area.height < 4 || area.width < 20 {
        frame.render_widget(Paragraph::new("too small"), area);
        return;
    }
    put(frame, row(area, 0), vec![header(model, area.width)]);
    let body = Rect { y: area.y + 1, height: area.height - 3, ..area };
    match model.screen() {
        DashboardScreen::Board => board::draw(frame, body, model),
        DashboardScreen::Detail { id, tab, scroll } => detail::draw(frame, body, model, (id, *tab, *scroll)),
        DashboardScreen::Diff { id } => diff::draw(frame, body, model, id),
        DashboardScreen::Run { id, step, .. } => run::draw(frame, body, model, (id, *step)),
        DashboardScreen::Inbox { .. } => inbox::draw(frame, body, model),
        DashboardScreen::List { what, scroll } => lists::draw(frame, body, model, (*what, *scroll)),
    }
    put(frame, row(area, area.height - 2), vec![note(model, area.width)]);
    put(frame, row(area, area.height - 1), vec![footer(model, area.width)]);
    over::draw(frame, area, model);
    look::finish(model.look, frame.buffer_mut());
}

fn row(area: Rect, at: u16) -> Rect {
    Rect { y: area.y + at, height: 1, ..area }
}

/// Puts lines into a place; what does not fit is not drawn.
fn put(frame: &mut Frame, area: Rect, lines: Vec<Line<'static>>) {
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines), area);
}

fn span(text: impl Into<String>, style: Style) -> Span<'static> {
    Span::styled(text.into(), style)
}

fn plain(text: impl Into<String>) -> Line<'static> {
    Line::from(text.into())
}

/// A line of another's words, harmless and cut.
fn words(look: TerminalLook, words: &str, width: usize) -> Line<'static> {
    plain(text::cut(&look.shown(words), width))
}

/// The part of a list that is shown so that its line `at` is seen.
fn window(at: usize, count: usize, height: usize) -> std::ops::Range<usize> {
    let first = at.saturating_sub(height / 2).min(count.saturating_sub(height));
    first..(first + height).min(count)
}

/// Who needs what, in one line; what does not fit is left out, the least important first.
fn header(model: &Model, width: u16) -> Line<'static> {
    let look = model.look;
    let mut parts: Vec<(u8, Span)> = vec![(0, span("sluice", look.title()))];
    if let Some(board) = &model.board {
        let counts = &board.counts;
        let names: Vec<&str> = board.projects.iter().map(|project| project.name.as_str()).collect();
        let shown = board.filter.project.clone().unwrap_or_else(|| names.join(" "));
        parts.push((6, span(text::cut(&look.shown(&shown), 30), look.faint())));
        let mut count = |rank: u8, tone: RowTone, number: usize, word: &str| {
            parts.push((rank, span(format!("{}{number} {word}", look.glyph(tone)), look.tone(tone))));
        };
        count(1, RowTone::Needs, counts.inbox.unwrap_or(counts.needs_you), "need you");
        count(2, RowTone::Works, counts.working + counts.in_review, "working");
        count(3, RowTone::Waits, counts.queued, "queued");
        if counts.ready_to_merge > 0 {
            count(3, RowTone::Good, counts.ready_to_merge, "to merge");
        }
        let (used, size) = board.projects.iter().fold((0, 0), |(used, size), it| (used + it.used, size + it.pool_size));
        parts.push((4, span(format!("pool {used}/{size}"), Style::new())));
        if let Some(cost) = board.today.cost_usd {
            parts.push((5, span(format!("{} today", text::money(cost)), Style::new())));
        }
        if !model.is_away() {
            parts.push((7, span(format!("engine {}", text::age(&board.engine.started_at, model.now)), look.faint())));
        }
    }
    match &model.link {
        EngineLink::Begins => parts.push((1, span("looking for the engine", look.faint()))),
        EngineLink::Away { is_silent: true, .. } => {
            parts.push((0, span("engine does not answer", look.tone(RowTone::Bad))));
        }
        EngineLink::Away { is_silent: false, .. } => {
            parts.push((0, span("engine away, trying again", look.tone(RowTone::Bad))));
        }
        EngineLink::Live => {}
    }
    join(parts, usize::from(width))
}

/// The parts with two blanks between them; those of the highest rank go first where there is no room.
fn join(mut parts: Vec<(u8, Span<'static>)>, width: usize) -> Line<'static> {
    let length = |parts: &[(u8, Span)]| parts.iter().map(|(_, it)| text::width(&it.content) + 2).sum::<usize>();
    while length(&parts) > width + 2 && parts.len() > 1 {
        let least = parts.iter().map(|(rank, _)| *rank).max().unwrap_or_default();
        let at = parts.iter().rposition(|(rank, _)| *rank == least).unwrap_or_default();
        parts.remove(at);
    }
    let gap = |(at, (_, it)): (usize, (u8, Span<'static>))| {
        let gap = if at == 0 { None } else { Some(Span::raw("  ")) };
        gap.into_iter().chain(std::iter::once(it))
    };
    Line::from(parts.into_iter().enumerate().flat_map(gap).collect::<Vec<_>>())
}

/// What was said last, or why the engine is away.
fn note(model: &Model, width: u16) -> Line<'static> {
    let look = model.look;
    let (tone, words) = match (&model.note, &model.link) {
        (_, EngineLink::Away { is_silent, why }) => {
            let state = if *is_silent { "engine does not answer" } else { "engine away, trying again" };
            let words = match model.requests.count() {
                0 => format!("{state}: {why}"),
                count => format!("{state}; {count} asked for and kept until it is back"),
            };
            (RowTone::Bad, words)
        }
        (Some(note), EngineLink::Begins | EngineLink::Live) => (note.tone, note.text.clone()),
        (None, EngineLink::Begins | EngineLink::Live) if model.unread.is_some() => {
            (RowTone::Bad, format!("the board may be old: {}", model.unread.as_deref().unwrap_or_default()))
        }
        (None, EngineLink::Begins | EngineLink::Live) if model.awaits.is_some() => {
            (RowTone::Waits, "asking the engine".to_owned())
        }
        (None, EngineLink::Begins | EngineLink::Live) => return Line::default(),
    };
    let words = text::cut(&look.shown(&words), usize::from(width).saturating_sub(2));
    Line::from(vec![span(format!("{} ", look.glyph(tone)), look.tone(tone)), Span::raw(words)])
}

/// The keys that can be used now, as many as fit; help and quit are always there.
fn footer(model: &Model, width: u16) -> Line<'static> {
    let hints: Vec<String> = possible(model).into_iter().filter(|it| !it.word.is_empty()).map(keys::hint).collect();
    let ends = |hint: &&String| hint.starts_with("[?]") || hint.starts_with("[q]");
    let last: Vec<&str> = hints.iter().filter(ends).map(String::as_str).collect();
    let last = last.join(" ");
    let mut made = String::new();
    for hint in hints.iter().filter(|hint| !ends(hint)) {
        if text::width(&made) + text::width(hint) + text::width(&last) + 2 > usize::from(width) {
            break;
        }
        made.push_str(hint);
        made.push(' ');
    }
    Line::styled(format!("{made}{last}"), model.look.faint())
}

/// Why there is nothing to show of an answer yet.
fn absent(model: &Model, ask: &ScreenAsk) -> Vec<Line<'static>> {
    match model.facts.problem(ask) {
        Some(problem) => {
            let hint = problem.hint.iter().map(|hint| model.look.shown(&format!("hint: {hint}")));
            std::iter::once(model.look.shown(&problem.message)).chain(hint).map(plain).collect()
        }
        None if model.is_away() => vec![plain("the engine is away")],
        None => vec![plain("asking the engine")],
    }
}

/// How many lines the help has.
pub(crate) fn help_lines(model: &Model) -> usize {
    over::help(model).len()
}

/// How many lines the screen has through which keys move; of a run, its steps.
pub(crate) fn scrolled_lines(model: &Model) -> usize {
    match model.screen() {
        DashboardScreen::Detail { id, tab, .. } => detail::body(model, id, *tab, usize::from(model.size.0)).len(),
        DashboardScreen::List { what, .. } => lists::body(model, *what, usize::from(model.size.0)).len(),
        DashboardScreen::Run { id, .. } => {
            model.facts.run(&ScreenAsk::Run(id.clone())).map_or(0, |run| run.steps.len())
        }
        DashboardScreen::Board | DashboardScreen::Diff { .. } | DashboardScreen::Inbox { .. } => 0,
    }
}

/// What a screen is called, for its head.
fn title(model: &Model) -> String {
    match model.screen() {
        DashboardScreen::List { what: ListSubject::Workers, .. } => "WORKERS AND POOLS".to_owned(),
        DashboardScreen::List { what: ListSubject::Workspaces, .. } => "WORKSPACES".to_owned(),
        DashboardScreen::List { what: ListSubject::Costs(by), .. } => format!("COSTS BY {}", by.word().to_uppercase()),
        DashboardScreen::List { what: ListSubject::Schedules, .. } => "SCHEDULES".to_owned(),
        DashboardScreen::List { what: ListSubject::Events, .. } => "EVENTS".to_owned(),
        DashboardScreen::Inbox { .. } => "INBOX".to_owned(),
        DashboardScreen::Board
        | DashboardScreen::Detail { .. }
        | DashboardScreen::Diff { .. }
        | DashboardScreen::Run { .. } => String::new(),
    }
}
