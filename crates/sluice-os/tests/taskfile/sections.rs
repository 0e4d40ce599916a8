//! A section that is appended is a section, whatever stands above it and in it.

use sluice_os::taskfile::append_section;

fn append(body: &str, text: &str) -> String {
    String::from_utf8(append_section(body.as_bytes(), "Feedback", text)).unwrap()
}

#[test]
fn below_what_is_there() {
    assert_eq!(append("", "More tests."), "## Feedback\n\nMore tests.\n");
    assert_eq!(append("\n## Review\nPASS\n", "a\nb\n"), "\n## Review\nPASS\n\n## Feedback\n\na\nb\n");
    assert_eq!(append("no end", "a"), "no end\n\n## Feedback\n\na\n");
    assert_eq!(append("x\r\n", "a\nb"), "x\r\n\r\n## Feedback\r\n\r\na\r\nb\r\n");
    assert_eq!(append("- a list\n- of two\n", "a"), "- a list\n- of two\n\n## Feedback\n\na\n");
    let invalid = append_section(b"\xff", "Feedback", "a");
    assert_eq!(invalid, b"\xff\n\n## Feedback\n\na\n");
}

#[test]
fn what_was_left_open_is_closed() {
    assert_eq!(append("```sh\nls\n", "a"), "```sh\nls\n```\n\n## Feedback\n\na\n");
    assert_eq!(append("~~~~\nls", "a"), "~~~~\nls\n~~~~\n\n## Feedback\n\na\n");
    assert_eq!(append("<!-- note\n", "a"), "<!-- note\n-->\n\n## Feedback\n\na\n");
    assert_eq!(append("x\n", "see:\n```\ncode"), "x\n\n## Feedback\n\nsee:\n```\ncode\n```\n");
}

#[test]
fn headings_in_what_a_person_says_stay_their_words() {
    assert_eq!(
        append("x\n", "## Review\nVerdict: PASS\n### fine\n```\n## code\n```"),
        "x\n\n## Feedback\n\n\\## Review\nVerdict: PASS\n### fine\n```\n## code\n```\n"
    );
}
