//! `sluice config check`: the report has the form of `sluice check`, and every problem is in it.

use super::sluice::{folder, run_with};

const BAD: &[u8] = b"\
# mine
[defaults]
harnes = \"claude\"
review_harness = \"clod\"

[workspaces]
keep = \"soon\"
low_disk = \"1 GB\"

[serve]
burst = 0

[harnesses.mine]
headless = \"env\"
";

#[test]
fn every_problem_is_shown_with_its_line_and_the_way_out() {
    let place = folder(&[("config.toml", BAD)]);
    let check = |arguments: &[&str]| {
        run_with(place.path(), place.path(), &[&["config", "check", "config.toml"], arguments].concat())
    };
    insta::assert_snapshot!(check(&[]).shown());
    let found = check(&["--json"]);
    assert_eq!((found.code, found.stderr.as_str()), (1, ""));
    insta::assert_snapshot!(found.findings().join("\n"));
    let sarif = check(&["--format", "sarif"]).json();
    assert_eq!(sarif["version"], "2.1.0");
    assert_eq!(sarif["runs"][0]["results"].as_array().unwrap().len(), found.findings().len());
    assert_eq!(check(&["--format", "sarif", "--json"]).code, 2);
}

#[test]
fn exit_codes() {
    let place = folder(&[("config.toml", b"[retention]\ndays = 30\n"), ("broken.toml", b"[retention")]);
    let none = folder(&[]);
    let code = |home: &std::path::Path, arguments: &[&str]| {
        run_with(place.path(), home, &[&["config"], arguments].concat()).code
    };
    assert_eq!(code(place.path(), &["check", "config.toml"]), 0);
    assert_eq!(code(none.path(), &["check"]), 0, "no file is needed");
    assert_eq!(code(none.path(), &["check", "none.toml"]), 3);
    assert_eq!(code(none.path(), &["check", "broken.toml"]), 1);
    assert_eq!(code(none.path(), &["get", "no.such"]), 3);
    assert_eq!(code(none.path(), &["set", "no.such", "1"]), 3);
    assert_eq!(code(none.path(), &["set", "retention.days"]), 2);
    assert_eq!(code(none.path(), &["set", "retention.days", "1", "--unset"]), 2);
}
