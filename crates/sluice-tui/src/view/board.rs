//! The board: groups by whose turn it is, a row for each task and run, and at great width a look at the chosen one.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use sluice_api::attention::Attention;
use sluice_api::board::{ACTIVITY_PARTS, BoardAction, BoardGroup, BoardRow, BoardRowKind};

use super::{plain, put, span, window, words};
use crate::keys::{self, Deed, TABLE};
use crate::look::{RowTone, TerminalLook};
use crate::model::Model;
use crate::model::board::{BoardEntry, BoardState};
use crate::model::facts::ScreenAsk;
use crate::text;

/// The status of a run that has failed.
const RUN_FAILED: &str = "failed";

/// How wide each column is; 0: it is not there.
#[derive(Clone, Copy, Debug)]
struct Columns {
    name: usize,
    project: usize,
    state: usize,
    text: usize,
    usage: usize,
    /// The keys that deal with what waits for a person; of other rows the agent and how busy it was.
    side: usize,
}

/// The age, and the blank before it.
const AGE: usize = 5;

/// How busy the agent was, and the blank before it.
const ACTIVITY: usize = ACTIVITY_PARTS + 1;

impl Columns {
    fn new(width: usize) -> Columns {
        let (name, project, state) = match width {
            0..=89 => (13, 8, 13),
            90..=139 => (16, 10, 14),
            _ => (20, 12, 16),
        };
        let side = match width {
            0..=95 => 0,
            96..=139 => 22,
            _ => 30,
        };
        let usage = if width >= 110 { 12 } else { 0 };
        let used = 3 + name + 1 + project + 1 + state + 1 + usage + AGE + side;
        Columns { name, project, state, text: width.saturating_sub(used), usage, side }
    }
}

pub(super) fn draw(frame: &mut Frame, area: Rect, model: &Model) {
    let Some(board) = &model.board else { return };
    let list = match model.wants_preview() {
        true => Rect { width: area.width - area.width * 2 / 5, ..area },
        false => area,
    };
    put(frame, list, lines(model, board, list));
    if list.width < area.width {
        let side = Rect { x: list.x + list.width, width: area.width - list.width, ..area };
        put(frame, side, preview(model, board, side));
    }
}

fn lines(model: &Model, board: &BoardState, area: Rect) -> Vec<Line<'static>> {
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let mut lines = of_home(model, board, width);
    if board.entries.is_empty() {
        lines.extend(empty(board, model.look));
        return lines;
    }
    let height = height.saturating_sub(lines.len());
    let is_chosen =
        |entry: &BoardEntry| matches!(entry, BoardEntry::Row { id, .. } if Some(id) == board.chosen.as_ref());
    // Where the chosen row is not shown any more, the list stays where it was.
    let is_row = |(_, entry): &(usize, &BoardEntry)| matches!(entry, BoardEntry::Row { .. });
    let stood = || board.entries.iter().enumerate().filter(is_row).nth(board.place).map(|(at, _)| at);
    let at = board.entries.iter().position(is_chosen).or_else(stood).unwrap_or_default();
    // The head of the first group is seen with its first row.
    let shown = window(at, board.entries.len(), height);
    lines.extend(board.entries[shown].iter().map(|entry| line(model, board, entry, width)));
    lines
}

/// What the home itself needs a person for; the inbox has the rest of it.
fn of_home(model: &Model, board: &BoardState, width: usize) -> Vec<Line<'static>> {
    let look = model.look;
    let line = |it: &Attention| {
        let text = format!(" {} this home: {} (:inbox)", look.glyph(RowTone::Bad), it.text);
        Line::styled(text::cut(&look.shown(&text), width), look.tone(RowTone::Bad))
    };
    board.home.iter().take(2).map(line).collect()
}

/// What a person can do where there is nothing yet.
fn empty(board: &BoardState, look: TerminalLook) -> Vec<Line<'static>> {
    let words = match (board.filter.shows_everything(), board.projects.is_empty()) {
        (false, _) => vec!["Nothing passes the filter.", "[q] shows everything again."],
        (true, true) => vec![
            "There is no project yet.",
            "`sluice project add` in a repository makes it one; then [c] creates a task here.",
        ],
        (true, false) => vec!["There is no task and no run.", "[c] creates a task, [b] starts a recipe."],
    };
    let line = |text: &str| Line::styled(format!(" {text}"), look.faint());
    std::iter::once(Line::default()).chain(words.into_iter().map(line)).collect()
}

fn line(model: &Model, board: &BoardState, entry: &BoardEntry, width: usize) -> Line<'static> {
    match entry {
        BoardEntry::Head(group, count) => head(model, board, *group, *count, width),
        BoardEntry::Row { id, nested } => {
            let Some(row) = board.row(id) else { return Line::default() };
            let line = cells(model, row, *nested, width);
            if Some(id) == board.chosen.as_ref() { line.patch_style(model.look.chosen()) } else { line }
        }
    }
}

fn head(model: &Model, board: &BoardState, group: BoardGroup, count: usize, width: usize) -> Line<'static> {
    let title = match group {
        BoardGroup::NeedsYou => "NEEDS YOU",
        BoardGroup::ReadyToMerge => "READY TO MERGE",
        BoardGroup::InReview => "IN REVIEW",
        BoardGroup::Working => "WORKING",
        BoardGroup::Queued => "QUEUED",
        BoardGroup::Done => "DONE TODAY",
    };
    let more = match group {
        BoardGroup::Queued => queue(board),
        BoardGroup::Done => {
            let (well, cancelled) = (board.counts.merged_today, board.counts.cancelled_today);
            match board.counts.done_today.saturating_sub(well + cancelled) {
                0 => format!("{well} done well · {cancelled} cancelled"),
                other => format!("{well} done well · {cancelled} cancelled · {other} failed or ended otherwise"),
            }
        }
        BoardGroup::NeedsYou | BoardGroup::ReadyToMerge | BoardGroup::InReview | BoardGroup::Working => String::new(),
    };
    let first = format!(" {title} ({count})");
    let room = width.saturating_sub(text::width(&first) + 3);
    let more = text::cut(&model.look.shown(&more), room);
    Line::from(vec![span(first, model.look.title()), span(format!("   {more}"), model.look.faint())])
}

/// Who waits for a worktree of what.
fn queue(board: &BoardState) -> String {
    let waits = board.projects.iter().filter(|project| project.waiting_count > 0).map(|project| {
        let name = |id: &String| board.row(id).map_or_else(|| id.clone(), |row| row.name.clone());
        let names: Vec<String> = project.waiting.iter().take(3).map(name).collect();
        let more = if project.waiting_count > names.len() { " …" } else { "" };
        format!("waiting for a worktree of {}: {}{more}", project.name, names.join(", "))
    });
    waits.collect::<Vec<_>>().join(" · ")
}

/// Whose turn it is, as a shape and a colour.
pub(super) fn tone(row: &BoardRow) -> RowTone {
    let bad = row.attention.as_ref().is_some_and(|note| note.reason.is_failure());
    match row.group {
        BoardGroup::NeedsYou if bad => RowTone::Bad,
        BoardGroup::NeedsYou => RowTone::Needs,
        // The words of a run's end are Sluice's own; those of a task are its workflow's.
        BoardGroup::Done if row.kind == BoardRowKind::Run && row.status == RUN_FAILED => RowTone::Bad,
        BoardGroup::ReadyToMerge | BoardGroup::Done => RowTone::Good,
        BoardGroup::InReview | BoardGroup::Working if row.alive || row.kind == BoardRowKind::Run => RowTone::Works,
        BoardGroup::InReview | BoardGroup::Working => RowTone::Quiet,
        BoardGroup::Queued => RowTone::Waits,
    }
}

/// Why it waits, else its status; with the round of a review and its bound, which are never cut.
fn state(row: &BoardRow, width: usize) -> String {
    let word = match &row.attention {
        Some(note) if row.group == BoardGroup::NeedsYou => note.reason.word().replace('_', " "),
        Some(_) | None => row.step.clone().unwrap_or_else(|| row.status.clone()),
    };
    let round = match row.round {
        Some(round) if round.round > 0 => {
            let bound = round.bound.map(|bound| format!("/{bound}")).unwrap_or_default();
            format!(" {}{bound}", round.round)
        }
        _ => String::new(),
    };
    let word = text::cut(&text::line(&word), width.saturating_sub(text::width(&round)));
    text::fit(&format!("{word}{round}"), width)
}

fn said(row: &BoardRow) -> String {
    let size =
        row.diff.map(|size| format!(" · +{} −{} in {}", size.added, size.removed, text::count(size.files, "file")));
    let text = if row.text.is_empty() { &row.summary } else { &row.text };
    format!("{text}{}", size.unwrap_or_default())
}

fn used(row: &BoardRow) -> String {
    let Some(usage) = &row.usage else { return String::new() };
    let tokens = usage.total_tokens.map(text::amount);
    let cost = usage.cost_usd.map(text::money);
    [tokens, cost].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn cells(model: &Model, row: &BoardRow, nested: bool, width: usize) -> Line<'static> {
    let (look, columns) = (model.look, Columns::new(width));
    let tone = tone(row);
    let name = if nested { format!("  {}", row.name) } else { row.name.clone() };
    let cell = |words: &str, width: usize| text::fit(&look.shown(words), width);
    let mut spans = vec![
        span(format!(" {} ", look.glyph(tone)), look.tone(tone)),
        Span::raw(format!("{} ", cell(&name, columns.name))),
        span(format!("{} ", cell(row.project.as_deref().unwrap_or_default(), columns.project)), look.faint()),
        span(format!("{} ", state(row, columns.state)), look.tone(tone)),
        Span::raw(cell(&said(row), columns.text)),
    ];
    let faint = |words: String| span(words, look.faint());
    if columns.usage > 0 {
        spans.push(faint(format!(" {}", text::right(&used(row), columns.usage - 1))));
    }
    spans.push(Span::raw(format!(" {}", text::right(&text::age(&row.since, model.now), AGE - 1))));
    spans.extend(side(look, row, columns.side));
    Line::from(spans)
}

/// The keys that deal with what waits; else the agent, and how busy it was.
fn side(look: TerminalLook, row: &BoardRow, width: usize) -> Vec<Span<'static>> {
    if width == 0 {
        return Vec::new();
    }
    if matches!(row.group, BoardGroup::NeedsYou | BoardGroup::ReadyToMerge) {
        return vec![span(format!(" {}", text::fit(&hints(row, width - 1), width - 1)), look.faint())];
    }
    let agent = [row.harness.as_deref(), row.model.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let agent = text::fit(&look.shown(&agent), width - 1 - ACTIVITY);
    let levels: String = row.activity.iter().map(|level| look.level(*level)).collect();
    vec![
        span(format!(" {agent}"), look.faint()),
        span(format!(" {}", text::fit(&levels, ACTIVITY - 1)), look.tone(RowTone::Works)),
    ]
}

/// The first keys that do something with the row, as many as fit: what waits for a person is dealt with by them.
fn hints(row: &BoardRow, width: usize) -> String {
    let is_for = |deed: Deed| {
        let Deed::Do(action) = deed else { return false };
        !matches!(action, BoardAction::Delete | BoardAction::Cancel) && row.actions.contains(&action)
    };
    let acts = TABLE.iter().filter(|binding| is_for(binding.deed)).map(keys::hint);
    let answers = row.actions.contains(&BoardAction::Answer).then(|| "[Space] answer".to_owned());
    let mut made = String::new();
    for hint in acts.chain(answers) {
        let gap = usize::from(!made.is_empty());
        if text::width(&made) + gap + text::width(&hint) <= width {
            made.push_str(&" ".repeat(gap));
            made.push_str(&hint);
        }
    }
    made
}

/// The chosen row: what waits, and what its screen shows.
fn preview(model: &Model, board: &BoardState, area: Rect) -> Vec<Line<'static>> {
    let look = model.look;
    let width = usize::from(area.width).saturating_sub(3);
    let Some(row) = board.chosen() else { return Vec::new() };
    let mut lines = vec![
        Line::styled(text::cut(&look.shown(&format!("{} · {}", row.name, row.workflow)), width), look.title()),
        words(look, &row.summary, width),
    ];
    if let Some(note) = &row.attention {
        lines.extend(text::wrap(&look.shown(&note.text), width).into_iter().take(6).map(plain));
        lines.push(words(look, &note.choices.join(" · "), width));
    }
    lines.push(plain(look.rule().repeat(width)));
    let ask = ScreenAsk::Screen(row.kind, row.id.clone());
    match model.facts.screen(&ask) {
        Some(screen) => {
            let room = usize::from(area.height).saturating_sub(lines.len());
            let skipped = screen.lines.len().saturating_sub(room);
            lines.extend(screen.lines.iter().skip(skipped).map(|it| words(look, it, width)));
        }
        None => lines.extend(super::absent(model, &ask)),
    }
    let beside = |line: Line<'static>| {
        let mut spans = vec![span(format!(" {} ", look.bar()), look.faint())];
        spans.extend(line.spans.into_iter().map(|it| it.patch_style(line.style)));
        Line::from(spans)
    };
    let mut lines: Vec<Line> = lines.into_iter().map(beside).collect();
    lines.resize(usize::from(area.height), Line::from(span(format!(" {}", look.bar()), look.faint())));
    lines
}

/// The whole board as text, for `--once`.
pub(crate) fn once(model: &Model, width: u16) -> String {
    let Some(board) = &model.board else { return String::new() };
    let head = super::header(model, width);
    let rows: Vec<Line> = match board.entries.is_empty() {
        true => empty(board, model.look),
        false => board.entries.iter().map(|entry| line(model, board, entry, usize::from(width))).collect(),
    };
    let cut = board.cut.iter().map(|cut| words(model.look, cut, usize::from(width)));
    let text = |line: Line| {
        let line: String = line.spans.iter().map(|span| span.content.as_ref()).collect();
        let line = if model.look.ascii { text::plain(&line) } else { line };
        format!("{}\n", line.trim_end())
    };
    let home = of_home(model, board, usize::from(width));
    std::iter::once(head).chain(home).chain(rows).chain(cut).map(text).collect()
}
