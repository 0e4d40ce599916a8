//! What a run promises: it ends or asks, it says what went wrong, and nothing is done more often than it should.

use serde_json::{Value, json};

use super::home::Home;
use super::recipes::{begin, events, fresh, grimoire, question, settled, show, start, step, text, until, write};

/// How often a step was begun, by what it wrote into a file of its own.
fn tries(home: &Home, name: &str) -> usize {
    std::fs::read_to_string(home.path(name)).unwrap_or_default().lines().count()
}

/// A script that counts its tries in a file beside the repository.
fn counted(home: &Home, name: &str, rest: &str) -> String {
    format!("echo try >> {}; {rest}", home.path(name).display())
}

#[test]
fn a_signal_is_a_failure_and_retry_says_how_often_it_is_tried_again() {
    let home = fresh();
    let kill = counted(&home, "once", "kill -9 $$");
    grimoire(&home, "once", &format!("steps:\n  - {{name: die, type: script, command: '{kill}'}}\n"));
    let run = start(&home, &["once"]).json()["run"].take();
    assert_eq!((text(&run["status"]), tries(&home, "once")), ("failed", 1), "{run:#}");
    assert_eq!(step(&run, "die")["exit_code"], 137);
    let kill = counted(&home, "thrice", "kill -9 $$");
    let steps =
        format!("steps:\n  - {{name: die, type: script, retry: {{max: 2, backoff: 10ms}}, command: '{kill}'}}\n");
    grimoire(&home, "thrice", &steps);
    let run = start(&home, &["thrice"]).json()["run"].take();
    assert_eq!((text(&run["status"]), tries(&home, "thrice")), ("failed", 3), "{run:#}");
    // An agent that a signal ends is treated alike.
    let prompt = counted(&home, "agent", "kill -9 $$");
    grimoire(
        &home,
        "agent",
        &format!(
            "steps:\n  - {{name: die, type: agent, harness: shell, prompt: '{}'}}\n",
            prompt.replace("$$", "$$$$")
        ),
    );
    let run = start(&home, &["agent"]).json()["run"].take();
    assert_eq!((text(&run["status"]), tries(&home, "agent")), ("failed", 1), "{run:#}");
}

#[test]
fn what_a_failed_script_or_gate_printed_is_shown_everywhere() {
    let home = fresh();
    let print = "echo compiling; echo no such file >&2; exit 3";
    let steps = format!(
        "steps:\n  - {{name: build, type: script, needs: [], command: '{print}'}}\n  - {{name: tell, type: script, needs: [build], always: true, command: 'echo code ${{build.exit_code}} said ${{build.stderr}}'}}\n"
    );
    grimoire(&home, "mine", &steps);
    let run = start(&home, &["mine"]).json()["run"].take();
    let build = step(&run, "build");
    assert_eq!((text(&build["output"]), text(&build["stderr"]).trim()), ("compiling", "no such file"), "{run:#}");
    assert_eq!(build["exit_code"], 3);
    assert_eq!(text(&step(&run, "tell")["output"]).trim_end(), "code 3 said no such file");
    let id = text(&run["id"]);
    let log = home.sluice(&["run", "log", id, "build"]).done().stdout;
    assert!(log.contains("compiling") && log.contains("no such file"), "{log}");
    let shown = home.sluice(&["run", "show", id]).done().stdout;
    assert!(shown.contains("compiling") && shown.contains("no such file"), "{shown}");
    // A gate asks a person, who sees what it printed before they answer.
    grimoire(&home, "gated", &format!("steps:\n  - {{name: check, type: gate, command: '{print}'}}\n"));
    let id = begin(&home, &["gated"]);
    assert_eq!(settled(&home, &id)["status"], "held");
    let asked = question(&home, &id);
    assert_eq!((&asked["exit_code"], text(&asked["printed"])), (&json!(3), "compiling\nno such file"));
    let inbox = home.sluice(&["inbox"]).done().stdout;
    assert!(inbox.contains("| compiling") && inbox.contains("| no such file"), "{inbox}");
    let log = home.sluice(&["run", "log", &id]).done().stdout;
    assert!(log.contains("compiling") && log.contains("no such file"), "{log}");
    let told = events(&home, &id).into_iter().find(|event| event["data"]["printed"].is_string());
    assert_eq!(told.map(|event| event["data"]["exit_code"].clone()), Some(json!(3)));
}

/// Whether the engine has anything left to do or to wait for.
fn is_live(home: &Home, run: &str) -> bool {
    home.sluice(&["stop"]).done();
    let store = sluice_store::Store::open(&format!("sqlite:{}", home.place().join("store.db").display())).unwrap();
    let stored = store.reader().unwrap().load(&sluice_store::StreamId::new(format!("run/{run}"))).unwrap();
    // Its worktree is given back by the next engine, if this one has not come to that.
    let goes_on = |open: &sluice_store::OpenEffect| open.effect.kind != "release";
    stored.is_some_and(|stored| !stored.timers.is_empty() || stored.effects.iter().any(goes_on))
}

#[test]
fn what_always_runs_does_so_when_a_run_is_cancelled_or_takes_too_long_and_nothing_is_left() {
    let home = fresh();
    let pipe = home.pipe("begun");
    let clean = counted(&home, "cleaned", "echo ${work.status}");
    let steps = |limit: &str| {
        format!(
            "{limit}steps:\n  - {{name: work, type: script, needs: [], timeout: 1h, command: 'echo x > {}; sleep 3600'}}\n  - {{name: more, type: script, needs: [work], command: 'true'}}\n  - {{name: clean, type: script, needs: [more], always: true, command: '{clean}'}}\n",
            pipe.path()
        )
    };
    grimoire(&home, "mine", &steps(""));
    let id = begin(&home, &["mine"]);
    pipe.hear();
    let run = home.json(&["run", "cancel", &id])["run"].take();
    assert_eq!((text(&run["status"]), tries(&home, "cleaned")), ("cancelled", 1), "{run:#}");
    assert_eq!(text(&step(&run, "clean")["output"]), "cancelled");
    assert_eq!(text(&step(&run, "more")["status"]), "cancelled");
    assert!(!is_live(&home, &id), "something outlives the run");
    grimoire(&home, "mine", &steps("timeout: 1s\n"));
    let id = begin(&home, &["mine"]);
    pipe.hear();
    let run = settled(&home, &id);
    assert_eq!((text(&run["status"]), tries(&home, "cleaned")), ("failed", 2), "{run:#}");
    assert_eq!(text(&run["error"]), "the run took longer than its `timeout`");
    assert!(!is_live(&home, &id), "something outlives the run");
}

#[test]
fn a_result_in_another_spelling_counts_and_one_that_nobody_knows_fails_the_step() {
    let home = fresh();
    let manifest = |result: &str| {
        format!(
            "[workflow]\nname = \"dev\"\n[[steps]]\nid = \"review\"\nprompt = 'demo: sluice step complete --summary ok --result \"{result}\"'\n[[steps]]\nid = \"fix\"\ndepends_on = [\"review\"]\ncondition = \"review.result == 'FAIL'\"\nprompt = \"demo: say fixed\"\n[[steps]]\nid = \"pr\"\ndepends_on = [\"review\"]\ncondition = \"review.result == 'PASS'\"\nprompt = \"demo: say opened\"\n"
        )
    };
    let ran = |result: &str| -> Value {
        write(&home, "dev.toml", &manifest(result));
        start(&home, &["dev.toml"]).json()["run"].take()
    };
    let run = ran(" pass ");
    assert_eq!((text(&run["status"]), text(&step(&run, "pr")["status"])), ("completed", "completed"), "{run:#}");
    assert_eq!(text(&step(&run, "review")["result"]), "PASS");
    let run = ran("MAYBE");
    assert_eq!(text(&run["status"]), "failed", "{run:#}");
    let why = "its result `MAYBE` is none of those that `fix` and others wait for: `FAIL`, `PASS`";
    assert_eq!(text(&step(&run, "review")["error"]), why);
    // What is mended is reviewed again, once, though the manifest does not say how often.
    let run = ran("fail");
    assert_eq!((step(&run, "review")["round"].clone(), text(&run["status"])), (json!(1), "failed"), "{run:#}");
    assert_eq!(text(&step(&run, "fix")["error"]), "loop_exhausted: its loop has used up its turns");
}

#[test]
fn two_loops_to_one_step_end_the_run() {
    let home = fresh();
    let steps = "steps:
  - {name: look, type: script, needs: [], command: 'echo \"{\\\"result\\\": \\\"PASS\\\"}\" '}
  - {name: mend, type: script, needs: [look], when: \"look.output == 'bad'\", command: 'true', loop: {to: look, max: 2}}
  - {name: tune, type: script, needs: [look], when: \"look.output == 'odd'\", command: 'true', loop: {to: look, max: 2}}
";
    grimoire(&home, "mine", steps);
    let run = start(&home, &["mine"]).done().json()["run"].take();
    assert_eq!(text(&run["status"]), "completed", "{run:#}");
}

#[test]
fn a_patrol_is_seen_at_rest_keeps_what_it_says_and_goes_on_after_a_turn_that_failed() {
    let home = fresh();
    let pipe = home.pipe("fifth");
    let turns = home.path("turns").display().to_string();
    let fails = format!(
        "echo turn >> {turns}; if [ $(wc -l < {turns}) -ge 5 ]; then echo x > {}; sleep 3600; fi; exit 1",
        pipe.path()
    );
    let steps =
        format!("repeat: {{every: 20ms, keep: 2}}\nsteps:\n  - {{name: look, type: script, command: '{fails}'}}\n");
    grimoire(&home, "patrol", &steps);
    let id = begin(&home, &["patrol"]);
    pipe.hear(); // a fifth turn begins, though all before it have failed
    let all = home.json(&["run", "list", "--all"]);
    let turns = all["runs"].as_array().unwrap().iter().filter(|it| text(&it["id"]).starts_with(&id));
    let ended: Vec<&str> = turns.filter(|it| it["status"] == "failed").map(|it| text(&it["id"])).collect();
    assert_eq!(ended, [format!("{id}-r3"), format!("{id}-r2")]);
    home.sluice(&["run", "cancel", &format!("{id}-r4")]).done();
    grimoire(&home, "slow", "repeat: {every: 1h, keep: 2}\nsteps:\n  - {name: look, type: script, command: 'true'}\n");
    let resting = text(&start(&home, &["slow"]).done().json()["run"]["id"]).to_owned();
    let seen = |list: &Value| list["runs"].as_array().unwrap().iter().find(|it| it["id"] == resting.as_str()).cloned();
    let run = seen(&home.json(&["run", "list"])).unwrap();
    assert!(run["next_turn_at"].is_string(), "{run:#}");
    home.sluice(&["run", "cancel", &resting]).done();
    assert!(seen(&home.json(&["run", "list"])).is_none());
}

/// A person starts where they stand; what the engine starts by itself begins at the default branch.
#[test]
fn the_next_turn_of_a_patrol_begins_at_the_default_branch() {
    let home = fresh();
    let pipe = home.pipe("turns");
    let main = home.git(&["rev-parse", "HEAD"]);
    home.git(&["checkout", "--quiet", "-b", "mine"]);
    home.git(&["commit", "--quiet", "--allow-empty", "-m", "somebody's own"]);
    let own = home.git(&["rev-parse", "HEAD"]);
    let turns = home.path("turns.txt");
    let look = format!("git rev-parse HEAD >> {}; echo x > {}", turns.display(), pipe.path());
    let steps =
        format!("repeat: {{every: 20ms, keep: 2}}\nsteps:\n  - {{name: look, type: script, command: '{look}'}}\n");
    grimoire(&home, "patrol", &steps);
    let id = begin(&home, &["patrol"]);
    pipe.hear();
    pipe.hear();
    let turns = std::fs::read_to_string(turns).unwrap();
    assert_eq!(turns.lines().take(2).collect::<Vec<_>>(), [own.trim(), main.trim()]);
    home.sluice(&["run", "cancel", &id]);
}

#[test]
fn the_worktree_of_a_run_is_made_when_a_step_needs_it() {
    let home = Home::new();
    super::recipes::with_shell(&home);
    home.sluice(&["stop"]).done();
    let steps = "steps:\n  - {name: change, type: task, branch: hotter, summary: wait for notification}\n  - {name: after, type: script, command: pwd}\n";
    grimoire(&home, "mine", steps);
    let id = begin(&home, &["mine"]);
    let workspace = text(&show(&home, &id)["workspace"]).to_owned();
    let before = home.git(&["rev-parse", "HEAD"]);
    let task = format!("{id}-0-1-whole");
    let mut happening = home.follow(&["--type", "task.created"]);
    assert!(happening.next(std::time::Instant::now() + super::home::LONG).is_some());
    home.until(&task, "has begun", |task| task["status"] != "pending");
    assert!(!std::path::Path::new(&workspace).exists(), "nobody needs {workspace} yet");
    // What is committed meanwhile is not what the run was started with.
    home.git(&["commit", "--quiet", "--allow-empty", "-m", "later"]);
    home.sluice(&["task", "update", &task, "--status", "cancelled"]);
    home.sluice(&["task", "cancel", &task, "--yes"]);
    let run = until(&home, &id, |run| run["status"] != "running");
    assert_eq!(text(&run["status"]), "failed");
    grimoire(&home, "plain", "steps:\n  - {name: where, type: script, command: pwd; git rev-parse HEAD}\n");
    let run = start(&home, &["plain"]).done().json()["run"].take();
    let now = home.git(&["rev-parse", "HEAD"]);
    assert_eq!(text(&step(&run, "where")["output"]), format!("{}\n{now}", text(&run["workspace"])));
    assert_ne!(before, now);
}

#[test]
fn an_agent_with_a_worktree_of_its_own_is_told_that_one() {
    let home = fresh();
    let asks = "test \"$(pwd -P)\" = \"${run.workspace}\" && echo own ${item}";
    let steps = format!(
        "steps:\n  - {{name: each, type: parallel-agents, harness: shell, for_each: [a, b], prompt: '{asks}'}}\n"
    );
    grimoire(&home, "mine", &steps);
    let run = start(&home, &["mine"]).done().json()["run"].take();
    assert_eq!(step(&run, "each")["output"], json!(["own a\n", "own b\n"]), "{run:#}");
}
