//! Findings for people, with the lines they are about.
//!
//! `annotate-snippets` draws; what it is given is made here: a few lines around the places, long ones cut, and
//! nothing in them that a terminal would obey. It never sees a whole file, because it would copy and measure all of
//! it for each finding.

use super::{ReportStyle, cut};
use crate::source::Sources;
use annotate_snippets::{Annotation, AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet};
use sluice_core::problem::{Diagnosis, Severity};
use sluice_core::span::{FileId, Span};
use std::fmt::Write;
use std::ops::Range;

/// How many findings of one file are drawn.
const MOST_SHOWN: usize = 100;
/// How many other places are drawn for a finding.
const MOST_LABELS: usize = 8;
/// Places in a file that are further apart than this many lines are drawn apart.
const NEAR: usize = 40;
/// How many bytes of a line are shown, and how many of them before the place.
const WIDEST: usize = 120;
const BEFORE: usize = 50;
/// Stand around the number of a snippet where its path belongs. The library works out columns from what it is
/// shown, which is wrong in a line that was cut, so it never gets to see the path. Private characters; [`visible`]
/// keeps them out of everything else.
const MARKS: [char; 2] = ['\u{E000}', '\u{E001}'];

pub(super) fn render(sources: &Sources, problems: &[&Diagnosis], style: ReportStyle) -> String {
    let renderer = match style {
        ReportStyle::Plain => Renderer::plain(),
        ReportStyle::Colour => Renderer::styled(),
    };
    // Lines are cut already; this keeps the library from cutting them again.
    let renderer = renderer.term_width(10 * WIDEST);
    let mut out = String::new();
    for of_file in problems.chunk_by(|a, b| a.span.file == b.span.file) {
        let (notes, findings): (Vec<&Diagnosis>, Vec<&Diagnosis>) =
            of_file.iter().partition(|problem| problem.severity() == Severity::Note);
        for problem in findings.iter().take(MOST_SHOWN) {
            out.push_str(&finding(sources, problem, &renderer));
            out.push_str("\n\n");
        }
        if let Some(more) = findings.len().checked_sub(MOST_SHOWN).filter(|more| *more > 0)
            && let Some(first) = of_file.first()
        {
            let path = visible(sources.path(first.span.file));
            let _ = write!(out, "… and {more} more in {path}\n\n");
        }
        for problem in notes.iter().take(MOST_SHOWN) {
            out.push_str(&remark(sources, problem, &renderer));
            out.push('\n');
        }
    }
    out
}

/// A note in as few lines as it can be said in: nothing needs mending, so no lines of the file are shown.
fn remark(sources: &Sources, problem: &Diagnosis, renderer: &Renderer) -> String {
    let position = sources.position(problem.span);
    let place = format!("{}:{}:{}", visible(sources.path(problem.span.file)), position.line, position.column);
    let said: Vec<&str> = std::iter::once(&problem.message).chain(&problem.notes).map(String::as_str).collect();
    let title = Level::NOTE.primary_title(line(&format!("{place}: {}", said.join("; ")))).id(problem.code.as_str());
    renderer.render(&[Group::with_title(title)])
}

fn finding(sources: &Sources, problem: &Diagnosis, renderer: &Renderer) -> String {
    let level = match problem.severity() {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let excerpts = excerpts(sources, problem);
    let mut group = Group::with_title(level.primary_title(line(&problem.message)).id(problem.code.as_str()));
    for (index, excerpt) in excerpts.iter().enumerate() {
        // Of a file that is empty, or that could not be read, there is nothing to show but its path.
        group = match sources.text(excerpt.file).is_empty() {
            true => group.element(Origin::path(line(sources.path(excerpt.file)))),
            false => group.element(excerpt.draw(sources, index)),
        };
    }
    let note = |note: &String| Element::from(Level::NOTE.message(lines(note)));
    group = group.elements(problem.notes.iter().map(note));
    if let Some(help) = &problem.help {
        group = group.element(Level::HELP.message(lines(help)));
    }
    let mut drawn = renderer.render(&[group]);
    for (index, excerpt) in excerpts.iter().enumerate() {
        drawn = named(drawn, index, sources, excerpt);
    }
    drawn
}

/// Writes the true place where the mark of snippet `index` stands, with the wrong one behind it.
fn named(drawn: String, index: usize, sources: &Sources, excerpt: &Excerpt) -> String {
    let mark = mark(index);
    let Some((before, after)) = drawn.split_once(&mark) else { return drawn };
    let wrong = after.find(|letter: char| !letter.is_ascii_digit() && letter != ':').unwrap_or(after.len());
    let Some(place) = excerpt.places.first() else { return drawn };
    let position = sources.position(place.span);
    let path = line(sources.path(excerpt.file));
    format!("{before}{path}:{}:{}{}", position.line, position.column, &after[wrong..])
}

fn mark(index: usize) -> String {
    format!("{}{index}{}", MARKS[0], MARKS[1])
}

struct Excerpt {
    file: FileId,
    first: usize,
    last: usize,
    /// Never empty; the place that stands in the heading is first.
    places: Vec<ExcerptAnnotation>,
}

struct ExcerptAnnotation {
    span: Span,
    line: usize,
    text: String,
    kind: AnnotationKind,
}

/// The places of a finding, those that are near each other together.
fn excerpts(sources: &Sources, problem: &Diagnosis) -> Vec<Excerpt> {
    let place = |span: Span, text: &str, kind| {
        let line_number = sources.position(span).line;
        ExcerptAnnotation { span, line: line_number, text: line(text), kind }
    };
    let others = problem.others.iter().take(MOST_LABELS);
    let others = others.map(|other| place(other.span, &other.text, AnnotationKind::Context));
    let own = place(problem.span, &problem.label, AnnotationKind::Primary);
    let mut excerpts: Vec<Excerpt> = Vec::new();
    for place in std::iter::once(own).chain(others) {
        let file = place.span.file;
        let near = excerpts.iter_mut().find(|excerpt| {
            excerpt.file == file && place.line + NEAR >= excerpt.first && place.line <= excerpt.last + NEAR
        });
        match near {
            Some(excerpt) => {
                excerpt.first = excerpt.first.min(place.line);
                excerpt.last = excerpt.last.max(place.line);
                excerpt.places.push(place);
            }
            None => excerpts.push(Excerpt { file, first: place.line, last: place.line, places: vec![place] }),
        }
    }
    excerpts
}

impl Excerpt {
    fn draw(&self, sources: &Sources, index: usize) -> Snippet<'static, Annotation<'static>> {
        let text = sources.text(self.file);
        let mut shown = String::new();
        let mut annotations = Vec::new();
        for number in self.first..=self.last {
            let whole = sources.line_range(self.file, number);
            let center = self.places.iter().find(|place| place.line == number);
            let part = window(text, whole.clone(), center.map_or(whole.start, |place| place.span.range().start));
            if part.start > whole.start {
                shown.push('…');
            }
            for place in self.places.iter().filter(|place| place.line == number) {
                // A place over several lines is drawn on its first: the rest seldom says more, and may be long.
                let inside = |at: usize| text.floor_char_boundary(at.clamp(part.start, part.end));
                let (start, end) = (inside(place.span.range().start), inside(place.span.range().end));
                let drawn = |at: usize| shown.len() + visible(&text[part.start..at]).len();
                let annotation = place.kind.span(drawn(start)..drawn(end));
                annotations.push(annotation.label((!place.text.is_empty()).then(|| place.text.clone())));
            }
            shown.push_str(&visible(&text[part.clone()]));
            shown.push_str(if part.end < whole.end { "…\n" } else { "\n" });
        }
        Snippet::source(shown).line_start(self.first).path(mark(index)).annotations(annotations)
    }
}

/// The part of a line to show, so that `center` is in it.
fn window(text: &str, whole: Range<usize>, center: usize) -> Range<usize> {
    if whole.len() <= WIDEST {
        return whole;
    }
    let latest = whole.end - WIDEST;
    let start = center.saturating_sub(BEFORE).clamp(whole.start, latest);
    text.floor_char_boundary(start)..text.floor_char_boundary(start + WIDEST)
}

fn line(text: &str) -> String {
    lines(text).replace('\n', " ")
}

/// A message that may have several lines, not without end.
fn lines(text: &str) -> String {
    visible(&cut(text))
}

/// The text with everything that a terminal would obey, or that would show it in another order, replaced.
fn visible(text: &str) -> String {
    let replaced = |letter: char| match letter {
        '\t' | '\n' => letter,
        '\0'..='\u{1F}' => char::from_u32(0x2400 + u32::from(letter)).unwrap_or(char::REPLACEMENT_CHARACTER),
        '\u{7F}' => '␡',
        '\u{80}'..='\u{9F}' | '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}' => {
            char::REPLACEMENT_CHARACTER
        }
        '\u{2066}'..='\u{2069}' | '\u{FEFF}' => char::REPLACEMENT_CHARACTER,
        letter if MARKS.contains(&letter) => char::REPLACEMENT_CHARACTER,
        letter => letter,
    };
    text.chars().map(replaced).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_core::problem::Code;

    fn drawn(text: &str, make: impl Fn(FileId) -> Diagnosis) -> String {
        let mut sources = Sources::new();
        let file = sources.add("dir/a.yml", text);
        sources.add("other.md", "first\nsecond ${x}\n");
        render(&sources, &[&make(file)], ReportStyle::Plain)
    }

    fn at(file: FileId, range: Range<usize>) -> Diagnosis {
        Diagnosis::new(Code::Overlap, Span::new(file, range), "both can hold")
    }

    #[test]
    fn a_finding_looks_like_one_of_the_compiler() {
        let text = "states:\n  a: 1\n\n\n  b: 2\n  a: 3\n";
        let report = drawn(text, |file| {
            at(file, 26..27)
                .label("again")
                .other(Span::new(file, 10..11), "first here")
                .other(Span::new(FileId(1), 13..17), "used here")
                .note("one fact\nin two lines")
                .help("do this")
        });
        insta::assert_snapshot!(report, @"
        error[S0107]: both can hold
         --> dir/a.yml:6:3
          |
        2 |   a: 1
          |   - first here
        ...
        6 |   a: 3
          |   ^ again
          |
         ::: other.md:2:8
          |
        2 | second ${x}
          |        ---- used here
          |
          = note: one fact in two lines
          = help: do this
        ");
    }

    #[test]
    fn far_places_are_drawn_apart_and_ends_can_be_pointed_at() {
        let text = format!("a: 1\n{}b: 2", "\n".repeat(100));
        insta::assert_snapshot!(drawn(&text, |file| at(file, 109..109).other(Span::new(file, 0..1), "far")), @"
        error[S0107]: both can hold
           --> dir/a.yml:102:5
            |
        102 | b: 2
            |     ^
            |
           ::: dir/a.yml:1:1
            |
          1 | a: 1
            | - far
        ");
        insta::assert_snapshot!(drawn("", |file| at(file, 0..0)), @"
        error[S0107]: both can hold
        --> dir/a.yml
        ");
    }

    #[test]
    fn a_long_line_is_cut_around_the_place_and_the_column_stays_true() {
        let text = format!("x\n{}BAD{}\n", "é".repeat(3000), "-".repeat(3000));
        insta::assert_snapshot!(drawn(&text, |file| at(file, 6002..6005).label("bad")), @"
        error[S0107]: both can hold
         --> dir/a.yml:2:3001
          |
        2 | …éééééééééééééééééééééééééBAD-------------------------------------------------------------------…
          |                           ^^^ bad
        ");
    }

    #[test]
    fn nothing_reaches_the_terminal_raw() {
        let text = "a: \u{1b}[31m\u{9b}漢字 \u{202e}bad\tx\u{7}\n";
        let start = text.find("bad").unwrap();
        let report = drawn(text, |file| {
            let mut problem = at(file, start..start + 3).label("\u{1b}]0;").note("\u{1b}c").help("\u{e000}0\u{e001}:");
            problem.message = "a\u{1b}[2J\nb".into();
            problem
        });
        assert!(!report.contains(['\u{1b}', '\u{9b}', '\u{202e}', '\u{7}', '\u{e000}']));
        insta::assert_snapshot!(report, @"
        error[S0107]: a␛[2J b
         --> dir/a.yml:1:14
          |
        1 | a: ␛[31m�漢字 �bad    x␇
          |                ^^^  ]0;
          |
          = note:  c
          = help: �0�:
        ");
    }

    #[test]
    fn a_place_over_several_lines_is_drawn_on_its_first() {
        insta::assert_snapshot!(drawn("a: |\n  b\n  c\n", |file| at(file, 3..12).label("this block")), @"
        error[S0107]: both can hold
         --> dir/a.yml:1:4
          |
        1 | a: |
          |    ^ this block
        ");
    }

    #[test]
    fn findings_of_a_file_are_bounded() {
        let mut sources = Sources::new();
        let file = sources.add("a.yml", "x".repeat(200));
        let all: Vec<Diagnosis> = (0..150).map(|start| at(file, start..start + 1)).collect();
        let report = render(&sources, &all.iter().collect::<Vec<_>>(), ReportStyle::Plain);
        assert_eq!(report.matches("error[S0107]").count(), MOST_SHOWN);
        assert!(report.ends_with("… and 50 more in a.yml\n\n"));
    }

    #[test]
    fn colour_is_asked_for() {
        let mut sources = Sources::new();
        let file = sources.add("a.yml", "x");
        let report = render(&sources, &[&at(file, 0..1)], ReportStyle::Colour);
        assert!(report.contains("\u{1b}["));
        assert!(report.contains("a.yml:1:1"));
    }
}
