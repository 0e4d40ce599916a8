//! What an agent's last words say about its step.

use sluice_os::harness::result::result;

fn show(text: &str) -> String {
    let found = result(text);
    let mut lines = vec![format!("summary: {}", found.summary)];
    lines.extend(found.result.map(|word| format!("result: {word}")));
    lines.extend(found.outputs.map(|value| format!("outputs: {value}")));
    lines.extend(found.value.map(|value| format!("value: {value}")));
    lines.extend(found.success.map(|success| format!("success: {success}")));
    lines.extend(found.warning.map(|warning| format!("warning: {warning}")));
    lines.join("\n")
}

#[test]
fn the_last_json_block_counts() {
    insta::assert_snapshot!(show("I plan.\n```json\n{\"summary\": \"old\", \"result\": \"FAIL\"}\n```\nDone:\n\n```json\n{\"summary\": \"all good\", \"result\": \"PASS\", \"outputs\": {\"a\": 1}}\n```\nBye"), @r#"
    summary: all good
    result: PASS
    outputs: {"a":1}
    value: {"summary":"all good","result":"PASS","outputs":{"a":1}}
    "#);
}

#[test]
fn blocks_of_any_look() {
    // Tildes, capitals, a list's indentation, an end that is missing, no language at all.
    for text in [
        "~~~JSON\n{\"result\": \"done\"}\n~~~",
        "1. so:\n\n   ```json\n   {\"result\": \"done\"}\n   ```\n",
        "```json\n{\"result\": \"done\"}",
        "```\n{\"result\": \"done\"}\n```",
        "```json title=x\r\n{\"result\": \"done\"}\r\n```\r\n",
        "````json\n{\"result\": \"done\"}\n````\n```sh\n{\"result\": \"no\"}\n```",
    ] {
        assert_eq!(result(text).result.as_deref(), Some("done"), "{text}");
    }
    // A number is no structure, and a quoted block is not ours to judge: it still is one.
    assert_eq!(result("```\n42\n```").value, None);
    assert_eq!(result("{\"result\": \"done\"}").result, None, "no fence, no block");
}

#[test]
fn without_a_summary_the_words_before_the_block_are_it() {
    insta::assert_snapshot!(show("Three beads.\n\n```json\n{\"beads\": [1, 2]}\n```"), @r#"
    summary: Three beads.
    value: {"beads":[1,2]}
    "#);
    insta::assert_snapshot!(show("```json\n[1, 2]\n```"), @"
    summary: ```json
    [1, 2]
    ```
    value: [1,2]
    ");
}

#[test]
fn a_broken_last_block_does_not_make_an_earlier_one_true() {
    insta::assert_snapshot!(show("You gave me:\n```json\n{\"result\": \"PASS\"}\n```\nI say:\n```json\n{\"result\": \"FAIL\",}\n```"), @r#"
    summary: You gave me:
    ```json
    {"result": "PASS"}
    ```
    I say:
    ```json
    {"result": "FAIL",}
    ```
    warning: the last JSON block cannot be read: trailing comma at line 1 column 19
    "#);
}

#[test]
fn a_verdict_is_a_whole_line_and_the_last_one() {
    for (text, verdict) in [
        ("Verdict: PASS", Some("PASS")),
        ("words\n  verdict: fail  \nmore", Some("FAIL")),
        ("Verdict: FAIL\nVerdict: PASS\n", Some("PASS")),
        ("The Verdict: PASS", None),
        ("Verdict: PASS, mostly", None),
        ("PASS", None),
        ("Verdict: FAIL\n```json\n{\"summary\": \"s\"}\n```", Some("FAIL")),
        ("Verdict: FAIL\n```json\n{\"result\": \"PASS\"}\n```", Some("PASS")),
    ] {
        assert_eq!(result(text).result.as_deref(), verdict, "{text}");
    }
}

#[test]
fn else_the_text_is_the_summary() {
    assert_eq!(show("  just words \n"), "summary: just words");
    assert_eq!(show(""), "summary: ");
    insta::assert_snapshot!(show("```json\n{\"success\": false, \"summary\": \"no tests\", \"result\": 3}\n```"), @r#"
    summary: no tests
    result: 3
    value: {"success":false,"summary":"no tests","result":3}
    success: false
    "#);
}
