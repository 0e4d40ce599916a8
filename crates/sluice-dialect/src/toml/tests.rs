//! The TOML reader from text to tree and findings.

use super::*;
use crate::yaml::tests::shown;

fn tree(text: &str) -> String {
    let reading = read(FileId(0), text);
    assert_eq!(reading.problems, [], "{text:?}");
    reading.node.as_ref().map_or("none".into(), shown)
}

/// Each finding as code, the letters it points at, its words, and the letters at its first label.
fn told(text: &str) -> Vec<String> {
    let reading = read(FileId(0), text);
    let mut told = Vec::new();
    for it in &reading.problems {
        let label = it.others.first().map(|label| format!(" <- {}", label.span.start)).unwrap_or_default();
        told.push(format!("{} {:?} {}{label}", it.code.as_str(), &text[it.span.range()], it.message));
    }
    if reading.node.is_some() {
        told.push("tree".into());
    }
    told
}

#[test]
fn values_know_their_kind_and_their_place() {
    assert_eq!(tree(""), "none");
    assert_eq!(tree("# nothing\n"), "none");
    assert_eq!(tree("b = 1\na = 'x'\n"), "{b@0=1@4..5 a@6=\"x\"@10..13}@0..13");
    assert_eq!(
        tree("a = true\nb = 1.5\nc = 0x1F\nd = -1_000"),
        "{a@0=true@4..8 b@9=1.5d@13..16 c@17=31@21..25 d@26=-1000@30..36}@0..36"
    );
    assert_eq!(tree("a = [1, {b = 2}]"), "{a@0=[1@5..6 {b@9=2@13..14}@8..15]@4..16}@0..16");
    assert_eq!(tree("a = 2020-01-01"), "{a@0=\"2020-01-01\"@4..14}@0..14");
    assert_eq!(tree("\"é\" = 1"), "{é@0=1@7..8}@0..8");
}

#[test]
fn tables_cover_their_headers_and_their_content() {
    assert_eq!(tree("[a]\nb = 1\n[c]\n"), "{a@1={b@4=1@8..9}@0..9 c@11={}@10..13}@0..13");
    assert_eq!(tree("[[a]]\nb = 1\n[[a]]\n"), "{a@2=[{b@6=1@10..11}@0..11 {}@12..17]@0..17}@0..17");
    assert_eq!(tree("a.b = 1\na.c = 2"), "{a@0={b@2=1@6..7 c@10=2@14..15}@0..15}@0..15");
}

#[test]
fn texts_are_mapped_to_the_file() {
    let text = "a = \"\"\"\r\none ${x}\r\n  two\"\"\"\n";
    let node = read(FileId(0), text).node.unwrap();
    let block = node.get("a").unwrap().as_text().unwrap();
    let at = block.value.find("${x}").unwrap();
    assert_eq!(block.locate(at..at + 4).range(), text.find("${x}").map(|at| at..at + 4).unwrap());
    assert_eq!(tree("a = ''''''\nb = ''"), "{a@0=\"\"@4..10 b@11=\"\"@15..17}@0..17");
}

#[test]
fn a_second_key_of_a_name_is_told_and_the_first_kept() {
    let twice = "S0006 \"a\" `a` is written twice";
    assert_eq!(told("a = 1\nb = 2\na = 3\na = 4\n"), [format!("{twice} <- 0"), format!("{twice} <- 0"), "tree".into()]);
    assert_eq!(told("[x]\n[x.a]\n[b]\n[x.'a']\n"), ["S0006 \"'a'\" `a` is written twice <- 7", "tree"]);
    assert_eq!(told("[[x]]\na = 1\n[[x]]\na = 2\na = 3"), [format!("{twice} <- 18"), "tree".into()]);
    assert_eq!(told("x = {a = 1, a = 2}"), [twice, "tree"]);
    let node = read(FileId(0), "a = 1\na = 2").node.unwrap();
    assert_eq!(node.get("a").and_then(Node::as_integer), Some(1));
}

#[test]
fn all_syntax_errors_are_told() {
    assert_eq!(
        told("a = \nb = x\nc = \"y\n"),
        [
            "S0003 \"\" string values must be quoted, expected literal string",
            "S0003 \"x\" string values must be quoted, expected literal string",
            "S0003 \"\" invalid basic string, expected `\"`",
        ]
    );
    assert_eq!(told("a = 1\na.b = 2")[0], "S0003 \"a\" cannot extend value of type integer with a dotted key");
    assert_eq!(read(FileId(0), &"=\n".repeat(1000)).problems.len(), MOST_PROBLEMS);
    assert_eq!(read(FileId(0), &"=\n".repeat(ALL_ERRORS)).problems.len(), 1);
}

#[test]
fn numbers_beyond_64_bits_are_told() {
    let expected = "S0012 \"99999999999999999999\" `99999999999999999999` is too large for a whole number";
    assert_eq!(told("a = 99999999999999999999"), [expected, "tree"]);
}

#[test]
fn what_only_begins_like_a_number_is_told() {
    for begun in ["0x", "0o", "0b"] {
        let told = told(&format!("a = {begun}"));
        assert!(told.iter().any(|line| line.contains("is not a number")), "{begun}: {told:?}");
        assert!(!told.iter().any(|line| line.contains("too large")), "{begun}: {told:?}");
    }
}

#[test]
fn nesting_is_limited_however_it_is_written() {
    let deep = |text: String| told(&text).last().cloned().unwrap();
    let nested = |open: &str, close: &str, count| format!("a = {}{}", open.repeat(count), close.repeat(count));
    assert_eq!(deep(nested("[", "]", 63)), "tree");
    assert!(deep(nested("[", "]", 64)).starts_with("S0004"));
    assert_eq!(deep(nested("{a = ", "}", 30).replace("= }", "= 1}")), "tree");
    assert!(deep(nested("{a.a.a.a.a.a.a.a.a.a = ", "}", 30)).starts_with("S0004"));
    assert!(deep(format!("[{}a]\n{}a = 1", "a.".repeat(40), "a.".repeat(40))).starts_with("S0004"));
    let floats = format!("a = [{}1.5]\n", "1.5, ".repeat(1000));
    assert_eq!(deep(floats), "tree");
}

#[test]
fn a_text_that_breaks_off_inside_a_letter_is_no_trouble() {
    for mark in ["\"", "'", "\"\"\"", "'''"] {
        for inside in ["é", "aé", "\n\r\né", "\\é", ""] {
            assert!(!read(FileId(0), &format!("a = {mark}{inside}")).problems.is_empty());
        }
    }
}
