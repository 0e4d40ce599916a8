//! The engine is killed in the middle of a run: what has finished does not run again, living agents are adopted, and the
//! end is the same.

use super::home::Home;
use super::process;
use super::recipes::{begin, fresh, grimoire, question, settled, show, standing, step, text, until_status};

/// What agents and scripts have noted in a file of the home, line by line.
fn noted(home: &Home, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(home.place().join(name)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn in_the_middle_of_an_agent_loop() {
    let home = fresh();
    let (told, go) = (home.pipe("told"), home.pipe("go"));
    let steps = format!(
        "steps:
  - name: loop
    type: agent-loop
    harness: shell
    prompt: |
      echo turn ${{iteration}} $$ >> \"$SLUICE_HOME/noted\"
      if test ${{iteration}} = 2; then echo > {told}; cat {go}; fi
      echo output of turn ${{iteration}}
    arbiter_prompt: |
      echo arbiter ${{iteration}} >> \"$SLUICE_HOME/noted\"
      if test ${{iteration}} = 2; then r=done; else r=actionable; fi
      printf '```json\\n{{\"result\": \"%s\"}}\\n```\\n' $r
      exit 0
  - {{name: after, type: script, command: 'echo after >> \"$SLUICE_HOME/noted\"'}}
",
        told = told.path(),
        go = go.path()
    );
    grimoire(&home, "mine", &steps);
    let id = begin(&home, &["mine"]);
    told.hear();
    home.kill_engine();
    let agent: i32 = noted(&home, "noted")[2].rsplit(' ').next().unwrap().parse().unwrap();
    assert_eq!(standing(&show(&home, &id)), "loop running, after waiting");
    assert!(process::lives(agent), "the agent goes on without an engine");
    go.let_go();
    let run = until_status(&home, &id, "completed");
    assert_eq!(text(&step(&run, "loop")["output"]), "output of turn 2\n");
    let noted = noted(&home, "noted");
    // The number of the process behind a turn is of no interest.
    let words: Vec<String> = noted.iter().map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(words, ["turn 1", "arbiter 1", "turn 2", "arbiter 2", "after"]);
}

#[test]
fn in_the_middle_of_a_fan_out() {
    let home = fresh();
    let (told, go) = (home.pipe("told"), home.pipe("go"));
    let steps = format!(
        "steps:
  - name: all
    type: parallel-agents
    harness: shell
    max_concurrent: 1
    for_each: [a, b, c]
    output: found
    prompt: |
      echo ${{item}} >> \"$SLUICE_HOME/noted\"; echo ${{item}} > ${{item}}.txt
      if test ${{item}} = b; then echo > {}; cat {}; fi
      echo did ${{item}}
",
        told.path(),
        go.path()
    );
    grimoire(&home, "mine", &steps);
    let id = begin(&home, &["mine"]);
    told.hear();
    home.kill_engine();
    let run = show(&home, &id);
    let states: Vec<&str> =
        step(&run, "all")["items"].as_array().unwrap().iter().map(|it| text(&it["status"])).collect();
    assert_eq!(states, ["completed", "running", "waiting"]);
    go.let_go();
    let run = until_status(&home, &id, "completed");
    assert_eq!(run["variables"]["found"], serde_json::json!(["did a\n", "did b\n", "did c\n"]));
    assert_eq!(noted(&home, "noted"), ["a", "b", "c"], "nobody began twice");
    for name in ["a.txt", "b.txt", "c.txt"] {
        assert!(std::path::Path::new(text(&run["workspace"])).join(name).exists(), "{name} was merged");
    }
}

#[test]
fn in_the_middle_of_a_conflict() {
    let home = fresh();
    let (told, go) = (home.pipe("told"), home.pipe("go"));
    // Whoever merges the file is held up the first time, and gives up with markers in it, as git does.
    std::fs::write(home.repository().join(".gitattributes"), "both.txt merge=slow\n").unwrap();
    std::fs::write(home.repository().join("both.txt"), "before\n").unwrap();
    let driver = format!(
        "if mkdir {once}; then echo > {told}; cat {go}; fi; echo '<<<<<<< markers' > %A; exit 1",
        once = home.path("once").display(),
        told = told.path(),
        go = go.path()
    );
    // A driver of the repository's own configuration decides no merge.
    home.git(&["config", "--global", "merge.slow.driver", &driver]);
    home.git(&["add", "-A"]);
    home.git(&["commit", "--quiet", "-m", "merged slowly"]);
    let steps = "steps:
  - name: all
    type: parallel-agents
    harness: shell
    max_concurrent: 2
    for_each: [a, b]
    on_failure: continue
    prompt: echo ${item} > both.txt
  - {name: after, type: script, command: 'true'}
";
    grimoire(&home, "mine", steps);
    let id = begin(&home, &["mine"]);
    told.hear();
    home.kill_engine();
    go.let_go();
    let run = until_status(&home, &id, "held");
    let asked = question(&home, &id);
    assert!(text(&asked["text"]).contains("conflict: its work is on `sluice/part-"), "{asked:#}");
    let workspace = std::path::Path::new(text(&run["workspace"]));
    let both = std::fs::read_to_string(workspace.join("both.txt")).unwrap();
    assert!(both == "a\n" || both == "b\n", "{both}");
    let markers = home.git(&["log", "--all", "--format=%H", "-S<<<<<<< markers", "--", "both.txt"]);
    assert_eq!(markers, "", "nobody committed the markers");
}

#[test]
fn while_a_gate_holds_the_run() {
    let home = fresh();
    let steps = "steps:
  - {name: one, type: script, command: 'echo one >> \"$SLUICE_HOME/noted\"'}
  - {name: gate, type: gate, command: 'echo gate >> \"$SLUICE_HOME/noted\"; test -e \"$SLUICE_HOME/fine\"'}
  - {name: two, type: script, command: 'echo two >> \"$SLUICE_HOME/noted\"'}
";
    grimoire(&home, "mine", steps);
    let id = begin(&home, &["mine"]);
    until_status(&home, &id, "held");
    home.kill_engine();
    assert_eq!(text(&show(&home, &id)["status"]), "held");
    assert_eq!(text(&question(&home, &id)["step"]), "gate");
    std::fs::write(home.place().join("fine"), "").unwrap();
    home.json(&["answer", &id, "retry"]);
    until_status(&home, &id, "completed");
    assert_eq!(noted(&home, "noted"), ["one", "gate", "gate", "two"]);
}

#[test]
fn in_the_middle_of_a_script() {
    let home = fresh();
    let (told, go) = (home.pipe("told"), home.pipe("go"));
    let steps = format!(
        "steps:
  - {{name: one, type: script, command: 'echo one >> \"$SLUICE_HOME/noted\"'}}
  - name: two
    type: script
    output: found
    command: |
      echo two >> \"$SLUICE_HOME/noted\"; echo $$ >> \"$SLUICE_HOME/pids\"; echo > {}; cat {}; echo ready
",
        told.path(),
        go.path()
    );
    grimoire(&home, "mine", &steps);
    let id = begin(&home, &["mine"]);
    told.hear();
    let first: i32 = noted(&home, "pids")[0].parse().unwrap();
    home.kill_engine();
    assert!(process::lives(first));
    // The engine that takes over ends what the other left, and begins the script anew; a script cannot be adopted.
    show(&home, &id);
    told.hear();
    assert!(!process::lives(first), "two attempts of one step never run at the same time");
    go.let_go();
    let run = until_status(&home, &id, "completed");
    assert_eq!(run["variables"]["found"], "ready");
    assert_eq!(noted(&home, "noted"), ["one", "two", "two"], "what had finished did not run again");
}

#[test]
fn an_arbiter_that_touched_the_work_before_the_kill_is_found_out_after_it() {
    let home = fresh();
    let (told, go) = (home.pipe("told"), home.pipe("go"));
    let steps = format!(
        "steps:
  - name: loop
    type: agent-loop
    harness: shell
    prompt: |
      echo good > work.txt
    arbiter_prompt: |
      echo vandalised > '${{run.workspace}}/work.txt'; echo > {}; cat {}
      printf '```json\\n{{\"result\": \"done\"}}\\n```\\n'; exit 0
",
        told.path(),
        go.path()
    );
    grimoire(&home, "mine", &steps);
    let id = begin(&home, &["mine"]);
    told.hear();
    home.kill_engine();
    show(&home, &id);
    go.let_go();
    let run = until_status(&home, &id, "failed");
    let error = text(&step(&run, "loop")["error"]);
    assert!(error.starts_with("the arbiter changed the work, which it may not; the work was put back"), "{error}");
    let work = std::path::Path::new(text(&run["workspace"])).join("work.txt");
    assert_eq!(std::fs::read_to_string(work).unwrap(), "good\n");
}

/// An item whose agent is lost is started again, under a name of its own; how often is counted for each item.
#[test]
fn an_item_whose_agent_is_lost_is_started_again_and_the_others_go_on() {
    let home = fresh();
    let pipes: Vec<_> =
        ["a", "b"].map(|item| (home.pipe(&format!("begun-{item}")), home.pipe(&format!("on-{item}")))).into();
    let folder = home.path("").display().to_string();
    let prompt = format!(
        "echo $PPID >> {folder}/tries-${{item}}; echo x > {folder}/begun-${{item}}; cat {folder}/on-${{item}}; echo did ${{item}}"
    );
    let steps = format!(
        "max_parallel: 2\nsteps:\n  - {{name: each, type: parallel-agents, harness: shell, for_each: [a, b], prompt: '{prompt}'}}\n"
    );
    grimoire(&home, "mine", &steps);
    let id = begin(&home, &["mine"]);
    let shims = |item: &str| -> Vec<i32> {
        let text = std::fs::read_to_string(home.path(&format!("tries-{item}"))).unwrap();
        text.lines().map(|line| line.parse().unwrap()).collect()
    };
    pipes.iter().for_each(|(begun, _)| begun.hear());
    for item in [0, 1, 0] {
        process::kill(*shims(["a", "b"][item]).last().unwrap());
        pipes[item].0.hear();
    }
    pipes.iter().for_each(|(_, on)| on.let_go());
    let run = settled(&home, &id);
    assert_eq!(text(&run["status"]), "completed", "{run:#}");
    assert_eq!(step(&run, "each")["output"], serde_json::json!(["did a\n", "did b\n"]), "{run:#}");
    assert_eq!((shims("a").len(), shims("b").len()), (3, 2));
}
