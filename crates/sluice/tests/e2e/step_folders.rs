//! Where steps work: `workspace` of a recipe and of a step. `none` is a folder of the run without git, `here` the checkout
//! itself; the others are in `run_worktrees.rs`.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;

use super::home::{Home, LONG, run};
use super::recipes::{begin, fresh, grimoire, show, start, step, text, until, until_status, write};

/// Puts a `git` before the system's that writes down how it is called.
fn with_shim(home: &Home) {
    let real = home.program("sh").args(["-c", "command -v git"]).output().unwrap().stdout;
    let (programs, calls) = (home.path("programs"), home.path("git-calls"));
    std::fs::create_dir_all(&programs).unwrap();
    let real = String::from_utf8(real).unwrap();
    let shim = format!("#!/bin/sh\necho \"$*\" >> {}\nexec {} \"$@\"\n", calls.display(), real.trim());
    std::fs::write(programs.join("git"), shim).unwrap();
    std::fs::set_permissions(programs.join("git"), std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// How git was called since this was last asked.
fn calls(home: &Home) -> String {
    let calls = std::fs::read_to_string(home.path("git-calls")).unwrap_or_default();
    let _ = std::fs::remove_file(home.path("git-calls"));
    calls
}

fn scratch(home: &Home, id: &str) -> PathBuf {
    home.place().join("scratch").join(id)
}

fn branches(home: &Home) -> String {
    home.git(&["branch", "--format=%(refname:short)", "--list", "sluice/*"])
}

/// Sets for how long what is left of runs stays.
fn keep(home: &Home, keep: &str) {
    let config = home.place().join("config.toml");
    let settings = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{settings}\n[workspaces]\nkeep = \"{keep}\"\n")).unwrap();
}

/// A recipe with one script, which works in the scratch folder.
fn scripted(home: &Home, command: &str) {
    let step = format!("{{name: one, type: script, command: '{command}'}}");
    grimoire(home, "mine", &format!("workspace: none\nsteps:\n  - {step}\n"));
}

fn shown(folder: &Path) -> Value {
    folder.to_str().unwrap().into()
}

#[test]
fn a_run_without_a_workspace_starts_no_git_and_its_steps_share_a_folder() {
    let home = fresh();
    with_shim(&home);
    home.json(&["run", "list"]);
    calls(&home);
    let steps = "workspace: none
max_parallel: 2
steps:
  - {name: writes, type: script, command: 'ls -A; echo ground > beans.txt; echo ${run.workspace}'}
  - {name: asks, harness: shell, prompt: 'cat ${run.workspace}/beans.txt; pwd; echo hot > cup.txt'}
  - {name: each, type: parallel-agents, harness: shell, for_each: [a, b], prompt: 'echo ${item} > ${item}.txt; pwd'}
  - {name: last, type: script, command: 'cat *.txt'}
on_complete:
  - {action: run_command, command: 'pwd > ended.txt; test ${run.workspace} = \"$(pwd)\"'}
";
    grimoire(&home, "mine", steps);
    let run = start(&home, &["mine"]).json()["run"].take();
    let id = text(&run["id"]).to_owned();
    let folder = scratch(&home, &id);
    let place = folder.display().to_string();
    assert_eq!(run["status"], "completed", "{run:#}");
    assert_eq!(step(&run, "writes")["output"], place, "it was empty");
    assert_eq!(step(&run, "asks")["summary"], format!("ground\n{place}"), "{run:#}");
    let of_items = ["/items/0/summary", "/items/1/summary"].map(|item| step(&run, "each").pointer(item).unwrap());
    assert_eq!(of_items, [&shown(&folder), &shown(&folder)], "{run:#}");
    assert_eq!(step(&run, "last")["output"], "a\nb\nground\nhot", "{run:#}");
    assert_eq!((&run["workspace"], &step(&run, "asks")["workspace"]), (&shown(&folder), &shown(&folder)));
    until(&home, &id, |_| folder.join("ended.txt").exists());
    assert_eq!(std::fs::read_to_string(folder.join("ended.txt")).unwrap().trim(), place);

    // A folder in which nothing is goes with its run.
    for (command, ends) in [("true", "completed"), ("false", "failed")] {
        scripted(&home, command);
        let id = begin(&home, &["mine"]);
        until_status(&home, &id, ends);
        let stays = ends == "failed";
        until(&home, &id, |_| scratch(&home, &id).exists() == stays);
    }
    assert_eq!(calls(&home), "", "no git process is started for such runs");
    assert!(!home.place().join("runs").exists(), "and no worktree is made");
    assert_eq!(branches(&home), "");
}

#[test]
fn a_run_without_a_workspace_works_outside_git() {
    let home = fresh();
    with_shim(&home);
    let folder = home.path("plain");
    std::fs::create_dir(&folder).unwrap();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/recipes/compare.yml");
    std::fs::copy(example, folder.join("compare.yml")).unwrap();
    let words = ["start", "compare.yml", "--input", "before=a b c", "--input", "after=a c d", "--json"];
    let ran = run(home.command(&words).current_dir(&folder)).json()["run"].take();
    assert_eq!(ran["status"], "completed", "{ran:#}");
    assert_eq!(step(&ran, "differ")["output"], "2d1\n< b\n3a3\n> d");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "nothing is left where it was started");
    assert!(scratch(&home, text(&ran["id"])).join("before.txt").exists());
    assert_eq!(calls(&home), "");
}

#[test]
fn a_run_gets_its_worktree_when_a_step_needs_it() {
    let home = fresh();
    let (begun, end) = (home.pipe("begun"), home.pipe("end"));
    let steps = format!(
        "workspace: none
steps:
  - {{name: looks, type: script, command: 'echo > {}; cat {}; pwd; test ! -e README.md'}}
  - {{name: makes, type: script, workspace: run, command: 'cat README.md; echo ${{run.workspace}}; pwd'}}
  - {{name: writes, harness: shell, workspace: shared, prompt: 'echo new > made.txt; echo ${{run.workspace}}'}}
  - {{name: after, type: script, command: 'pwd; ls'}}
",
        begun.path(),
        end.path()
    );
    grimoire(&home, "mine", &steps);
    let id = begin(&home, &["mine"]);
    let worktree = home.place().join("runs").join(&id);
    begun.hear();
    assert!(!worktree.exists() && branches(&home).is_empty(), "no step has needed it");
    end.let_go();
    let run = until_status(&home, &id, "completed");
    let (place, tree) = (scratch(&home, &id).display().to_string(), worktree.display().to_string());
    let told = ["looks", "makes", "writes", "after"].map(|name| text(&step(&run, name)["summary"]).to_owned());
    assert_eq!(told, [place.clone(), format!("# Coffee\n{tree}\n{tree}"), tree.clone(), place.clone()], "{run:#}");
    assert_eq!(step(&run, "makes")["workspace"], tree);
    // The work is on the branch, and the empty folder is gone.
    assert_eq!(home.git(&["show", &format!("sluice/run-{id}:made.txt")]), "new");
    until(&home, &id, |_| !scratch(&home, &id).exists());
}

#[test]
fn a_step_here_changes_the_checkout_and_that_is_told() {
    let home = fresh();
    let steps = "steps:
  - {name: one, type: script, workspace: here, command: 'echo new > made.txt; pwd; echo ${run.workspace}'}
  - {name: two, workspace: here, permissions: full, harness: shell, prompt: 'echo more >> made.txt; git status --short'}
";
    grimoire(&home, "mine", steps);
    let file = home.repository().join(".coven/grimoires/mine.yml");
    let checked = home.sluice(&["check", file.to_str().unwrap()]).done();
    assert_eq!(checked.stdout.matches("S0911").count(), 2, "{checked:?}");
    let run = start(&home, &["mine"]).json()["run"].take();
    assert_eq!(run["status"], "completed", "{run:#}");
    let place = home.repository().display().to_string();
    assert_eq!(run["workspace"], place);
    assert_eq!(step(&run, "one")["output"], format!("{place}\n{place}"));
    assert_eq!(std::fs::read_to_string(home.repository().join("made.txt")).unwrap(), "new\nmore\n");
    assert!(text(&step(&run, "two")["output"]).contains("?? made.txt"), "nothing is committed: {run:#}");
    assert_eq!(branches(&home), "");
    assert!(!home.place().join("runs").exists() && !home.place().join("scratch").exists());
}

#[test]
fn an_agent_works_in_the_checkout_only_if_the_file_says_what_it_may_do() {
    let home = fresh();
    let recipe = |rest: &str| {
        let text = format!("workspace: here\nsteps:\n  - {{name: one, harness: shell, {rest}}}\n");
        grimoire(&home, "mine", &text);
    };
    recipe("prompt: 'touch made.txt'");
    let refused = start(&home, &["mine"]);
    assert_eq!(refused.refusal(), "1 unusable_recipe", "{refused:?}");
    assert!(refused.stdout.contains("may do everything there"), "{refused:?}");
    assert!(!home.repository().join("made.txt").exists());
    assert!(home.sluice(&["check", ".coven/grimoires/mine.yml"]).stdout.contains("S0212"));
    for (permissions, name) in [("reduced", "looked.txt"), ("full", "made.txt")] {
        recipe(&format!("permissions: {permissions}, prompt: 'touch {name}'"));
        assert_eq!(start(&home, &["mine"]).json()["run"]["status"], "completed");
        assert!(home.repository().join(name).exists(), "{name}");
    }
}

#[test]
fn an_engine_that_is_killed_goes_on_in_the_same_folder() {
    let home = fresh();
    with_shim(&home);
    let (begun, end) = (home.pipe("begun"), home.pipe("end"));
    let command = format!("echo begun >> times.txt; echo > {}; cat {}; rm times.txt", begun.path(), end.path());
    scripted(&home, &command);
    home.json(&["run", "list"]);
    calls(&home);
    let id = begin(&home, &["mine"]);
    begun.hear();
    home.kill_engine();
    show(&home, &id);
    begun.hear();
    let times = std::fs::read_to_string(scratch(&home, &id).join("times.txt")).unwrap();
    assert_eq!(times, "begun\nbegun\n", "what the first attempt left is there");
    end.let_go();
    until_status(&home, &id, "completed");
    until(&home, &id, |_| !scratch(&home, &id).exists());
    assert_eq!(calls(&home), "");
}

#[test]
fn a_cancelled_run_gives_its_folder_back_too() {
    let home = fresh();
    let begun = home.pipe("begun");
    let command = format!("echo > {}; exec sleep 600", begun.path());
    scripted(&home, &command);
    let id = begin(&home, &["mine"]);
    begun.hear();
    assert!(scratch(&home, &id).is_dir());
    home.json(&["run", "cancel", &id]);
    until(&home, &id, |run| run["status"] == "cancelled" && !scratch(&home, &id).exists());
}

#[test]
fn what_is_left_in_folders_goes_when_its_time_is_over() {
    let home = fresh();
    keep(&home, "0s");
    let once = |command: &str, ends: &str| {
        scripted(&home, command);
        let id = begin(&home, &["mine"]);
        until_status(&home, &id, ends);
        scratch(&home, &id)
    };
    let done = once("mkdir a; echo new > a/made.txt", "completed");
    let failed = once("echo half > half.txt; false", "failed");
    let (old, young) = (scratch(&home, "neverbegan"), scratch(&home, "begins"));
    for folder in [&old, &young] {
        std::fs::create_dir(folder).unwrap();
        std::fs::write(folder.join("lost.txt"), "work").unwrap();
    }
    assert!(done.join("a/made.txt").exists(), "it stays until the engine looks");
    let long_ago = SystemTime::now() - Duration::from_secs(7200);
    std::fs::File::open(&old).unwrap().set_modified(long_ago).unwrap();
    // An engine looks when it starts, and every hour.
    home.sluice(&["stop"]).done();
    let give_up = Instant::now() + LONG;
    while done.exists() || old.exists() {
        assert!(Instant::now() < give_up, "{} {}", done.exists(), old.exists());
        home.json(&["run", "list"]);
    }
    assert!(failed.join("half.txt").exists(), "it may be tried again");
    assert!(young.join("lost.txt").exists(), "its run may be starting");
    let failed = failed.file_name().unwrap().to_str().unwrap();
    home.json(&["run", "retry", failed]);
    until_status(&home, failed, "failed");
}

/// All three formats have the key, and the step's own wins.
#[test]
fn every_format_of_recipes_has_the_key() {
    let home = fresh();
    let manifest = r#"workspace = "none"
[workflow]
name = "mine"
[[steps]]
id = "one"
type = "script"
command = "pwd"
[[steps]]
id = "two"
type = "script"
workspace = "run"
depends_on = ["one"]
command = "pwd"
"#;
    let template = "template: mine
workspace: none
steps:
  - {id: one, type: script, command: pwd}
  - {id: two, type: script, workspace: run, needs: [one], command: pwd}
";
    for (file, recipe) in [("mine.toml", manifest), ("mine.yml", template)] {
        write(&home, file, recipe);
        let run = start(&home, &[file]).json()["run"].take();
        let id = text(&run["id"]);
        let folders = [scratch(&home, id), home.place().join("runs").join(id)];
        let printed = ["one", "two"].map(|name| step(&run, name)["output"].clone());
        assert_eq!(printed, folders.map(|folder| shown(&folder)), "{run:#}");
    }
}
