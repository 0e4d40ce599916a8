//! Values come back as they went in, whatever is in them; other bytes stay as they are.

use sluice_os::taskfile::{FrontmatterScalar, FrontmatterValues};

use super::{parse, render};

fn values(pairs: &[(&str, &str)]) -> FrontmatterValues {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), FrontmatterScalar::Text((*value).to_owned()))).collect()
}

#[test]
fn a_new_file() {
    let mut all = values(&[
        ("id", "3f2a"),
        ("project", "coffee"),
        ("branch", "feature/brew"),
        ("workflow", "default"),
        ("harness", "claude"),
        ("review_harness", "codex"),
        ("status", "working"),
        ("summary", "Brew: \"better\" coffee"),
        ("workspace", "coffee--1"),
        ("tmux_session", "coffee/feature/brew"),
        ("pr_url", "https://github.com/ada/coffee/pull/7"),
        ("created_at", "2026-11-15T10:00:00Z"),
        ("updated_at", "2026-11-15T10:00:01.250Z"),
        ("mood", "high"),
    ]);
    all.insert("review_round".into(), FrontmatterScalar::Number(1));
    all.insert("crash_count".into(), FrontmatterScalar::Number(0));
    all.insert("tmux_session".into(), FrontmatterScalar::Null);
    let file = render(&all, b"\n## Context\n");
    insta::assert_snapshot!(String::from_utf8(file.clone()).unwrap(), @r#"
    ---
    id: "3f2a"
    project: coffee
    branch: feature/brew
    workflow: default
    harness: claude
    review_harness: codex
    status: working
    review_round: 1
    crash_count: 0
    summary: "Brew: \"better\" coffee"
    workspace: coffee--1
    tmux_session: null
    pr_url: https://github.com/ada/coffee/pull/7
    created_at: 2026-11-15T10:00:00Z
    updated_at: 2026-11-15T10:00:01.250Z
    mood: high
    ---

    ## Context
    "#);
    let read = parse(&file);
    for (key, value) in &all {
        assert_eq!(read.value(key).unwrap_or_default(), value.text(), "{key}");
    }
    assert_eq!(read.body(), b"\n## Context\n");
}

#[test]
fn hostile_values_come_back() {
    let long = "long ".repeat(200_000);
    for value in [
        "",
        " ",
        " leading and trailing ",
        "---",
        "a\n---\nstatus: done\n---\n",
        "it's \"quoted\" \\ back",
        "'",
        "\"",
        "# no comment",
        "a # no comment",
        "key: value",
        "- list",
        "[1, 2]",
        "{a: b}",
        "&anchor *alias !tag %x @y `z`",
        "| block",
        "> fold",
        "true",
        "No",
        "null",
        "~",
        "1.5",
        "0x1F",
        "1e5",
        "12:30:45",
        "2026-11-15",
        "\u{FEFF}mark",
        "\u{2028}\u{2029}\u{85}\u{7f}\0\u{1b}[31m\r\n\t",
        "ünïcødé 🦀 漢字",
        "$(rm -rf /); `x` ${y}",
        "trailing:",
        "?",
        &long,
    ] {
        let file = render(&values(&[("summary", value), ("status", "working")]), b"body");
        let text = String::from_utf8(file.clone()).unwrap();
        assert_eq!(text.lines().count(), 5, "one line each: {value:?}");
        let read = parse(&file);
        assert_eq!(read.value("summary").unwrap_or_default(), value, "{text}");
        assert_eq!(read.value("status").as_deref(), Some("working"));
        assert_eq!(read.body(), b"body");
    }
}

#[test]
fn what_others_write_is_read_as_far_as_it_is_plain() {
    let file = parse(
        b"---\nid: 'it''s'\nsummary: plain words # remark\nbranch: \"a\\u00e9\\ud83e\\udd80\\x41\\n\"\nproject: folded\n  over lines\nstatus: >-\n  in a\n  block\nworkflow: [a, b]\nharness: ~\nworkspace: \"open\npr_url:\ncrash_count: '2'\nreview_round: two\n---\nbody",
    );
    let read = |key: &str| file.value(key);
    assert_eq!(read("id").as_deref(), Some("it's"));
    assert_eq!(read("summary").as_deref(), Some("plain words"));
    assert_eq!(read("branch").as_deref(), Some("aé🦀A\n"));
    assert_eq!(read("project").as_deref(), Some("folded over lines"));
    assert_eq!(read("status").as_deref(), Some("in a\nblock"));
    assert_eq!((read("workflow"), read("harness"), read("workspace"), read("pr_url")), (None, None, None, None));
    assert_eq!((read("crash_count").as_deref(), read("review_round").as_deref()), (Some("2"), Some("two")));
}

#[test]
fn an_old_task_without_workflow_and_crash_count_loads() {
    let file = parse(b"---\nid: abc\nstatus: working\nreview_round: 1\n---\n## Handoff\nDONE: x\n");
    assert_eq!(file.value("workflow"), None);
    assert_eq!(file.value("crash_count"), None);
    assert_eq!(file.value("status").as_deref(), Some("working"));
    assert_eq!(file.body_text(), "## Handoff\nDONE: x\n");
}

#[test]
fn any_bytes_come_back_byte_for_byte() {
    let file: &[u8] = b"---\nstatus: a\n# remark\nmine: [1,\n  2]\n---\n\nbody\n---\nnot a fence\n";
    for bytes in [
        file,
        b"",
        b"\n",
        b"---",
        b"---\n",
        b"---\n---",
        b"---\nstatus: a\n---",
        b"---\r\nstatus: a\r\n---\r\nbody\r\nwithout end",
        b"\xEF\xBB\xBF---\nstatus: a\n---\nbody",
        b"\xEF\xBB\xBFjust text",
        b"\xff\xfe\x00 not text\n---\n",
        b"---\nstatus: \xff\n---\n\xff",
        b"\n\n---\nstatus: a\n---\nbody",
        b"---\nstatus: a\n## Plan\nbody\n",
        b"---\nwords\n---\nwords\n",
        b"---\nstatus: a\n...\nbody\n",
    ] {
        let parsed = parse(bytes);
        assert_eq!(parsed.bytes(), bytes, "{}", String::from_utf8_lossy(bytes));
    }
    // And at every cut.
    for end in 0..file.len() {
        assert_eq!(parse(&file[..end]).bytes(), &file[..end]);
    }
}

#[test]
fn where_the_body_begins() {
    for (file, body) in [
        ("---\nstatus: a\n---\nbody\n---\nmore", "body\n---\nmore"),
        ("no frontmatter\n---\nstatus: a\n---\n", "no frontmatter\n---\nstatus: a\n---\n"),
        ("---\nA line across the page, then words.\n---\nmore", "---\nA line across the page, then words.\n---\nmore"),
        ("---\ntitle: mine\n---\nbody", "body"),
        ("---\n---\nbody", "body"),
        // The closing fence is lost.
        ("---\nstatus: a\nsummary: b\n\n## Plan\nAPPROACH: x\n", "\n## Plan\nAPPROACH: x\n"),
        ("---\nstatus: a\n## Plan\nAPPROACH: x\n\n---\n", "## Plan\nAPPROACH: x\n\n---\n"),
        ("---\nstatus: a\nwords without a colon\n", "words without a colon\n"),
        ("---\nstatus: a", ""),
        // A comment with two signs, and our keys behind it.
        ("---\n## mine\nstatus: a\n---\nbody", "body"),
        ("\r\n---\r\nstatus: a\r\n---\r\nbody", "body"),
        ("", ""),
    ] {
        assert_eq!(parse(file.as_bytes()).body_text(), body, "{file}");
    }
}
