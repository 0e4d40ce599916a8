//! Random damage to good files: whatever comes out, nothing panics and every place lies in the file.
//!
//! The seed is fixed, so a failure comes again; the text is in its message.

use sluice_core::span::{FileId, Span};
use sluice_dialect::read::{FileSyntax, MOST_PROBLEMS, read};
use sluice_dialect::report::{self, ReportStyle};
use sluice_dialect::source::Sources;
use sluice_dialect::tree::{DEEPEST, Node, NodeValue};

const ROUNDS: usize = 2_000;

const YAML: &str = "# c\nname: &n 'it''s'\nrun: |-\n  echo \"${{ x }}\"\n    é 漢\n\nlist:\n- a\n- [1, -2.5, {k: *n}]\n- !!str 1\n\
    - \"a\\tb\\u00e9\n  c\"\nfold: >\n  a\n  b\n? k\n: v\nempty:\n\"q\": ~\n";
const TOML: &str = "# c\nname = 'a'\nb.c = \"x\\ty é\"\n[t]\nk = [1, -2.5, {a = true, 'b' = 2020-01-01}]\n[[s]]\n\
    text = \"\"\"\n  a\n  \\\n b漢\"\"\"\n[[s]]\nlit = '''\nx'''\n[t.u]\nn = 0xFF\n";
const PIECES: [&str; 40] = [
    "\n",
    "\r\n",
    "\r",
    "\t",
    " ",
    "  ",
    ":",
    ": ",
    "- ",
    "[",
    "]",
    "{",
    "}",
    ",",
    "'",
    "\"",
    "\"\"\"",
    "'''",
    "|",
    ">",
    "&a ",
    "*a ",
    "!",
    "!!int ",
    "#",
    " #",
    "%",
    "---\n",
    "...\n",
    "? ",
    "=",
    ".",
    "\\",
    "\\x",
    "é",
    "漢",
    "\u{1F600}",
    "\u{FEFF}",
    "\0",
    "<<: ",
];

/// Xorshift: enough for damage, and no dependency.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }

    fn place(&mut self, text: &str) -> usize {
        let at = self.below(text.len() + 1);
        text.floor_char_boundary(at)
    }
}

fn damage(random: &mut Random, text: &mut String) {
    for _ in 0..=random.below(6) {
        let (a, b) = (random.place(text), random.place(text));
        let range = a.min(b)..a.max(b).min(text.floor_char_boundary(a.min(b) + 12)).max(a.min(b));
        let piece = PIECES[random.below(PIECES.len())];
        match random.below(4) {
            0 => text.replace_range(range, ""),
            1 => text.replace_range(range, piece),
            2 => text.insert_str(a, piece),
            _ => {
                let copy = text[range].to_owned();
                text.insert_str(a, &copy);
            }
        }
    }
}

fn check_span(text: &str, span: Span) {
    let range = span.range();
    assert!(range.start <= range.end, "{range:?} in {text:?}");
    assert!(text.get(range.clone()).is_some(), "{range:?} in {text:?}");
}

fn check_node(text: &str, node: &Node, depth: usize) {
    assert!(depth <= DEEPEST + 1);
    check_span(text, node.span);
    match &node.value {
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Integer(_) | NodeValue::Decimal(_) => {}
        NodeValue::Text(found) => {
            let mut last = 0;
            for run in &found.runs {
                let letters = &found.value[run.text as usize..][..run.len as usize];
                assert_eq!(text.get(run.file as usize..).map(|rest| rest.starts_with(letters)), Some(true), "{text:?}");
                assert!(run.text >= last && run.len > 0);
                last = run.text + run.len;
            }
        }
        NodeValue::List(items) => items.iter().for_each(|item| check_node(text, item, depth + 1)),
        NodeValue::Table(entries) => {
            for (index, entry) in entries.iter().enumerate() {
                check_span(text, entry.key.span);
                assert!(entries[..index].iter().all(|other| other.key.value != entry.key.value), "{text:?}");
                check_node(text, &entry.value, depth + 1);
            }
        }
    }
}

fn rounds(good: &str, syntax: FileSyntax) {
    let clean = read(FileId(0), good, syntax);
    assert_eq!(clean.problems, []);
    let mut random = Random(0x5EED_5EED_5EED_5EED);
    for _ in 0..ROUNDS {
        let mut text = good.to_owned();
        damage(&mut random, &mut text);
        let reading = read(FileId(0), &text, syntax);
        assert!(reading.problems.len() <= MOST_PROBLEMS);
        if let Some(node) = &reading.node {
            check_node(&text, node, 1);
        }
        for problem in &reading.problems {
            check_span(&text, problem.span);
            problem.others.iter().for_each(|other| check_span(&text, other.span));
        }
        let mut sources = Sources::new();
        sources.add("a", text);
        report::text(&sources, &reading.problems, ReportStyle::Plain);
        report::sarif(&sources, &reading.problems, &|_| None);
    }
}

#[test]
fn damaged_yaml() {
    rounds(YAML, FileSyntax::Yaml);
}

#[test]
fn damaged_toml() {
    rounds(TOML, FileSyntax::Toml);
}
