//! The YAML reader from text to tree and findings.

use super::*;
use crate::read::MOST_PROBLEMS;

/// The tree in one line, each value with its bytes.
pub(crate) fn shown(node: &Node) -> String {
    let range = node.span.range();
    let value = match &node.value {
        NodeValue::Null => "null".into(),
        NodeValue::Bool(value) => value.to_string(),
        NodeValue::Integer(value) => value.to_string(),
        NodeValue::Decimal(value) => format!("{value}d"),
        NodeValue::Text(text) => format!("{:?}", text.value),
        NodeValue::List(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(" ")),
        NodeValue::Table(entries) => {
            let entry =
                |entry: &TableEntry| format!("{}@{}={}", entry.key.value, entry.key.span.start, shown(&entry.value));
            format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(" "))
        }
    };
    format!("{value}@{}..{}", range.start, range.end)
}

fn tree(text: &str) -> String {
    let reading = read(FileId(0), text);
    assert_eq!(reading.problems, [], "{text:?}");
    reading.node.as_ref().map_or("none".into(), shown)
}

/// Each finding as code, the letters it points at, and its words.
fn told(text: &str) -> Vec<String> {
    let reading = read(FileId(0), text);
    let mut told: Vec<String> = reading
        .problems
        .iter()
        .map(|it| format!("{} {:?} {}", it.code.as_str(), &text[it.span.range()], it.message))
        .collect();
    if reading.node.is_some() {
        told.push("tree".into());
    }
    told
}

#[test]
fn values_know_their_kind_and_their_place() {
    assert_eq!(tree(""), "none");
    assert_eq!(tree("# nothing\n"), "none");
    assert_eq!(tree("---\n"), "null@3..3");
    assert_eq!(tree("a: b"), "{a@0=\"b\"@3..4}@0..4");
    assert_eq!(tree("a: 'b'\nc: \"d\""), "{a@0=\"b\"@3..6 c@7=\"d\"@10..13}@0..13");
    assert_eq!(tree("a: 1\nb: 'true'\nc: true"), "{a@0=1@3..4 b@5=\"true\"@8..14 c@15=true@18..22}@0..22");
    assert_eq!(tree("é: ü\n"), "{é@0=\"ü\"@4..6}@0..6");
    assert_eq!(tree("a:\nb: 1.5\n"), "{a@0=null@2..2 b@3=1.5d@6..9}@0..9");
    assert_eq!(tree("[a, {b: c}]"), "[\"a\"@1..2 {b@5=\"c\"@8..9}@4..10]@0..11");
}

#[test]
fn a_list_starts_at_its_first_dash() {
    assert_eq!(tree("a:\n- b\n- c\n"), "{a@0=[\"b\"@5..6 \"c\"@9..10]@3..10}@0..10");
    assert_eq!(tree("a:\n  - b\n  # x\n"), "{a@0=[\"b\"@7..8]@5..8}@0..8");
    assert_eq!(tree("- - b\n"), "[[\"b\"@4..5]@2..5]@0..5");
}

#[test]
fn a_block_starts_at_its_bar_and_is_mapped_line_by_line() {
    let text = "a: | # x | y\r\n  one\r\n    two\r\n\r\n";
    let reading = read(FileId(0), text);
    let node = reading.node.unwrap();
    let block = node.get("a").unwrap().as_text().unwrap();
    assert_eq!(block.value, "one\n  two\n");
    assert_eq!(&text[block.span.range()], "| # x | y\r\n  one\r\n    two");
    let two = block.value.find("two").unwrap();
    assert_eq!(block.locate(two..two + 3).range(), text.find("two").map(|at| at..at + 3).unwrap());
    assert_eq!(tree("- >-\n one\n two\n"), "[\"one two\"@2..14]@0..14");
    assert_eq!(tree("a: |\nb: c"), "{a@0=\"\"@3..4 b@5=\"c\"@8..9}@0..9");
}

#[test]
fn tags_are_honoured_or_rejected() {
    assert_eq!(tree("!!str 12"), "\"12\"@6..8");
    assert_eq!(tree("! 12"), "\"12\"@2..4");
    assert_eq!(tree("a: !!str"), "{a@0=\"\"@8..8}@0..8");
    assert_eq!(tree("!!int '12'"), "12@6..10");
    assert_eq!(tree("!!map {}"), "{}@6..8");
    assert_eq!(told("!!int x"), ["S0008 \"!!int\" `x` is not what its tag `!!int` says", "tree"]);
    assert_eq!(told("a: !ref x"), ["S0008 \"!ref\" the tag `!ref` means nothing here", "tree"]);
    assert_eq!(told("a: !!set {x}"), ["S0008 \"!!set\" the tag `!!set` means nothing here", "tree"]);
}

#[test]
fn a_second_key_of_a_name_is_told_and_the_first_kept() {
    let text = "b: 1\na: 2\n'b': 3\nb: 4\n";
    let reading = read(FileId(0), text);
    assert_eq!(shown(&reading.node.unwrap()), "{b@0=1@3..4 a@5=2@8..9}@0..21");
    assert_eq!(told(text), ["S0006 \"'b'\" `b` is written twice", "S0006 \"b\" `b` is written twice", "tree"]);
    assert_eq!(reading.problems[1].others[0].span.range(), 0..1);
}

#[test]
fn keys_are_text() {
    assert_eq!(told("1: a"), ["S0008 \"1\" a key must be text, and this is a whole number", "tree"]);
    assert_eq!(told("{[a]: b, c: d}"), ["S0008 \"[a]\" a key must be text, and this is a list", "tree"]);
    assert_eq!(told("a: {{ b }}"), ["S0008 \"{ b }\" a key must be text, and this is a table", "tree"]);
    assert_eq!(tree("<<: a\n"), "{<<@0=\"a\"@4..5}@0..5");
}

#[test]
fn an_alias_is_a_copy() {
    assert_eq!(tree("a: &x b\nc: *x\n"), "{a@0=\"b\"@6..7 c@8=\"b\"@6..7}@0..13");
    assert_eq!(tree("a: &x b\n*x : c\n"), "{a@0=\"b\"@6..7 b@8=\"c\"@13..14}@0..14");
    assert_eq!(
        told("a: *x\nb: *y"),
        ["S0003 \"*x\" nothing is named `&x` above", "S0003 \"*y\" nothing is named `&y` above"]
    );
    assert_eq!(told("*x : b"), ["S0003 \"*x\" nothing is named `&x` above"]);
    assert_eq!(told("a: &x [*x]"), ["S0003 \"*x\" `*x` stands inside itself"]);
}

#[test]
fn aliases_have_a_budget() {
    let mut laughs = String::from("a0: &a0 [lol]\n");
    for level in 1..30 {
        let before = format!("*a{}", level - 1);
        laughs += &format!("a{level}: &a{level} [{}]\n", [before.as_str(); 10].join(", "));
    }
    assert!(told(&laughs)[0].starts_with("S0004 "), "{:?}", told(&laughs));
    let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), "*a, ".repeat(100));
    assert!(told(&long)[0].starts_with("S0004 \"*a\""));
    let deep = format!("a: &a {}{}\nb: {}*a {}\n", "[".repeat(40), "]".repeat(40), "[".repeat(40), "]".repeat(40));
    assert_eq!(told(&deep), ["S0004 \"*a\" lists and tables nest more than 64 deep"]);
}

#[test]
fn syntax_errors_are_told_in_our_words_at_their_place() {
    for (text, expected) in [
        ("a:\n\t- b", "S0003 \"\\t\" a tab is used as indentation"),
        ("a: |\n\tx", "S0003 \"\\t\" a tab is used as indentation"),
        ("a: b: c", "S0003 \":\" there is a `: ` inside a value"),
        ("a: 1\n b: 2", "S0003 \":\" a key cannot stand here"),
        ("a: \"x", "S0003 \"\\\"\" this quote is never closed"),
        ("a: 'x\nb: c", "S0003 \"b\" this line stands inside quotes that were opened above, and is not indented"),
        ("a: \"x\" y", "S0003 \"y\" text goes on after its closing quote"),
        ("a: \"x \\q\"", "S0003 \"\\\\q\" there is no such escape"),
        ("a: [1, 2", "S0003 \"[\" this `[` is never closed"),
        ("a: [1}", "S0003 \"[\" this `[` is closed with `}`"),
        ("a: ]", "S0003 \"]\" this bracket was never opened"),
        ("a: @x", "S0003 \"@\" a text cannot begin with `@`"),
        ("a: - b", "S0003 \"-\" a list cannot start here"),
        (" a: 1\nb: 2", "S0003 \"b\" this does not belong to what stands above it"),
        ("a:\n  - b\n - c", "S0003 \"-\" this does not fit what stands above it"),
        ("a: 1\n---\nb: 2", "S0003 \"---\" a second document starts here"),
        ("a: !x!y z", "S0003 \"!\" the handle wasn't declared"),
    ] {
        assert_eq!(told(text), [expected], "{text:?}");
    }
}

#[test]
fn numbers_beyond_64_bits_are_told() {
    let expected = "S0012 \"99999999999999999999\" `99999999999999999999` is too large for a whole number";
    assert_eq!(told("a: 99999999999999999999"), [expected, "tree"]);
}

#[test]
fn findings_are_bounded() {
    assert_eq!(read(FileId(0), &"a: b\n".repeat(10_000)).problems.len(), MOST_PROBLEMS);
}
