//! TASK.md between the engine and agents: a frontmatter that nobody can forge, and bodies that nobody can lose.

use super::default_flow::front;
use super::home::Home;

#[test]
fn a_forged_status_never_takes_effect_and_is_recorded() {
    let home = Home::new();
    let script = "worker: commit; write Handoff \"DONE: brewed\"; forge status done; forge review_round 7; update agent-review\n\
                  reviewer: hang";
    let id = home.create("brew", script, &[]);
    let task = home.until_status(&id, "agent-review");
    assert_eq!(task["review_round"], 1);
    let forged: Vec<String> = home
        .history(&id)
        .iter()
        .filter(|event| event["type"] == "artifact.forged")
        .map(|event| format!("{}: {}", event["data"]["key"].as_str().unwrap(), event["data"]["found"]))
        .collect();
    assert_eq!(forged, ["status: \"done\"", "review_round: \"7\""]);
    assert_eq!(front(&home.worktree_file(&id), &["status", "review_round"]), "status: agent-review\nreview_round: 1\n");
}

#[test]
fn an_old_frontmatter_is_the_usual_case_and_is_put_right() {
    let home = Home::new();
    // The scripted agent writes the whole file with the frontmatter it read when it began, as agents do.
    let script = "worker: write Plan; update working; write Notes \"in the middle\"; commit; write Handoff; update agent-review; wait for notification\n\
                  reviewer: hang";
    let id = home.create("brew", script, &["--workflow", "persistent"]);
    home.until_status(&id, "agent-review");
    let file = home.worktree_file(&id);
    assert_eq!(front(&file, &["status", "review_round"]), "status: agent-review\nreview_round: 1\n");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("## Notes\n\nin the middle\n") && text.contains("## Handoff"), "{text}");
    assert!(!home.history(&id).iter().any(|event| event["type"] == "artifact.forged"));
}

#[test]
fn a_section_that_was_overwritten_can_be_brought_back() {
    let home = Home::new();
    let (here, on) = (home.pipe("here"), home.pipe("on"));
    let script = format!(
        "worker: tell {}; wait for {}; write stale Handoff \"DONE: without a look\"; update agent-review\nreviewer: hang",
        here.path(),
        on.path()
    );
    let id = home.create("brew", &script, &[]);
    here.hear();
    let file = home.worktree_file(&id);
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{text}\n## Important\n\nNever boil it.\n")).unwrap();
    // Whoever looks at it makes sure that it is kept.
    let shown = home.sluice(&["task", "file", &id]).done().stdout;
    assert!(shown.contains("## Important\n\nNever boil it.\n") && !shown.contains("status:"), "{shown}");
    on.let_go();
    home.until_status(&id, "agent-review");
    let now = home.json(&["task", "file", &id]);
    let text = now["file"]["text"].as_str().unwrap();
    assert!(text.contains("without a look") && !text.contains("Never boil"), "{text}");

    let versions = home.json(&["task", "file", &id, "--list"])["versions"].as_array().unwrap().clone();
    let text_of = |version: &serde_json::Value| {
        home.sluice(&["task", "file", &id, "--at", &version["version"].to_string()]).done().stdout
    };
    let lost = versions.iter().find(|version| text_of(version).contains("Never boil it.")).expect("it was kept");
    assert_eq!(text_of(lost).len() as u64, lost["bytes"].as_u64().unwrap());
    assert_eq!(home.refused(&["task", "file", &id, "--at", "99"]), "3 not_found");
    assert_eq!(now["file"]["version"], versions.last().unwrap()["version"]);
}

#[test]
fn what_is_no_file_is_not_read_and_a_removed_file_comes_back() {
    let home = Home::new();
    let id = home.create("brew", "worker: hang", &[]);
    let file = home.worktree_file(&id);
    std::fs::remove_file(&file).unwrap();
    home.json(&["task", "update", &id, "--status", "stuck"]);
    assert!(std::fs::read_to_string(&file).unwrap().contains("## Context"));
    assert_eq!(front(&file, &["status"]), "status: stuck\n");

    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", &file).unwrap();
    let said = home.sluice(&["task", "update", &id, "--status", "working", "--json"]);
    assert_eq!(said.refusal(), "1 unreadable_artifact");
    // It can always be given up.
    assert_eq!(home.json(&["task", "cancel", &id, "--yes"])["task"]["status"], "cancelled");
}
