//! Files that are made to hurt: the readers and the reports must come back from each, with a finding or a tree.
//!
//! Sizes are small in a debug build. To see how long each takes at full size:
//! `cargo test --release -p sluice-dialect --test torture -- --nocapture`. Times are printed and never asserted.

use sluice_core::span::{FileId, Span};
use sluice_dialect::read::{FileSyntax, ParsedFile, read};
use sluice_dialect::report::{self, ReportStyle};
use sluice_dialect::source::{MAX_FILE, Sources};
use std::time::Instant;

/// The size of a filled file.
const SIZE: usize = if cfg!(debug_assertions) { MAX_FILE / 1024 } else { MAX_FILE };

/// Reads `text`, prints what was found in every form, and says how long it took if that was long.
fn survive(name: &str, text: &str, syntax: FileSyntax) -> ParsedFile {
    let start = Instant::now();
    let reading = read(FileId(0), text, syntax);
    let read = start.elapsed();
    let mut sources = Sources::new();
    sources.add("a", text);
    let drawn = report::text(&sources, &reading.problems, ReportStyle::Plain);
    assert!(drawn.len() < 1_000_000, "{name}: the report is as long as a book");
    report::json(&sources, &reading.problems);
    report::sarif(&sources, &reading.problems, &|_| None);
    let all = start.elapsed();
    if all.as_millis() > 200 {
        let first = reading.problems.first().map(|it| it.message.chars().take(60).collect::<String>());
        println!("{syntax:?} {name:?}: read {read:?}, all {all:?}, {first:?}");
    }
    reading
}

#[test]
fn files_of_one_thing_over_and_over() {
    let things = [
        "a",
        "- ",
        "\"",
        "[",
        "\n",
        ": ",
        "&a ",
        "*a ",
        "#",
        "'",
        "|",
        "? ",
        "%",
        "!",
        "\t",
        "a\n",
        "- a\n",
        "a: b\n",
        "- - a\n",
        "[],",
        "a:\n",
        "{a: ",
        "- &a b\n",
        "- |\n",
        "%a\n",
        "é",
        "\r",
        "\u{feff}",
        " ",
        "\0",
        "\u{1b}[",
        "a = 1\n",
        "a.",
        "[a]\n",
        "[[a]]\n",
        "a = [",
        "{a=",
        "=\n",
        ".",
        "\\q",
        "\"\"\"",
        "'''",
        "a = \"\\q\"\n",
        "=",
        "1,",
        "{},",
    ];
    let openings =
        ["", "a: ", "- ", "[", "\"", "'", "|\n ", "&a [x]\n- *a\n", "a = ", "a = [", "a = \"", "a = '''", "[a]\n"];
    for thing in things {
        for opening in openings {
            let text = format!("{opening}{}", thing.repeat(SIZE / thing.len()));
            survive(&format!("{opening}{thing}"), &text, FileSyntax::Yaml);
            survive(&format!("{opening}{thing}"), &text, FileSyntax::Toml);
        }
    }
}

#[test]
fn lines_that_differ() {
    let numbered = |line: &dyn Fn(usize) -> String| -> String {
        let mut text = String::new();
        for number in 0.. {
            if text.len() > SIZE {
                break;
            }
            text += &line(number);
        }
        text
    };
    survive("keys", &numbered(&|n| format!("k{n}: v\n")), FileSyntax::Yaml);
    survive("anchors", &numbered(&|n| format!("- &k{n} v\n")), FileSyntax::Yaml);
    survive("block", &format!("a: |\n{}", numbered(&|n| format!("  line {n}\n"))), FileSyntax::Yaml);
    survive("folded", &format!("a: >\n{}", numbered(&|n| format!("  line {n}\n"))), FileSyntax::Yaml);
    survive("keys", &numbered(&|n| format!("k{n} = 'v'\n")), FileSyntax::Toml);
    survive("headers", &numbered(&|n| format!("[k{n}]\n")), FileSyntax::Toml);
    survive("lists", &numbered(&|n| format!("[[k]]\na = {n}\n")), FileSyntax::Toml);
    survive("dotted", &numbered(&|n| format!("a.b.c.k{n} = 1\n")), FileSyntax::Toml);
    survive("string", &format!("a = '''\n{}'''", numbered(&|n| format!("line {n}\n"))), FileSyntax::Toml);
    survive("twice", &numbered(&|n| format!("k{} = 1\n", n / 2)), FileSyntax::Toml);
}

#[test]
fn nesting_ends_in_a_finding_and_not_in_a_crash() {
    for (syntax, name, text) in [
        (FileSyntax::Yaml, "[", "[".repeat(100_000)),
        (FileSyntax::Yaml, "[]", "[".repeat(100_000) + &"]".repeat(100_000)),
        (FileSyntax::Yaml, "- ", "- ".repeat(100_000)),
        (FileSyntax::Yaml, "{a: ", "{a: ".repeat(100_000)),
        (FileSyntax::Yaml, "? ", "? ".repeat(100_000)),
        (FileSyntax::Yaml, "- and [", "- ".repeat(50) + &"[".repeat(50) + &"]".repeat(50)),
        (FileSyntax::Toml, "[", format!("a = {}", "[".repeat(100_000))),
        (FileSyntax::Toml, "[]", format!("a = {}{}", "[".repeat(100_000), "]".repeat(100_000))),
        (FileSyntax::Toml, "{a=", format!("a = {}", "{a=".repeat(100_000))),
        (FileSyntax::Toml, "a.", format!("{}a = 1", "a.".repeat(100_000))),
        (FileSyntax::Toml, "[a.", format!("[{}a]", "a.".repeat(100_000))),
        (FileSyntax::Toml, "[[a.", format!("[[{}a]]", "a.".repeat(100_000))),
        (FileSyntax::Toml, "{a.a=", format!("a = {}", "{a.a.a.a.a.a=".repeat(10_000))),
        (FileSyntax::Toml, "[{a.a=", format!("a = {}", "[{a.a.a.a.a.a=".repeat(10_000))),
    ] {
        let reading = survive(name, &text, syntax);
        assert_eq!(reading.node, None, "{syntax:?} {name}");
        let codes: Vec<&str> = reading.problems.iter().map(|it| it.code.as_str()).collect();
        assert_eq!(codes, ["S0004"], "{syntax:?} {name}");
    }
}

#[test]
fn indentation_without_end() {
    let mut text = String::new();
    for depth in 0..1000 {
        text += &format!("{}a:\n", " ".repeat(depth));
    }
    let reading = survive("stairs", &text, FileSyntax::Yaml);
    assert_eq!(reading.problems.first().map(|it| it.code.as_str()), Some("S0004"));
}

#[test]
fn many_places_in_one_long_line_are_found_fast() {
    let mut sources = Sources::new();
    let file = sources.add("a", "é".repeat(SIZE / 2));
    let start = Instant::now();
    for number in 0..1000 {
        let at = SIZE / 2000 * number * 2;
        assert_eq!(sources.position(Span::new(file, at..at)).column, at / 2 + 1);
    }
    println!("1000 positions: {:?}", start.elapsed());
}
