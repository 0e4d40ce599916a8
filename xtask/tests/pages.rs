//! What pages say about the code, compared with the code: tables of keys and words, names of pages, words of the glossary.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use sluice_core::task::TaskKey;
use sluice_dialect::format::DefinitionFormat;
use sluice_dialect::shape::{FieldKind, Shape};
use xtask::root;

/// Names that end like a page's and are none: files that a page gives as examples, or that Sluice writes.
const NO_PAGES: [&str; 5] = ["notes.md", "plan.md", "body.md", "plan-the-release.md", ".sluice-task.md"];

fn tracked() -> Vec<String> {
    let listed =
        Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output().expect("git lists the files");
    let names = String::from_utf8(listed.stdout).unwrap();
    let names: Vec<String> = names.split_terminator('\0').map(str::to_owned).collect();
    names.into_iter().filter(|path| root().join(path).is_file()).collect()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

/// What stands between backticks.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// The rows of the tables of a page, as line number and cells.
fn rows(text: &str) -> Vec<(usize, Vec<String>)> {
    let cells = |line: &str| {
        let line = line.trim().trim_matches('|').replace("\\|", "\u{1}");
        line.split('|').map(|cell| cell.trim().replace('\u{1}', "|")).collect::<Vec<String>>()
    };
    let is_row = |line: &&str| line.starts_with('|') && !line.starts_with("|---");
    text.lines().enumerate().filter(|(_, line)| is_row(line)).map(|(index, line)| (index + 1, cells(line))).collect()
}

/// All shapes of all formats.
fn shapes() -> Vec<&'static Shape> {
    fn add(shape: &'static Shape, found: &mut Vec<&'static Shape>) {
        if !found.iter().any(|known| std::ptr::eq(*known, shape)) {
            found.push(shape);
            shape.fields().for_each(|field| inner(&field.kind, found));
        }
    }
    fn inner(kind: &'static FieldKind, found: &mut Vec<&'static Shape>) {
        match kind {
            FieldKind::Table(shape) => add(shape, found),
            FieldKind::List(kind) | FieldKind::Named(kind) => inner(kind, found),
            FieldKind::Either(kinds) => kinds.iter().for_each(|kind| inner(kind, found)),
            FieldKind::Text
            | FieldKind::Integer(..)
            | FieldKind::Bool
            | FieldKind::Duration
            | FieldKind::Choice(_)
            | FieldKind::ChoiceAnyCase(_)
            | FieldKind::Any => {}
        }
    }
    let mut found = Vec::new();
    DefinitionFormat::ALL.iter().for_each(|format| add(format.shape(), &mut found));
    found
}

/// The words of a key that takes one of a few.
fn choices(kind: &'static FieldKind, found: &mut Vec<&'static [&'static str]>) {
    match kind {
        FieldKind::Choice(words) | FieldKind::ChoiceAnyCase(words) => found.push(words),
        FieldKind::List(kind) | FieldKind::Named(kind) => choices(kind, found),
        FieldKind::Either(kinds) => kinds.iter().for_each(|kind| choices(kind, found)),
        FieldKind::Text
        | FieldKind::Integer(..)
        | FieldKind::Bool
        | FieldKind::Duration
        | FieldKind::Table(_)
        | FieldKind::Any => {}
    }
}

#[test]
fn the_page_of_words_has_those_of_the_shapes() {
    const PAGE: &str = "docs/problems/S0010.md";
    let text = read(PAGE);
    let rows = rows(&text);
    let rows: Vec<_> = rows.iter().filter(|(_, cells)| cells[0].contains('`')).collect();
    let mut found = Vec::new();
    for shape in shapes() {
        for field in shape.fields() {
            let mut lists = Vec::new();
            choices(&field.kind, &mut lists);
            for words in lists {
                let wanted: BTreeSet<&str> = words.iter().copied().collect();
                let is_of = |cells: &[String]| {
                    let of = cells[0].rsplit_once(" of ").map(|(_, what)| what);
                    quoted(&cells[0]).contains(&field.key) && of.is_none_or(|what| what == shape.what)
                };
                let says = |cells: &[String]| {
                    cells[1].contains("../formats.md#")
                        || quoted(&cells[1]).into_iter().collect::<BTreeSet<_>>() == wanted
                };
                if !rows.iter().any(|(_, cells)| is_of(cells) && says(cells)) {
                    found.push(format!("{PAGE}: no row gives `{}` of {} the words {words:?}", field.key, shape.what));
                }
            }
        }
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn the_page_about_lifecycles_names_the_variables() {
    const PAGE: &str = "docs/writing-a-lifecycle.md";
    let text = read(PAGE);
    let said = text.lines().find(|line| line.starts_with("The variables are ")).unwrap_or_default();
    let missing: Vec<&str> = TaskKey::variables().filter(|word| !said.contains(&format!("`{{{word}}}`"))).collect();
    assert!(missing.is_empty(), "{PAGE}: the line `The variables are …` does not name {missing:?}");
}

#[test]
fn the_page_of_missing_keys_has_those_that_must_be_there() {
    const PAGE: &str = "docs/problems/S0009.md";
    let text = read(PAGE);
    let shapes: BTreeMap<&str, &Shape> = shapes().into_iter().map(|shape| (shape.what, shape)).collect();
    let (mut found, mut compared) = (Vec::new(), 0);
    for (line, cells) in rows(&text) {
        let Some(shape) = shapes.get(cells[0].as_str()) else { continue };
        compared += 1;
        let said: BTreeSet<&str> = quoted(&cells[1]).into_iter().collect();
        let must = shape.fields().filter(|field| field.required && field.only.is_empty()).map(|field| field.key);
        for key in must.filter(|key| !said.contains(key)) {
            found.push(format!("{PAGE}:{line}: {} must have `{key}`, and the row does not say so", cells[0]));
        }
        let tagged = shape.fields().any(|field| field.required && !field.only.is_empty());
        if tagged && !cells[1].contains("../formats.md#") {
            found.push(format!("{PAGE}:{line}: {} has keys that go with its kind: link to formats.md", cells[0]));
        }
    }
    assert!(compared > 3, "{PAGE}: only {compared} rows are about something that has a shape");
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn a_word_stands_in_the_glossary_once() {
    const PAGE: &str = "docs/glossary.md";
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut found = Vec::new();
    for (line, cells) in rows(&read(PAGE)) {
        let word = cells[0].trim_end_matches('*').trim().to_lowercase();
        if let Some(first) = seen.insert(word.clone(), line) {
            found.push(format!("{PAGE}:{line}: `{word}` stands in line {first} already: one noun, one meaning"));
        }
    }
    assert!(seen.len() > 40, "the glossary has {} words", seen.len());
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn names_of_pages_lead_somewhere() {
    let files = tracked();
    let names: BTreeSet<&str> = files.iter().filter_map(|path| Path::new(path).file_name()?.to_str()).collect();
    let mut found = Vec::new();
    for path in files.iter().filter(|path| path.ends_with(".md") || path.ends_with(".rs")) {
        if path.contains("/tests/") || path.ends_with("tests.rs") || path == "CHANGELOG.md" {
            continue;
        }
        let mut is_shown = false;
        for (index, line) in read(path).lines().enumerate() {
            // What a page shows of a terminal or a file names no pages.
            is_shown ^= path.ends_with(".md") && line.trim_start().starts_with("```");
            if is_shown || path.ends_with(".rs") && !line.trim_start().starts_with("//") {
                continue;
            }
            let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || "/_.-".contains(letter);
            for word in line.split(|letter: char| !is_of_name(letter)) {
                let word = word.trim_end_matches('.').trim_start_matches("./");
                let Some(name) = word.rsplit('/').next().filter(|name| name.ends_with(".md") && name.len() > 3) else {
                    continue;
                };
                // Pages are written small; TASK.md, CLAUDE.md and the like are an agent's.
                let stem = name.trim_end_matches(".md");
                let is_page = stem.chars().any(|it| it.is_ascii_lowercase()) && !NO_PAGES.contains(&name);
                let beside = Path::new(path).parent().unwrap().join(word);
                let is_there = if word.contains('/') {
                    root().join(word).exists() || root().join(beside).exists()
                } else {
                    names.contains(name)
                };
                if is_page && !is_there {
                    found.push(format!("{path}:{}: `{word}` is no page: name one that is there", index + 1));
                }
            }
        }
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn text_files_have_no_nul() {
    const NO_TEXT: [&str; 6] = ["png", "ico", "gz", "zip", "db", "woff2"];
    let is_text = |path: &&String| {
        let ending = Path::new(path.as_str()).extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        !NO_TEXT.contains(&ending)
    };
    let mut found = Vec::new();
    for path in tracked().iter().filter(is_text) {
        let bytes = std::fs::read(root().join(path)).unwrap();
        if let Some(at) = bytes.iter().position(|byte| *byte == 0) {
            let line = bytes[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
            found.push(format!("{path}:{line}: a NUL: git and grep take the file for binary; write an escape"));
        }
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn the_exit_codes_of_the_readme_are_those_of_the_program() {
    let code = read("crates/sluice/src/output.rs");
    let of_code: Vec<&str> = code
        .lines()
        .skip_while(|line| !line.starts_with("pub(crate) enum CliExit"))
        .take_while(|line| *line != "}")
        .filter_map(|line| line.trim_end_matches(',').split_once(" = ").map(|(_, number)| number))
        .collect();
    let page = read("README.md");
    let rows =
        page.lines().skip_while(|line| *line != "## Exit codes").skip(1).take_while(|line| !line.starts_with("## "));
    let of_page: Vec<&str> = rows
        .filter_map(|line| line.strip_prefix("| ")?.split(" |").next())
        .filter(|cell| cell.parse::<u8>().is_ok())
        .collect();
    assert_eq!(of_page, of_code, "README.md, section Exit codes");
    assert!(of_code.len() > 5, "{of_code:?}");
}
