//! A diff: the tree of files beside the lines, with marks of what was viewed and the comments that wait.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use sluice_api::changes::{ChangePart, ChangedFile, Changes, FileChange, HunkLine, LineChange};

use super::{absent, put, span, words};
use crate::look::{RowTone, TerminalLook};
use crate::model::Model;
use crate::model::diff::{DiffLine, DiffPart, DiffReading, Spot, line_number};
use crate::model::facts::ScreenAsk;
use crate::text;

/// From so many columns on the tree stands beside the lines.
const TREE_FROM: usize = 100;

pub(super) fn draw(frame: &mut Frame, area: Rect, model: &Model, id: &str) {
    let ask = ScreenAsk::Changes(model.kind(id), id.to_owned());
    let Some(changes) = model.facts.changes(&ask) else { return put(frame, area, absent(model, &ask)) };
    let fresh = DiffReading::default();
    let reading = model.readings.get(id).unwrap_or(&fresh);
    let width = usize::from(area.width);
    let head = head(model, changes, reading, width);
    let top = u16::try_from(head.len()).unwrap_or(u16::MAX).min(area.height);
    put(frame, Rect { height: top, ..area }, head);
    let rest = Rect { y: area.y + top, height: area.height - top, ..area };
    let beside = if width >= TREE_FROM { area.width * 3 / 10 } else { 0 };
    if beside > 0 {
        let place = Rect { width: beside - 1, ..rest };
        put(frame, place, tree(model.look, changes, reading, place));
    }
    let place = Rect { x: rest.x + beside, width: rest.width - beside, ..rest };
    put(frame, place, lines(model.look, changes, reading, place));
}

fn head(model: &Model, changes: &Changes, reading: &DiffReading, width: usize) -> Vec<Line<'static>> {
    let look = model.look;
    let part = reading.part(changes);
    let viewed = part.files.iter().filter(|file| reading.is_viewed(file)).count();
    let comments = match reading.comments.len() {
        0 => String::new(),
        count => format!(" · {} for [X]", text::count(count, "comment")),
    };
    let title = format!(
        "{}{comments} · {} · +{} −{} in {} · {viewed} viewed · against {}",
        changes.branch,
        reading.part.title(),
        part.added,
        part.removed,
        text::count(part.count, "file"),
        changes.default_branch
    );
    let mut lines = vec![Line::styled(text::cut(&look.shown(&title), width), look.title())];
    if let (DiffPart::SinceVerdict, Some(since)) = (reading.part, &changes.since_verdict) {
        let verdict = since.verdict.as_deref().unwrap_or("the verdict");
        let short: String = since.verdict_commit.chars().take(8).collect();
        lines.push(words(
            look,
            &format!("since {verdict} for {short}: {}", text::count(since.commits.len(), "commit")),
            width,
        ));
    } else if let Some(since) = changes.since_verdict.as_ref().filter(|since| !since.commits.is_empty()) {
        let text =
            format!("newer than the last verdict: {} ([s] shows it alone)", text::count(since.commits.len(), "commit"));
        lines.push(Line::styled(text::cut(&text, width), look.tone(RowTone::Needs)));
    }
    if changes.uncommitted.as_ref().is_some_and(|part| part.count > 0) && reading.part != DiffPart::Uncommitted {
        let text = "there is work that is not committed: [s] shows it";
        lines.push(Line::styled(text::cut(text, width), look.tone(RowTone::Needs)));
    }
    lines
}

/// The files of a part, a line for each.
pub(super) fn files(look: TerminalLook, title: &str, part: &ChangePart, width: usize) -> Vec<Line<'static>> {
    let head = format!("{title}: +{} −{} in {}", part.added, part.removed, text::count(part.count, "file"));
    let file = |file: &ChangedFile| words(look, &format!("  {} {}  {}", letter(file), file.path, size(file)), width);
    std::iter::once(Line::styled(text::cut(&look.shown(&head), width), look.title()))
        .chain(part.files.iter().map(file))
        .collect()
}

fn letter(file: &ChangedFile) -> char {
    match file.change {
        FileChange::Added => 'A',
        FileChange::Changed => 'M',
        FileChange::Removed => 'D',
        FileChange::Renamed => 'R',
        FileChange::Copied => 'C',
    }
}

fn size(file: &ChangedFile) -> String {
    match (file.added, file.removed) {
        (Some(added), Some(removed)) => format!("+{added} −{removed}"),
        _ => "no text".to_owned(),
    }
}

fn tree(look: TerminalLook, changes: &Changes, reading: &DiffReading, area: Rect) -> Vec<Line<'static>> {
    let width = usize::from(area.width);
    let part = reading.part(changes);
    let here = reading.here(changes).map(DiffLine::file).unwrap_or_default();
    let mut lines = Vec::new();
    let mut at = 0;
    let mut folder = "";
    for (index, file) in part.files.iter().enumerate() {
        let (parent, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
        if parent != folder {
            folder = parent;
            let head = if parent.is_empty() { "./".to_owned() } else { format!("{parent}/") };
            lines.push(Line::styled(text::cut(&look.shown(&head), width), look.faint()));
        }
        if index == here {
            at = lines.len();
        }
        let comments = reading.comments.keys().filter(|(path, _)| *path == file.path).count();
        let mark = if reading.is_viewed(file) { "[x]" } else { "[ ]" };
        let comments = if comments > 0 { format!(" ({comments})") } else { String::new() };
        let size = size(file);
        let room = width.saturating_sub(text::width(&size) + 1);
        let indent = if folder.is_empty() { "" } else { "  " };
        let name = text::fit(&look.shown(&format!("{mark} {indent}{} {name}{comments}", letter(file))), room);
        let line = Line::from(vec![Span::raw(name), span(format!(" {size}"), look.faint())]);
        lines.push(if index == here { line.patch_style(look.chosen()) } else { line });
    }
    let shown = super::window(at, lines.len(), usize::from(area.height));
    lines.drain(..shown.start);
    lines.truncate(shown.len());
    lines
}

/// The lines around the one at which the person is; the rest is not made.
fn lines(look: TerminalLook, changes: &Changes, reading: &DiffReading, area: Rect) -> Vec<Line<'static>> {
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let part = reading.part(changes);
    let all = reading.lines(changes);
    if all.is_empty() {
        return vec![words(look, "nothing has changed", width)];
    }
    let at = reading.at.min(all.len() - 1);
    let near = at.saturating_sub(height)..(at + height + 1).min(all.len());
    let mut made = Vec::new();
    let mut cursor = 0;
    for index in near {
        let is_here = index == at;
        if is_here {
            cursor = made.len();
        }
        let (line, spot) = line(look, part, reading, all[index], width);
        made.push(if is_here { line.patch_style(look.chosen()) } else { line });
        if let Some(comment) = reading.comments.get(&spot) {
            let comment = format!("      {} {comment}", if look.ascii { ">>" } else { "»" });
            made.push(Line::styled(text::cut(&look.shown(&comment), width), look.tone(RowTone::Needs)));
        }
    }
    let shown = super::window(cursor, made.len(), height);
    made.drain(..shown.start);
    made.truncate(shown.len());
    made
}

/// A line of the diff, and where a comment at it stands.
fn line(
    look: TerminalLook,
    part: &ChangePart,
    reading: &DiffReading,
    at: DiffLine,
    width: usize,
) -> (Line<'static>, Spot) {
    let file = &part.files[at.file()];
    match at {
        DiffLine::File(_) => {
            let viewed = if reading.is_viewed(file) { "  viewed" } else { "" };
            let before = file.before.as_ref().map(|before| format!(" (was {before})")).unwrap_or_default();
            let cut = if file.cut { "  cut" } else { "" };
            let head = format!("{} {}{before}  {}{viewed}{cut}", letter(file), file.path, size(file));
            (Line::styled(text::cut(&look.shown(&head), width), look.title()), (file.path.clone(), None))
        }
        DiffLine::Hunk(_, hunk) => {
            let hunk = &file.hunks[hunk];
            let head = format!(
                "@@ −{},{} +{},{} @@ {}",
                hunk.old_start, hunk.old_lines, hunk.new_start, hunk.new_lines, hunk.heading
            );
            let line = Line::styled(text::cut(&look.shown(&head), width), look.ink(Color::Cyan));
            // A comment at the head of a hunk is one on the file, and is shown there.
            (line, (String::new(), None))
        }
        DiffLine::Line(_, hunk, index) => {
            let line = &file.hunks[hunk].lines[index];
            (changed(look, line, width), (file.path.clone(), line_number(line)))
        }
    }
}

fn changed(look: TerminalLook, line: &HunkLine, width: usize) -> Line<'static> {
    let (sign, style) = match line.change {
        LineChange::Same => (' ', Style::new()),
        LineChange::Added => ('+', look.ink(Color::Green)),
        LineChange::Removed => ('-', look.ink(Color::Red)),
    };
    let number = |number: Option<u32>| number.map(|it| it.to_string()).unwrap_or_default();
    let gutter = format!("{:>5} {:>5} ", number(line.old), number(line.new));
    let words = text::cut(&look.shown(&line.text), width.saturating_sub(text::width(&gutter) + 1));
    Line::from(vec![span(gutter, look.faint()), span(format!("{sign}{words}"), style)])
}
