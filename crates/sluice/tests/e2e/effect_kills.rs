//! The engine dies between doing something and reporting it, once for every kind of effect. The next engine does it again,
//! and the world is as if nothing had happened: what `Instruction` promises is kept.
//!
//! The moment is no chance: a trigger in the store refuses the outcome of one kind of effect, so that the engine can do it
//! and cannot report it. A store that fails ends an engine; what is left of it is killed, and the trigger is removed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::time::Instant;

use serde_json::Value;
use sluice_core::task::Instruction;
use sluice_core::task::effect::WhenRepeated;

use super::home::{Home, LONG, Ran};
use super::merges::sh;

/// How many lives go on at the same time.
const AT_ONCE: usize = 4;

/// A lifecycle whose hooks ask for every effect that there is.
const LIFECYCLE: &str = "
name: everything
version: 1
states:
  pending: {}
  working: { respawn_prompt: worker }
  checking: { run: { recipe: verify } }
  done: { terminal: true }
transitions:
  - from: pending
    to: working
    hooks: [{ action: acquire_workspace }, { action: spawn_agent, prompt: worker }, { action: notify, message: 'begun {branch}' }]
  - from: working
    to: checking
    by: person
    hooks:
      - { action: notify_worker, message: go on }
      - { action: run_command, command: 'echo ran >> WORLD' }
      - { action: push_branch }
      - { action: create_pr }
  - from: checking
    to: done
    by: person
    hooks:
      - { action: kill_session }
      - { action: delete_remote_branch }
      - { action: release_workspace }
      - { action: spawn_next }
exit_monitoring:
  rules: [{ status: working, action: mark_dead }]
prompts:
  worker: Listen.
";

/// What each effect leaves in the world, as [`task`] tells it at its end. An effect that leaves nothing there could be done
/// twice, or not at all, and its life would end like every other.
const TRACES: &[(&str, &str)] = &[
    ("acquire_workspace", "worktrees 2\n"),
    ("release_workspace", "brew has the worktree null\n"),
    ("start_session", "started\n"),
    ("end_session", "windows 1\n"),
    ("type_to_worker", "typed go on\n"),
    ("run_command", "ran\n"),
    ("start_run", "runs ["),
    ("cancel_run", "[\"cancelled\"]\n"),
    ("write_artifact", "status: done\n"),
    ("spawn_next", "1 began\n"),
    ("push_branch", "remote: \"refs/heads/brew"),
    ("create_pr", "opened\n"),
    ("delete_remote_branch", "then \"refs/heads/main"),
    ("notify", "told begun brew\n"),
];

/// The run that the task starts, and cancels when it moves on.
const VERIFY: &str = "
name: verify
steps:
  - { name: check, type: script, command: 'exec cat NEVER' }
";

/// A run with everything that runs ask for, beside the ends of attempts that are cancelled.
const RECIPE: &str = "
name: mine
steps:
  - { name: work, type: agent, harness: shell, prompt: 'echo worked >> WORLD' }
on_complete:
  - { action: notify, message: it is over }
  - { action: run_command, command: 'echo ran >> WORLD' }
  - { action: start, recipe: after }
";
const AFTER: &str = "
name: after
steps:
  - { name: last, type: agent, harness: shell, prompt: 'echo after >> WORLD' }
";

/// A `gh` that opens one pull request, and knows it afterwards.
const GH: &str = r#"#!/bin/sh
case "$1 $2" in
"pr list") cat LIST ;;
"pr create") echo 'opened' >> WORLD
    head=$(git rev-parse brew)
    echo "[{\"url\":\"https://forge/1\",\"state\":\"OPEN\",\"headRefOid\":\"$head\",\"headRefName\":\"brew\",\"baseRefName\":\"main\",\"isCrossRepository\":false}]" > LIST
    echo https://forge/1 ;;
*) exit 1 ;;
esac
"#;

/// A harness that writes down that it was started, and what is typed; what tells a person; and scripts as agents.
const CONFIG: &str = r#"
[defaults]
harness = "scribe"

[harnesses.scribe]
interactive = ["sh", "-c", "echo started >> WORLD; while read -r line; do echo \"typed $line\" >> WORLD; done", "scribe", "{prompt}"]

[harnesses.shell]
headless = ["sh"]
output = "text"

[notify]
command = ["sh", "-c", "printf 'told %s\\n' \"$(cat)\" >> WORLD"]
"#;

/// A home whose engine dies when it reports an effect of one kind.
struct Mortal {
    home: Home,
    /// Whether it died of it.
    died: bool,
}

impl Mortal {
    fn new() -> Mortal {
        let home = Home::empty();
        let put = |path: PathBuf, text: &str| {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let text = text.replace("WORLD", home.path("world").to_str().unwrap());
            let text = text.replace("LIST", home.path("list").to_str().unwrap());
            std::fs::write(path, text.replace("NEVER", home.path("never").to_str().unwrap())).unwrap();
        };
        put(home.place().join("config.toml"), CONFIG);
        put(home.place().join("workflows/everything.yml"), LIFECYCLE);
        for (name, text) in [("verify", VERIFY), ("mine", RECIPE), ("after", AFTER)] {
            put(home.place().join(format!("workflows/{name}.yml")), text);
        }
        put(home.path("gh.text"), GH);
        sh(
            &home,
            &home.path(""),
            "mkdir -p programs; cp gh.text programs/gh; chmod 755 programs/gh; echo '[]' > list; : > world; mkfifo never",
        );
        let remote =
            "git clone -q --bare . ../remote.git; git remote add origin \"$(cd ../remote.git; pwd)\"; git fetch -q";
        sh(&home, &home.repository(), remote);
        home.sluice(&["project", "add"]).done();
        Mortal { home, died: false }
    }

    /// From now on no outcome of this kind of effect can be stored.
    fn dies_at(&self, kind: &str) {
        let sql = format!(
            "CREATE TRIGGER kill BEFORE DELETE ON part WHEN OLD.what = 1 AND OLD.kind = '{kind}' \
             BEGIN SELECT RAISE(ABORT, 'no outcome is stored'); END"
        );
        self.home.store().execute_batch(&sql).unwrap();
    }

    /// Whether the engine has failed at the trigger. Then what is left of it is killed, and outcomes can be stored again.
    fn is_dead(&mut self) -> bool {
        let log = std::fs::read_to_string(self.home.place().join("logs/engine.log")).unwrap_or_default();
        if self.died || !log.contains("no outcome is stored") {
            return false;
        }
        self.home.kill_engine();
        self.home.store().execute_batch("DROP TRIGGER kill").unwrap();
        self.died = true;
        true
    }

    /// Asks until an engine answers, whatever becomes of the engines meanwhile.
    fn ask(&mut self, arguments: &[&str]) -> Ran {
        let give_up = Instant::now() + LONG;
        loop {
            let ran = self.home.sluice(&[arguments, &["--json"]].concat());
            if !self.is_dead() && ran.code != 6 {
                return ran;
            }
            assert!(Instant::now() < give_up, "no engine answers {arguments:?}: {ran:?}");
        }
    }

    /// Waits until the answer to a question is so.
    fn until(&mut self, arguments: &[&str], is_so: impl Fn(&Value, &str) -> bool) -> Value {
        let give_up = Instant::now() + LONG;
        loop {
            let answer = self.ask(arguments).done().json();
            if is_so(&answer, &self.world()) {
                return answer;
            }
            assert!(Instant::now() < give_up, "{arguments:?}: {answer:#}\n{}", self.world());
        }
    }

    /// What was done to the world. Agents and programs write it down when they get round to it, so it has no order.
    fn world(&self) -> String {
        let world = std::fs::read_to_string(self.home.path("world")).unwrap();
        let mut lines: Vec<&str> = world.lines().collect();
        lines.sort_unstable();
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    /// Moves a task, and waits until all that follows is done.
    fn moves(&mut self, id: &str, to: &str) {
        let moved = self.ask(&["task", "update", id, "--status", to]);
        // It may have been moved by the one that died, and its answer lost.
        assert!(moved.code == 0 || moved.refusal().starts_with("1 "), "{moved:?}");
        self.settles(id, to);
    }

    fn settles(&mut self, id: &str, status: &str) {
        self.until(&["task", "show", id], |answer, _| answer["task"]["status"] == status);
        let count = |events: &Value, kind: &str| {
            events["events"].as_array().unwrap().iter().filter(|event| event["type"] == kind).count()
        };
        self.until(&["task", "history", id], |events, _| {
            count(events, "status.changed") + count(events, "task.began") == count(events, "turn.settled")
        });
    }
}

/// A task through its lifecycle; what is to be seen at the end. Whether the engine died of this kind of effect.
fn task(kind: Option<&str>) -> (String, bool) {
    let mut it = Mortal::new();
    let create = |branch: &'static str| ["task", "create", branch, "Brew", "--workflow", "everything"];
    let waiting = ["tea", "milk"].map(|branch| {
        let created = it.ask(&[&create(branch)[..], &["--no-spawn"]].concat()).done().json();
        created["task"]["id"].as_str().unwrap().to_owned()
    });
    kind.into_iter().for_each(|kind| it.dies_at(kind));
    it.home.sluice(&create("brew"));
    let is_brew = |task: &&Value| task["branch"] == "brew";
    let listed = it.until(&["task", "list"], |list, _| list["tasks"].as_array().unwrap().iter().any(|it| is_brew(&it)));
    let id = listed["tasks"].as_array().unwrap().iter().find(is_brew).unwrap()["id"].as_str().unwrap().to_owned();
    it.settles(&id, "working");
    it.until(&["task", "show", &id], |_, world| world.contains("started") && world.contains("told begun"));
    let worktree = it.home.task(&id)["workspace"].as_str().unwrap().to_owned();
    sh(&it.home, worktree.as_ref(), "echo hot > brew.md; git add brew.md; git commit -q -m brew");
    it.moves(&id, "checking");
    it.until(&["run", "list", "--all"], |list, _| list["runs"].as_array().is_some_and(|runs| !runs.is_empty()));
    // What was typed before this has been read when this has been.
    it.ask(&["task", "nudge", &id, "that is all"]);
    it.until(&["task", "show", &id], |_, world| world.contains("typed that is all"));
    let refs = sh(&it.home, &it.home.path("remote.git"), "git for-each-ref --format='%(refname)'");
    // Only what is merged is removed from the remote.
    sh(&it.home, &it.home.repository(), "git merge -q --ff-only brew; git push -q origin main");
    it.moves(&id, "done");
    it.until(&["task", "list"], |list, _| list["tasks"].as_array().unwrap().iter().any(|it| it["status"] == "working"));
    let began: Vec<&String> = waiting.iter().filter(|id| it.home.task(id)["status"] == "working").collect();
    began.iter().for_each(|id| it.settles(id, "working"));
    let next = began.len();
    let begun = |world: &str| world.matches("told begun").count() > 1 && world.matches("started").count() > 1;
    it.until(&["task", "list"], |_, world| begun(world));
    let runs = it.home.json(&["run", "list", "--all"])["runs"].take();
    let runs: Vec<&str> = runs.as_array().unwrap().iter().map(|run| run["status"].as_str().unwrap()).collect();
    let history = it.home.sluice(&["task", "history", &id]).done().stdout;
    assert!(history.contains("hook.done") && history.contains("push_branch"), "people see what was done:\n{history}");
    let worktree = it.home.task(&id)["workspace"].to_string();
    let file = std::fs::read_to_string(it.home.home_file(&id)).unwrap();
    let status = file.lines().find(|line| line.starts_with("status:")).unwrap_or_default().to_owned();
    let after = sh(&it.home, &it.home.path("remote.git"), "git for-each-ref --format='%(refname)'");
    let end = format!(
        "{}remote: {refs:?}, then {after:?}\n{next} began\nruns {runs:?}\n{status}\nwindows {}\n\
         worktrees {}\nbrew has the worktree {worktree}\n",
        it.world(),
        it.home.windows().len(),
        it.home.git(&["worktree", "list"]).lines().count(),
    );
    (end, it.died)
}

/// A run to its end, and what it starts.
fn run(kind: Option<&str>) -> (String, bool) {
    let mut it = Mortal::new();
    it.ask(&["run", "list"]).done();
    kind.into_iter().for_each(|kind| it.dies_at(kind));
    it.home.sluice(&["start", "mine", "--detach"]);
    let is_over = |list: &Value| {
        let runs = list["runs"].as_array().unwrap();
        runs.len() > 1 && runs.iter().all(|run| run["status"] == "completed")
    };
    let ran = |world: &str| ["worked", "told", "ran", "after"].iter().all(|word| world.contains(word));
    let folder = it.home.repository();
    let branches = || {
        let listed =
            Command::new("git").arg("-C").arg(&folder).args(["branch", "--list", "sluice/*"]).output().unwrap();
        String::from_utf8(listed.stdout).unwrap()
    };
    let list = it.until(&["run", "list", "--all"], |list, world| is_over(list) && ran(world) && branches().is_empty());
    // The last deed can be seen before its outcome is refused.
    let give_up = Instant::now() + LONG;
    while kind.is_some() && !it.died && Instant::now() < give_up {
        it.ask(&["run", "list"]);
    }
    (format!("{}{} runs\n", it.world(), list["runs"].as_array().unwrap().len()), it.died)
}

/// The same without what may be done again.
fn without(end: &str, line: &str) -> String {
    let mut seen = false;
    let is_first = |it: &&str| *it != line || !std::mem::replace(&mut seen, true);
    end.lines().filter(is_first).map(|line| format!("{line}\n")).collect()
}

/// Without a trace of an effect the test would compare nothing of it.
fn leave_a_trace(kinds: &[(&str, WhenRepeated)], undisturbed: &str) {
    let traces: BTreeMap<&str, &str> = TRACES.iter().copied().collect();
    for (kind, _) in kinds {
        let Some(trace) = traces.get(kind) else {
            panic!(
                "{kind}: ask for it in LIFECYCLE, let `task` tell what it leaves in the world, and name that in TRACES:\n{undisturbed}"
            )
        };
        assert!(undisturbed.contains(trace), "{kind}: `task` does not tell of {trace:?}:\n{undisturbed}");
    }
    let different: BTreeSet<&&str> = traces.values().collect();
    assert_eq!(different.len(), kinds.len(), "two effects have one trace in TRACES, or there is no such effect");
}

#[test]
fn every_effect_of_a_task_keeps_its_promise() {
    let (undisturbed, _) = task(None);
    let kinds = Instruction::promises();
    leave_a_trace(&kinds, &undisturbed);
    let kinds = Mutex::new(kinds);
    let broken = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((kind, promise)) = { kinds.lock().unwrap().pop() } {
                    let (end, died) = task(Some(kind));
                    let end = match promise {
                        WhenRepeated::Same | WhenRepeated::Found | WhenRepeated::Noted => end,
                        WhenRepeated::Again => without(&end, "ran"),
                    };
                    let what = match (died, end == undisturbed) {
                        (false, _) => format!("{kind}: nothing in this test asks for it: add it to the lifecycle"),
                        (true, false) => format!("{kind} promises {promise:?}, and leaves:\n{end}"),
                        (true, true) => continue,
                    };
                    broken.lock().unwrap().push(what);
                }
            });
        }
    });
    let broken = broken.into_inner().unwrap();
    assert!(broken.is_empty(), "undisturbed:\n{undisturbed}\n\n{}", broken.join("\n"));
}

#[test]
fn every_effect_of_a_run_keeps_its_promise() {
    let (undisturbed, _) = run(None);
    let mut broken = BTreeSet::new();
    for kind in ["perform", "notify", "run_command", "start", "release"] {
        let (end, died) = run(Some(kind));
        // Hooks of a run are carried out beside each other: an engine that dies of one may die within the command, too.
        let end = without(&end, "ran");
        if !died || end != undisturbed {
            broken.insert(format!("{kind} (died: {died}) leaves:\n{end}"));
        }
    }
    assert!(broken.is_empty(), "undisturbed:\n{undisturbed}\n\n{broken:#?}");
}
