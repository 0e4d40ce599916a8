//! Workers of a project: the steps of a run that `sluice start --workers` starts are done on other machines, by role, and
//! the run is an ordinary one in every other respect.

use super::home::Home;
use super::recipes::settled;
use super::reef::Reef;
use super::served::token;

const RECIPE: &str = "name: brew
max_parallel: 2
steps:
  - {name: grind, prompt: 'pwd > grind.txt'}
  - {name: each, type: parallel-agents, for_each: [a, b], needs: [grind], prompt: 'echo ${item} > ${item}.txt'}
  - {name: taste, role: reviewer, type: script, needs: [each], command: 'cat ?.txt; pwd'}
";

/// An engine, and a project whose repository has a remote.
fn served() -> Reef {
    let reef = Reef::new("", None);
    std::fs::write(reef.home.path("with-shell"), "").unwrap();
    let remote = reef.home.path("remote.git");
    reef.home.git(&["remote", "add", "origin", remote.to_str().unwrap()]);
    reef.home.git(&["fetch", "--quiet", "origin"]);
    let repository = reef.home.repository();
    reef.home.sluice(&["project", "add", repository.to_str().unwrap(), "--name", "shop"]).done();
    std::fs::write(repository.join("brew.yml"), RECIPE).unwrap();
    reef
}

fn start(home: &Home, more: &[&str]) -> String {
    let words = [&["start", "brew.yml", "--workers", "--detach"], more].concat();
    home.sluice(&words).done().stdout.trim().to_owned()
}

#[test]
fn workers_of_a_project_do_the_steps_of_its_runs_by_their_roles() {
    let reef = served();
    let (_, secret) = token(&reef.home, &["--scope", "worker", "--project", "shop"]);
    let run = start(&reef.home, &[]);
    let _ann = reef.hire_for("ann", "any", &secret, &["--project", "shop"]);
    let _ben = reef.hire_for("ben", "any", &secret, &["--project", "shop"]);
    let (_, reviewers) = token(&reef.home, &["--scope", "worker", "--project", "shop", "--role", "reviewer"]);
    let _cat = reef.hire_for("cat", "reviewer", &reviewers, &["--project", "shop"]);
    let ended = settled(&reef.home, &run);
    assert_eq!((&ended["status"], &ended["kind"]), (&"completed".into(), &"run".into()), "{ended:#}");
    let printed = ended["steps"][2]["output"].as_str().unwrap();
    assert!(printed.starts_with("a\nb\n"), "the merged work of the fan-out: {ended:#}");
    assert!(printed.contains("machine-cat"), "the reviewer's machine did the reviewer's step: {printed}");
    assert!(!reef.home.place().join("runs").join(&run).exists(), "nothing of it is done on the engine's machine");
    // Its work is on the remote, where the run's branch is.
    let remote = reef.home.path("remote.git");
    let branch = format!("sluice/run-{run}");
    let words = ["-C", remote.to_str().unwrap(), "ls-tree", "--name-only", &branch];
    let files = reef.home.git(&words);
    for name in ["a.txt", "b.txt", "grind.txt"] {
        assert!(files.lines().any(|it| it == name), "{name} is not among {files}");
    }
}

#[test]
fn a_step_that_no_worker_has_ends_when_its_run_is_cancelled() {
    let reef = served();
    let steps = "name: brew\nsteps:\n  - {name: look, type: script, timeout: 1s, command: 'true'}\n";
    std::fs::write(reef.home.repository().join("brew.yml"), steps).unwrap();
    let run = start(&reef.home, &[]);
    let ended = reef.home.json(&["run", "cancel", &run])["run"].take();
    assert_eq!(ended["status"], "cancelled", "{ended:#}");
}

#[test]
fn a_run_for_workers_begins_at_a_commit_that_they_can_have() {
    let reef = served();
    let repository = reef.home.repository();
    std::fs::write(repository.join("beans.txt"), "robusta\n").unwrap();
    reef.home.git(&["add", "beans.txt"]);
    reef.home.git(&["commit", "--quiet", "-m", "beans"]);
    let refused = reef.home.sluice(&["start", "brew.yml", "--workers"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("is not on the remote `origin`"), "{refused:?}");
    // On a branch of the remote it can be had; it need not be the default one.
    reef.home.git(&["push", "--quiet", "origin", "HEAD:beans"]);
    reef.home.git(&["fetch", "--quiet", "origin"]);
    std::fs::write(
        repository.join("brew.yml"),
        "name: brew\nsteps:\n  - {name: look, type: script, command: cat beans.txt}\n",
    )
    .unwrap();
    let (_, secret) = token(&reef.home, &["--scope", "worker"]);
    let _ann = reef.hire_for("ann", "any", &secret, &["--project", "shop"]);
    let ended = settled(&reef.home, &start(&reef.home, &[]));
    assert_eq!(ended["steps"][0]["output"], "robusta", "{ended:#}");
}

#[test]
fn what_workers_cannot_do_is_refused_before_it_begins() {
    let reef = served();
    let repository = reef.home.repository();
    let recipe = "name: brew\nsteps:\n  - {name: fix, type: task, summary: Fix it}\n";
    std::fs::write(repository.join("brew.yml"), recipe).unwrap();
    let refused = reef.home.sluice(&["start", "brew.yml", "--workers"]);
    assert!(refused.code == 1 && refused.stderr.contains("creates a task"), "{refused:?}");
    let recipe = "name: brew\nsteps:\n  - {name: fix, type: script, command: 'true', acts_as: person}\n";
    std::fs::write(repository.join("brew.yml"), recipe).unwrap();
    reef.home.git(&["add", "brew.yml"]);
    reef.home.git(&["commit", "--quiet", "--message", "brew"]);
    reef.home.git(&["push", "--quiet", "origin", "HEAD:brew"]);
    let refused = reef.home.sluice(&["start", "brew.yml", "--workers"]);
    assert!(refused.code == 1 && refused.stderr.contains("`acts_as: person`"), "{refused:?}");
    let recipe = "name: brew\nworkspace: here\nsteps:\n  - {name: tidy, type: script, command: 'true'}\n";
    std::fs::write(repository.join("brew.yml"), recipe).unwrap();
    let refused = reef.home.sluice(&["start", "brew.yml", "--workers"]);
    assert!(refused.code == 1 && refused.stderr.contains("works in the checkout itself"), "{refused:?}");
    std::fs::create_dir_all(reef.home.path("elsewhere")).unwrap();
    std::fs::write(reef.home.path("elsewhere/brew.yml"), RECIPE).unwrap();
    let mut command = reef.home.command(&["start", "brew.yml", "--workers"]);
    let refused = super::home::run(command.current_dir(reef.home.path("elsewhere")));
    assert!(refused.code == 3 && refused.stderr.contains("is in no project"), "{refused:?}");
    let (_, secret) = token(&reef.home, &["--scope", "worker"]);
    let unknown = reef.hire_unheard_for("ann", "any", &secret, &["--project", "shoe"]);
    let (code, said) = unknown.ended();
    assert_eq!(code, Some(3), "there is no such project: {said}");
}

#[test]
fn workers_are_told_the_harness_that_the_start_names() {
    let reef = served();
    let recipe = "name: brew\nsteps:\n  - {name: grind, prompt: 'true'}\n";
    std::fs::write(reef.home.repository().join("brew.yml"), recipe).unwrap();
    let (_, secret) = token(&reef.home, &["--scope", "worker", "--project", "shop"]);
    let _ann = reef.hire_for("ann", "any", &secret, &["--project", "shop"]);
    let ended = settled(&reef.home, &start(&reef.home, &["--harness", "nowhere"]));
    assert_eq!(ended["status"], "failed", "{ended:#}");
    assert!(ended["steps"][0]["error"].as_str().is_some_and(|it| it.contains("`nowhere`")), "{ended:#}");
}

#[test]
fn of_several_remotes_one_is_called_origin() {
    let reef = served();
    reef.home.git(&["remote", "rename", "origin", "here"]);
    reef.home.git(&["remote", "add", "there", "/nowhere"]);
    let refused = reef.home.sluice(&["start", "brew.yml", "--workers"]);
    assert!(refused.code == 1 && refused.stderr.contains("the remotes here, there"), "{refused:?}");
}

/// Another project may get the name, and what its workers do is none of their business.
#[test]
fn a_project_that_goes_takes_its_workers_tokens_along() {
    let reef = served();
    let list = || reef.home.json(&["token", "list"])["tokens"].take();
    let is_revoked = |id: &str| {
        let tokens = list();
        let kept = tokens.as_array().unwrap().iter().find(|kept| kept["id"] == id).unwrap();
        !kept["revoked_at"].is_null()
    };
    let (first, _) = token(&reef.home, &["--scope", "worker", "--project", "shop"]);
    let (other, _) = token(&reef.home, &["--scope", "worker"]);
    let run = start(&reef.home, &[]);
    let refused = reef.home.sluice(&["project", "remove", "shop"]);
    assert!(refused.code == 1 && refused.stderr.contains(&run), "{refused:?}");
    reef.home.json(&["run", "cancel", &run]);
    reef.home.sluice(&["project", "update", "shop", "--name", "store"]).done();
    assert!(is_revoked(&first) && !is_revoked(&other));
    let (second, _) = token(&reef.home, &["--scope", "worker", "--project", "store"]);
    reef.home.sluice(&["project", "remove", "store"]).done();
    assert!(is_revoked(&second) && !is_revoked(&other));
}

/// Without a clone there is no commit that the worker must be able to have.
#[test]
fn a_worker_does_steps_without_a_workspace_in_a_folder_of_its_own() {
    let reef = served();
    reef.home.git(&["commit", "--quiet", "--allow-empty", "-m", "not pushed"]);
    let recipe = "name: brew
workspace: none
steps:
  - {name: grind, type: script, command: 'ls -A; echo ground > beans.txt; echo ${run.workspace}'}
  - {name: pour, prompt: 'cat ${run.workspace}/beans.txt; pwd'}
  - {name: clean, type: script, command: 'rm beans.txt'}
";
    std::fs::write(reef.home.repository().join("brew.yml"), recipe).unwrap();
    let (_, secret) = token(&reef.home, &["--scope", "worker"]);
    let _ann = reef.hire_for("ann", "any", &secret, &["--project", "shop"]);
    let run = start(&reef.home, &[]);
    let ended = settled(&reef.home, &run);
    let folder = reef.place("ann").join("scratch").join(&run);
    let place = folder.display();
    assert_eq!(ended["status"], "completed", "{ended:#}");
    assert_eq!(ended["workspace"], format!("scratch/{run}/"));
    assert_eq!(ended["steps"][0]["output"], format!("{place}"));
    assert_eq!(ended["steps"][1]["summary"], format!("ground\n{place}"));
    assert!(!reef.place("ann").join("repositories").exists(), "nothing is cloned");
    assert!(!reef.home.place().join("scratch").exists(), "nothing of it is done on the engine's machine");
}
