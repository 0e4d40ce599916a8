//! Fresh worktrees are made ready: what a project sets up, copies and links is there before anything works in a worktree, none of
//! it is taken for work, and what was set up is torn down before a worktree goes.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use serde_json::Value;

use super::home::{Home, Pipe, run};
use super::recipes::{begin, events, grimoire, start, text, until, until_status, write};

/// What the agents of tasks do: they say what they find, and stay.
const AGENT: &str = r#"
{
    cat made .env
    for name in node_modules local/key notes.txt plain.txt; do test -e "$name" && echo "has $name"; done
    echo "port $SLUICE_PORT_BASE"
} > "OUT/seen-$SLUICE_TASK" 2> /dev/null
echo > "OUT/here"
exec cat
"#;

/// A home with one worktree, a repository with ignored files, and a harness `shell`.
fn home() -> (Home, Pipe) {
    let home = Home::empty();
    std::fs::create_dir(home.place()).unwrap();
    let script = home.path("agent.sh");
    std::fs::write(&script, AGENT.replace("OUT", home.path("").to_str().unwrap())).unwrap();
    let config = format!(
        "[defaults]\nharness = \"demo\"\n\n[harnesses.shell]\ninteractive = [\"/bin/sh\", {script:?}, \"{{prompt}}\"]\n\
         headless = [\"sh\"]\noutput = \"text\"\n"
    );
    std::fs::write(home.place().join("config.toml"), config).unwrap();
    write(&home, ".gitignore", "made\n.env\nnode_modules/\nlocal/\n");
    write(&home, "lock", "1\n");
    home.commit();
    write(&home, ".env", "KEY=1\n");
    write(&home, "node_modules/left-pad/index.js", "pad\n");
    write(&home, "local/key", "key\n");
    write(&home, "notes.txt", "mine\n");
    home.sluice(&["project", "add", "--pool-size", "1"]).done();
    let here = home.pipe("here");
    (home, here)
}

fn update(home: &Home, settings: &[&str]) -> Value {
    home.json(&[&["project", "update", "coffee"], settings].concat())["project"].take()
}

/// A command that writes a word into a file of the test's folder.
fn noting(home: &Home, word: &str, file: &str) -> String {
    format!("echo {word} >> {}", home.path(file).display())
}

fn noted(home: &Home, file: &str) -> String {
    std::fs::read_to_string(home.path(file)).unwrap_or_default()
}

/// Creates a task for the harness `shell`.
fn create(home: &Home, branch: &str) -> String {
    let answer = home.json(&["task", "create", branch, "Do it", "--harness", "shell"]);
    answer["task"]["id"].as_str().unwrap().to_owned()
}

/// The same, and goes on when its set-up has begun.
fn creates(home: &Home, begun: &Pipe) -> (Child, String) {
    let mut command = home.command(&["task", "create", "brew", "Do it", "--harness", "shell"]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    begun.hear();
    let id = home.json(&["task", "list"])["tasks"][0]["id"].as_str().unwrap().to_owned();
    (child, id)
}

fn seen(home: &Home, id: &str) -> String {
    noted(home, &format!("seen-{id}"))
}

fn worktree(home: &Home, id: &str) -> PathBuf {
    PathBuf::from(home.task(id)["workspace"].as_str().unwrap())
}

fn kept(home: &Home) -> String {
    home.git(&["for-each-ref", "--format=%(refname)", "refs/sluice/keep"])
}

/// A recipe with one script.
fn script(home: &Home, command: &str) {
    grimoire(home, "mine", &format!("steps:\n  - name: one\n    type: script\n    command: |\n      {command}\n"));
}

#[test]
fn a_worktree_is_set_up_once_and_again_when_what_it_depends_on_has_changed() {
    let (home, here) = home();
    let setup = format!("{}; cat lock > made", noting(&home, "ran", "log"));
    let project = update(&home, &["--setup", &setup, "--setup-when", "lock"]);
    assert_eq!((&project["setup"], &project["setup_when"]), (&setup.as_str().into(), &serde_json::json!(["lock"])));
    let ran = |branch: &str, made: &str| {
        let id = create(&home, branch);
        here.hear();
        assert!(seen(&home, &id).starts_with(made), "{}", seen(&home, &id));
        home.json(&["task", "cancel", &id, "--yes"]);
        noted(&home, "log").lines().count()
    };
    assert_eq!(ran("first", "1\n"), 1, "before the agent");
    assert_eq!(ran("second", "1\n"), 1, "its worktree is the same");
    write(&home, "lock", "2\n");
    home.git(&["commit", "--quiet", "-m", "another lock", "lock"]);
    assert_eq!(ran("third", "2\n"), 2, "the file has changed");
    assert_eq!(ran("fourth", "2\n"), 2);
    let other = format!("{}; cat lock lock > made", noting(&home, "other", "log"));
    update(&home, &["--setup", &other]);
    assert_eq!(ran("fifth", "2\n2\n"), 3, "the command has changed");
    home.json(&["workspace", "gc"]);
    assert_eq!(ran("sixth", "2\n2\n"), 4, "the worktree is another");
    let project = update(&home, &["--setup", "", "--setup-when", ""]);
    assert_eq!((&project["setup"], &project["setup_when"]), (&Value::Null, &Value::Null));
    assert_eq!(ran("seventh", "2\n2\n"), 4);
}

#[test]
fn a_set_up_that_fails_is_shown_with_its_output_and_starts_no_agent() {
    let (home, here) = home();
    update(&home, &["--setup", "echo installing; echo no such package >&2; exit 3"]);
    let id = create(&home, "brew");
    let task = home.until(&id, "in need of a person", |task| !task["attention"].is_null());
    let attention = text(&task["attention"]["text"]);
    for part in ["exit code 3", "installing", "no such package", "project update coffee", &format!("task respawn {id}")]
    {
        assert!(attention.contains(part), "{part}: {attention}");
    }
    assert_ne!(task["session"], "active", "{task:#}");
    assert!(home.history(&id).iter().any(|event| event["type"] == "hook.failed"));
    let shown = home.sluice(&["task", "show", &id]).done().stdout;
    assert!(shown.contains("no such package"), "{shown}");
    assert_eq!(seen(&home, &id), "");
    // Mended, the same task goes on.
    update(&home, &["--setup", "echo fine > made"]);
    home.json(&["task", "respawn", &id]);
    here.hear();
    assert!(seen(&home, &id).starts_with("fine\n"));
    assert_eq!(home.task(&id)["attention"], Value::Null);
}

#[test]
fn a_step_of_a_run_fails_with_the_output_of_the_set_up_and_can_be_tried_again() {
    let (home, _) = home();
    update(&home, &["--setup", "echo no such package >&2; exit 3"]);
    script(&home, &noting(&home, "worked", "log"));
    let id = begin(&home, &["mine"]);
    let run = until_status(&home, &id, "failed");
    let error = run.to_string();
    assert!(error.contains("no such package") && error.contains("exit code 3"), "{run:#}");
    let shown = home.sluice(&["run", "show", &id]).done().stdout;
    assert!(shown.contains("no such package"), "{shown}");
    assert_eq!(noted(&home, "log"), "");
    update(&home, &["--setup", &noting(&home, "set-up", "log")]);
    home.json(&["run", "retry", &id]);
    until_status(&home, &id, "completed");
    assert_eq!(noted(&home, "log"), "set-up\nworked\n");
}

#[test]
fn a_run_is_set_up_once_for_all_of_its_steps_and_once_for_each_item() {
    let (home, _) = home();
    update(&home, &["--setup", &format!("{}; echo ready > made", noting(&home, "ran", "log"))]);
    let script = |name: &str| format!("  - {{name: {name}, type: script, command: cat made}}\n");
    let items =
        "  - {name: many, type: parallel-agents, harness: shell, for_each: [a, b], prompt: 'cat made > ${item}.txt'}\n";
    grimoire(&home, "mine", &format!("steps:\n{}{}{items}", script("one"), script("two")));
    let id = begin(&home, &["mine"]);
    until_status(&home, &id, "completed");
    assert_eq!(home.git(&["show", &format!("sluice/run-{id}:b.txt")]), "ready");
    assert_eq!(noted(&home, "log"), "ran\n".repeat(3), "the run's worktree, and one for each item");
}

#[test]
fn what_is_copied_and_linked_is_there_and_is_no_work() {
    let (home, here) = home();
    write(&home, ".worktreeinclude", "# what agents need\nlocal/\nnotes.txt\n");
    let project = update(&home, &["--copy", ".env", "--copy", "plain.*", "--link", "node_modules"]);
    assert_eq!(project["copy"], serde_json::json!([".env", "plain.*"]));
    write(&home, "plain.txt", "untracked\n");
    let id = create(&home, "brew");
    here.hear();
    // Only what git ignores is included; what a person names is copied untracked as well.
    let found = seen(&home, &id);
    assert!(found.starts_with("KEY=1\nhas node_modules\nhas local/key\nhas plain.txt\nport "), "{found}");
    let folder = worktree(&home, &id);
    assert_eq!(std::fs::read_link(folder.join("node_modules")).unwrap(), home.repository().join("node_modules"));
    assert!(!std::fs::symlink_metadata(folder.join(".env")).unwrap().is_symlink());
    let listed = home.json(&["workspace", "list"]);
    assert_eq!(listed["workspaces"][0]["dirty"], false, "{listed:#}");
    // What lies there already stays as it is, and the agent's own file is work.
    std::fs::write(folder.join(".env"), "KEY=2\n").unwrap();
    home.json(&["task", "cancel", &id, "--yes"]);
    assert_eq!(kept(&home), "");
    let next = create(&home, "next");
    here.hear();
    assert!(seen(&home, &next).starts_with("KEY=2\n"), "{}", seen(&home, &next));
    std::fs::write(folder.join("work.txt"), "work\n").unwrap();
    home.json(&["task", "cancel", &next, "--yes"]);
    let names = home.git(&["ls-tree", "-r", "--name-only", &kept(&home)]);
    assert!(names.contains("work.txt") && !names.contains("plain.txt") && !names.contains("node_modules"), "{names}");
    assert!(home.repository().join("node_modules/left-pad/index.js").exists());
    home.json(&["workspace", "gc"]);
    assert!(!folder.exists() && home.repository().join("node_modules/left-pad/index.js").exists());
}

#[test]
fn what_is_copied_and_linked_is_not_committed_and_a_run_without_work_leaves_nothing() {
    let (home, _) = home();
    write(&home, ".worktreeinclude", "local/\n");
    update(&home, &["--copy", ".env", "--copy", "notes.txt", "--link", "node_modules"]);
    let prompt = "cat .env local/key notes.txt node_modules/left-pad/index.js > work.txt; rm .gitignore";
    grimoire(&home, "mine", &format!("steps:\n  - {{name: one, type: agent, harness: shell, prompt: '{prompt}'}}\n"));
    let id = begin(&home, &["mine"]);
    until_status(&home, &id, "completed");
    let branch = format!("sluice/run-{id}");
    assert_eq!(home.git(&["show", &format!("{branch}:work.txt")]), "KEY=1\nkey\nmine\npad");
    assert_eq!(home.git(&["diff", "--name-only", "main", &branch]), ".gitignore\nwork.txt");
    script(&home, "cat .env local/key notes.txt");
    let run = start(&home, &["mine"]).done().json()["run"].take();
    let folder = PathBuf::from(text(&run["workspace"]));
    until(&home, text(&run["id"]), |_| !folder.exists());
}

#[test]
fn what_was_set_up_is_torn_down_before_a_worktree_goes() {
    let (home, here) = home();
    let torn = format!("echo \"$(cat made) $SLUICE_PORT_BASE\" >> {}", home.path("log").display());
    update(&home, &["--setup", "echo up > made", "--teardown", &torn]);
    script(&home, "true");
    let run = start(&home, &["mine"]).done().json()["run"].take();
    let folder = PathBuf::from(text(&run["workspace"]));
    until(&home, text(&run["id"]), |_| !folder.exists());
    assert_eq!(noted(&home, "log"), "up 20000\n");
    let id = create(&home, "brew");
    here.hear();
    let folder = worktree(&home, &id);
    home.json(&["task", "cancel", &id, "--yes"]);
    assert_eq!(noted(&home, "log"), "up 20000\n", "the worktree stays for the next task");
    // One that fails keeps the worktree, and says why.
    update(&home, &["--teardown", "echo is still in use >&2; exit 1"]);
    let refused = home.sluice(&["workspace", "gc", "--json"]);
    assert!(refused.code == 1 && refused.stdout.contains("is still in use") && folder.exists(), "{refused:?}");
    update(&home, &["--teardown", &torn]);
    home.json(&["workspace", "gc"]);
    assert!(!folder.exists());
    assert_eq!(noted(&home, "log").lines().count(), 2);
}

#[test]
fn worktrees_have_ports_of_their_own() {
    let (home, here) = home();
    update(&home, &["--pool-size", "2", "--setup", "echo $SLUICE_PORT_BASE > made"]);
    let mut bases: Vec<String> = Vec::new();
    for branch in ["first", "second"] {
        let id = create(&home, branch);
        here.hear();
        let found = seen(&home, &id);
        let base = found.lines().next().unwrap().to_owned();
        assert!(found.ends_with(&format!("port {base}\n")), "{found}");
        bases.push(base);
    }
    script(&home, "echo $SLUICE_PORT_BASE; cat made");
    let run = start(&home, &["mine"]).done().json()["run"].take();
    let output = text(&run["steps"][0]["output"]).to_owned();
    let (step, setup) = output.split_once('\n').unwrap_or_else(|| panic!("{run:#}"));
    assert_eq!(step, setup);
    bases.push(step.to_owned());
    bases.sort();
    bases.dedup();
    assert_eq!(bases.len(), 3, "{bases:?}");
    assert!(bases.iter().all(|base| base.parse::<u16>().unwrap() >= 20_000));
}

#[test]
fn an_engine_that_is_killed_while_it_sets_up_sets_up_again() {
    let (home, here) = home();
    let (begun, end) = (home.pipe("begun"), home.pipe("end"));
    let count = noting(&home, "ran", "log");
    let setup = format!("{count}; echo > {}; cat {} > /dev/null; echo whole > made", begun.path(), end.path());
    update(&home, &["--setup", &setup, "--copy", ".env"]);
    let (creating, id) = creates(&home, &begun);
    home.kill_engine();
    drop(creating.wait_with_output());
    home.task(&id);
    begun.hear();
    assert_eq!(seen(&home, &id), "");
    end.let_go();
    here.hear();
    assert!(seen(&home, &id).starts_with("whole\nKEY=1\n"), "{}", seen(&home, &id));
    assert_eq!(noted(&home, "log"), "ran\nran\n");
}

#[test]
fn a_task_that_is_cancelled_does_not_wait_for_its_set_up() {
    let (home, _) = home();
    let begun = home.pipe("begun");
    update(&home, &["--setup", &format!("echo > {}; exec cat {}", begun.path(), home.pipe("never").path())]);
    let (creating, id) = creates(&home, &begun);
    home.json(&["task", "cancel", &id, "--yes"]);
    drop(creating.wait_with_output());
    let task = home.until_status(&id, "cancelled");
    assert_eq!((&task["attention"], &task["workspace"]), (&Value::Null, &Value::Null), "{task:#}");
    assert_eq!(seen(&home, &id), "");
    // Nor does a run.
    script(&home, "true");
    let run = begin(&home, &["mine"]);
    begun.hear();
    home.json(&["run", "cancel", &run]);
    until_status(&home, &run, "cancelled");
}

#[test]
fn paths_that_lead_out_of_the_checkout_are_refused() {
    let (home, _) = home();
    std::os::unix::fs::symlink("/etc", home.repository().join("out")).unwrap();
    for path in ["/etc/passwd", "../other", "local/../../x", "out", "out/passwd", ".git/config"] {
        for option in ["--copy", "--link", "--setup-when"] {
            assert_eq!(
                home.refused(&["project", "update", "coffee", option, path]),
                "2 bad_request",
                "{option} {path}"
            );
        }
    }
    // A link that comes later is refused when it would be followed, and a branch leads nothing elsewhere.
    update(&home, &["--copy", "later/key"]);
    std::os::unix::fs::symlink("/etc", home.repository().join("later")).unwrap();
    let id = create(&home, "brew");
    let task = home.until(&id, "in need of a person", |task| !task["attention"].is_null());
    assert!(text(&task["attention"]["text"]).contains("leads out of the checkout"), "{task:#}");
    assert!(!Path::new(&worktree(&home, &id)).join("later").exists());
}

/// What is copied goes where the branch has folders, and never through a link that the branch has.
#[test]
fn nothing_is_copied_through_a_link_of_the_branch() {
    let (home, here) = home();
    let outside = home.path("outside");
    std::fs::create_dir(&outside).unwrap();
    update(&home, &["--copy", "local/key"]);
    home.git(&["switch", "--quiet", "-c", "linked"]);
    std::fs::rename(home.repository().join("local"), home.path("local")).unwrap();
    std::os::unix::fs::symlink(&outside, home.repository().join("local")).unwrap();
    home.git(&["add", "--force", "local"]);
    home.git(&["commit", "--quiet", "-m", "a link"]);
    home.git(&["switch", "--quiet", "main"]);
    std::fs::rename(home.path("local"), home.repository().join("local")).unwrap();
    let id = create(&home, "linked");
    here.hear();
    assert!(worktree(&home, &id).join("local").is_symlink());
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    assert!(events(&home, &id).iter().all(|event| event["type"] != "hook.failed"));
}

#[test]
fn what_set_up_made_is_no_work_until_it_is_changed() {
    let (home, here) = home();
    update(&home, &["--setup", "echo 1 > .env.local; mkdir -p gen; echo 2 > gen/two.txt"]);
    script(&home, "cat .env.local gen/two.txt");
    let run = start(&home, &["mine"]).done().json()["run"].take();
    let (id, folder) = (text(&run["id"]).to_owned(), PathBuf::from(text(&run["workspace"])));
    until(&home, &id, |_| !folder.exists() && home.git(&["branch", "--list", "sluice/*"]).is_empty());
    assert_eq!(kept(&home), "");
    // It is not committed; what a step changes is.
    let prompt = "cat .env.local > work.txt; echo 3 > gen/two.txt";
    grimoire(&home, "mine", &format!("steps:\n  - {{name: one, type: agent, harness: shell, prompt: '{prompt}'}}\n"));
    let id = begin(&home, &["mine"]);
    until_status(&home, &id, "completed");
    assert_eq!(home.git(&["diff", "--name-only", "main", &format!("sluice/run-{id}")]), "gen/two.txt\nwork.txt");
    // So it is in the worktree of a task, which the next task gets with it.
    let id = create(&home, "brew");
    here.hear();
    let folder = worktree(&home, &id);
    let listed = home.json(&["workspace", "list"]);
    assert_eq!(listed["workspaces"][0]["dirty"], false, "{listed:#}");
    home.json(&["task", "cancel", &id, "--yes"]);
    assert_eq!(kept(&home), "", "{id}: {}", home.json(&["workspace", "list"])["kept"]);
    let id = create(&home, "next");
    here.hear();
    assert_eq!(std::fs::read_to_string(folder.join(".env.local")).unwrap(), "1\n");
    std::fs::write(folder.join(".env.local"), "mine\n").unwrap();
    home.json(&["task", "cancel", &id, "--yes"]);
    let names = home.git(&["ls-tree", "-r", "--name-only", &kept(&home)]);
    assert!(names.contains(".env.local") && !names.contains("gen/two.txt"), "{names}");
}

#[test]
fn what_is_copied_is_hidden_in_the_worktree_and_not_in_the_main_checkout() {
    let (home, here) = home();
    update(&home, &["--copy", "notes.txt", "--link", "node_modules"]);
    let id = create(&home, "brew");
    here.hear();
    let folder = worktree(&home, &id);
    let status = |folder: &Path| {
        let ran = run(home.program("git").arg("-C").arg(folder).args(["status", "--porcelain"])).done();
        ran.stdout.trim_end().to_owned()
    };
    assert_eq!((status(&home.repository()), status(&folder)), ("?? notes.txt".to_owned(), String::new()));
    let rules = std::fs::read_to_string(home.repository().join(".git/info/exclude")).unwrap();
    assert!(!rules.contains("notes.txt") && !rules.contains("node_modules"), "{rules}");
    // What a person ignores everywhere is ignored there too.
    std::fs::write(folder.join("work.txt"), "work").unwrap();
    assert_eq!(status(&folder), "?? work.txt");
}

#[test]
fn a_pattern_brings_no_link_that_leads_out() {
    let (home, _) = home();
    std::os::unix::fs::symlink("/etc", home.repository().join("outlink")).unwrap();
    std::os::unix::fs::symlink("notes.txt", home.repository().join("inlink")).unwrap();
    update(&home, &["--copy", "*link"]);
    script(&home, "true");
    let id = begin(&home, &["mine"]);
    let run = until_status(&home, &id, "failed");
    let error = text(&run["steps"][0]["error"]);
    assert!(error.contains("`outlink` cannot be brought into worktrees: it is a link that leads out"), "{run:#}");
    std::fs::remove_file(home.repository().join("outlink")).unwrap();
    home.json(&["run", "retry", &id]);
    until_status(&home, &id, "completed");
    let wrong = home.sluice(&["project", "update", "coffee", "--setup-when", "../x"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("`../x` is no file of a worktree: `..` leads out"), "{wrong:?}");
}
