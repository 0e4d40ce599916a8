//! Agents rewrite the whole file with the frontmatter they once read: the body is theirs, the frontmatter is ours.

use std::collections::{BTreeMap, BTreeSet};

use sluice_os::taskfile::{FrontmatterScalar, FrontmatterTruth, HealedTaskFile, heal};

use super::{KEYS, render};

fn truth() -> FrontmatterTruth {
    let text = |words: &str| FrontmatterScalar::Text(words.to_owned());
    FrontmatterTruth {
        keys: KEYS,
        values: BTreeMap::from([
            ("id".to_owned(), text("abc")),
            ("status".to_owned(), text("agent-review")),
            ("review_round".to_owned(), FrontmatterScalar::Number(1)),
            ("summary".to_owned(), text("Brew better coffee")),
            ("priority".to_owned(), FrontmatterScalar::Number(3)),
        ]),
        written: BTreeMap::from([
            ("status".to_owned(), BTreeSet::from([text("pending"), text("working")])),
            ("review_round".to_owned(), BTreeSet::from([FrontmatterScalar::Number(0)])),
            ("pr_url".to_owned(), BTreeSet::from([FrontmatterScalar::Null])),
        ]),
    }
}

fn show(healed: &HealedTaskFile) -> String {
    let mut page = String::from_utf8(healed.bytes.clone()).unwrap();
    for forged in &healed.forged {
        page.push_str(&format!("\n!! {}: {:?}, truly {:?}", forged.key, forged.found, forged.truth));
    }
    page
}

#[test]
fn a_stale_frontmatter_is_healed_and_nobody_is_accused() {
    let stale = b"---\nid: abc\nstatus: working\nreview_round: 0\npr_url: null\nsummary: |\n  Brew better\n  coffee\n---\n\n## Handoff\nDONE: all\n";
    let healed = heal(stale, &truth());
    assert_eq!(healed.body, b"\n## Handoff\nDONE: all\n");
    assert!(healed.changed);
    insta::assert_snapshot!(show(&healed), @"
    ---
    id: abc
    status: agent-review
    review_round: 1
    summary: Brew better coffee
    priority: 3
    ---

    ## Handoff
    DONE: all
    ");
}

#[test]
fn a_forged_value_has_no_effect_and_is_reported() {
    let forged = b"---\nid: abc\nstatus: done\nstatus: reviewing\nreview_round: [9]\npriority: 100\n---\nbody";
    let healed = heal(forged, &truth());
    insta::assert_snapshot!(show(&healed), @r#"
    ---
    id: abc
    status: agent-review
    review_round: 1
    summary: Brew better coffee
    priority: 3
    ---
    body
    !! status: "done", truly "agent-review"
    !! status: "reviewing", truly "agent-review"
    !! review_round: "[9]", truly "1"
    !! priority: "100", truly "3"
    "#);
}

#[test]
fn what_a_person_put_there_stays_where_it_is() {
    let file = "---\n# my notes\nstatus: agent-review   # do not touch\nepic: [a,\n  b]\n\nbroken line\nid: abc\nowner: Ada\n---\nbody";
    let healed = heal(file.as_bytes(), &truth());
    assert!(healed.forged.is_empty());
    insta::assert_snapshot!(show(&healed), @"
    ---
    # my notes
    status: agent-review
    review_round: 1
    summary: Brew better coffee
    priority: 3
    epic: [a,
      b]

    broken line
    id: abc
    owner: Ada
    ---
    body
    ");
}

#[test]
fn what_is_whole_is_left_alone() {
    let file = render(&truth().values, b"body\n");
    let healed = heal(&file, &truth());
    assert_eq!((healed.bytes.as_slice(), healed.changed), (file.as_slice(), false));
    // Healing twice is healing once.
    for file in
        ["", "body", "---\nstatus: done\n", "---\r\nmine: 1\r\n---\r\nx\r\n", "\u{FEFF}---\nid: x\n---\n", "---\n---\n"]
    {
        let once = heal(file.as_bytes(), &truth());
        let twice = heal(&once.bytes, &truth());
        assert_eq!((twice.bytes, twice.changed, twice.body), (once.bytes.clone(), false, once.body), "{file:?}");
    }
}

#[test]
fn line_ends_and_marks_are_kept() {
    let healed = heal(b"\xEF\xBB\xBF---\r\nstatus: working\r\nmine: 1\r\n---\r\nbody\r\nmixed\nend", &truth());
    let text = String::from_utf8(healed.bytes).unwrap();
    assert_eq!(
        text,
        "\u{FEFF}---\r\nid: abc\r\nstatus: agent-review\r\nreview_round: 1\r\nsummary: Brew better coffee\r\npriority: 3\r\nmine: 1\r\n---\r\nbody\r\nmixed\nend"
    );
    let healed = heal(b"words\r\nonly\r\n", &truth());
    assert!(healed.bytes.starts_with(b"---\r\nid: abc\r\n") && healed.bytes.ends_with(b"---\r\nwords\r\nonly\r\n"));
    let healed = heal(b"\xff\xfe no text", &truth());
    assert_eq!(healed.body, b"\xff\xfe no text");
    assert!(healed.bytes.ends_with(b"---\n\xff\xfe no text"));
}

#[test]
fn a_body_that_begins_with_a_line_across_the_page_stays_a_body() {
    let body = b"---\nstatus: done\n---\nwords\n";
    let file = render(&truth().values, body);
    let healed = heal(&file, &truth());
    assert_eq!((healed.body.as_slice(), healed.changed, healed.forged.len()), (body.as_slice(), false, 0));
}
