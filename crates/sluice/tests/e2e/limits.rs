//! Runs at their limits: many items at once, conflicts, a great deal of output, cancellation, time.

use std::path::Path;
use std::time::{Duration, Instant};

use super::home::{Home, Pipe, run as ran_to_end};
use super::process;
use super::recipes::{all_gone, begin, events, fresh, grimoire, question, start, step, text, told, until_status};
use super::served::{Served, token};

/// A fan-out over 200 items of which three fail as long as nobody has mended them. Each notes how many are alive.
fn many(home: &Home, on_failure: &str) {
    let items: Vec<String> = (0..200).map(|item| item.to_string()).collect();
    let steps = format!(
        "steps:
  - name: all
    type: parallel-agents
    harness: shell
    permissions: reduced
    max_concurrent: 8
    on_failure: {on_failure}
    for_each: [{}]
    output: found
    prompt: |
      cd \"$SLUICE_HOME\"; mkdir -p alive
      flock lock sh -c 'touch alive/${{item}}; ls alive | wc -l >> counts'
      echo did ${{item}}; code=0
      case ${{item}} in 10|100|199) test -e mended || code=1;; esac
      flock lock rm alive/${{item}}
      exit $code
",
        items.join(", ")
    );
    grimoire(home, "many", &steps);
}

#[track_caller]
fn most_alive(home: &Home) -> (usize, usize) {
    let counts = std::fs::read_to_string(home.place().join("counts")).unwrap();
    std::fs::remove_file(home.place().join("counts")).unwrap();
    let counts: Vec<usize> = counts.lines().map(|line| line.trim().parse().unwrap()).collect();
    (counts.iter().copied().max().unwrap(), counts.len())
}

#[test]
fn of_200_items_never_more_than_8_are_alive() {
    let home = fresh();
    many(&home, "block");
    let began = Instant::now();
    let id = begin(&home, &["many"]);
    let run = until_status(&home, &id, "held");
    let took = began.elapsed();
    let asked = question(&home, &id);
    assert!(text(&asked["text"]).starts_with("3 of 200 items failed; item "), "{asked}");
    let (most, starts) = most_alive(&home);
    assert!(most <= 8, "{most} were alive at once");
    assert!(most >= 2, "they were not at work at the same time: {most}");
    assert_eq!(starts, 200);
    let failed = |run: &serde_json::Value| {
        let items = step(run, "all")["items"].as_array().unwrap().clone();
        items.iter().filter(|it| it["status"] == "failed").map(|it| it["index"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(failed(&run), [10, 100, 199]);
    // Only what failed is done again.
    std::fs::write(home.place().join("mended"), "").unwrap();
    home.json(&["answer", &id, "retry"]);
    let run = until_status(&home, &id, "completed");
    assert_eq!(most_alive(&home).1, 3);
    let expected: Vec<String> = (0..200).map(|item| format!("did {item}\n")).collect();
    assert_eq!(run["variables"]["found"], serde_json::json!(expected), "in the order of the items");
    // And where the recipe goes on without them, it does.
    std::fs::remove_file(home.place().join("mended")).unwrap();
    many(&home, "continue");
    let run = start(&home, &["many"]).done().json()["run"].take();
    assert_eq!(text(&step(&run, "all")["summary"]), "197 of 200 items completed, 3 failed");
    assert_eq!(failed(&run), [10, 100, 199]);
    assert_eq!(run["variables"]["found"][11], "did 11\n");
    assert!(!run["variables"]["found"][10]["error"].is_null());
    let (most, starts) = most_alive(&home);
    assert!(most <= 8 && starts == 200, "{most} alive, {starts} started");
    eprintln!("200 items with max_concurrent 8 took {took:?}");
}

#[test]
fn steps_with_a_worktree_of_their_own_that_write_the_same_are_held() {
    let home = fresh();
    let [told, go, other_told, other_go] = ["told", "go", "other-told", "other-go"].map(|name| home.pipe(name));
    let wait = |told: &Pipe, go: &Pipe| {
        format!("test -e \"$SLUICE_HOME/again\" || {{ echo > {}; cat {}; }}", told.path(), go.path())
    };
    let steps = format!(
        "max_parallel: 2
steps:
  - name: one
    needs: []
    harness: shell
    workspace: own
    prompt: |
      {}
      echo one > same.txt
  - name: two
    needs: []
    harness: shell
    workspace: own
    prompt: |
      {}
      echo two > same.txt
",
        wait(&told, &go),
        wait(&other_told, &other_go)
    );
    grimoire(&home, "mine", &steps);
    let id = begin(&home, &["mine"]);
    // Both begin before either is merged.
    told.hear();
    other_told.hear();
    go.let_go();
    home.until_event(&id, "workflow.step.completed", 1);
    other_go.let_go();
    let run = until_status(&home, &id, "held");
    let asked = question(&home, &id);
    assert_eq!(text(&asked["step"]), "two");
    assert!(text(&asked["text"]).starts_with("conflict: its work is on `sluice/part-"), "{asked:#}");
    let same = Path::new(text(&run["workspace"])).join("same.txt");
    assert_eq!(std::fs::read_to_string(&same).unwrap(), "one\n");
    // Done again, it starts where the other is.
    std::fs::write(home.place().join("again"), "").unwrap();
    home.json(&["answer", &id, "retry"]);
    until_status(&home, &id, "completed");
    assert_eq!(std::fs::read_to_string(&same).unwrap(), "two\n");
}

#[test]
fn items_that_write_are_merged_in_their_order_and_a_conflict_is_held() {
    let home = fresh();
    let (told_here, go) = (home.pipe("told"), home.pipe("go"));
    // The first item ends last; the last two write the same file.
    let steps = format!(
        "steps:
  - name: all
    type: parallel-agents
    harness: shell
    on_failure: continue
    for_each: [0, 1, 2, 3]
    prompt: |
      echo ${{item}} > item-${{item}}.txt
      if test ${{item}} -ge 2; then echo ${{item}} > same.txt; fi
      if test ${{item}} = 0; then echo > {}; cat {}; fi
",
        told_here.path(),
        go.path()
    );
    grimoire(&home, "mine", &steps);
    let id = begin(&home, &["mine"]);
    told_here.hear();
    home.until_event(&id, "workflow.step.part.started", 4);
    go.let_go();
    let run = until_status(&home, &id, "held");
    let reason = text(&question(&home, &id)["text"]).to_owned();
    assert!(reason.starts_with("1 of 4 items failed; item 3: conflict: its work is on `sluice/part-"), "{reason}");
    let workspace = Path::new(text(&run["workspace"])).to_owned();
    assert_eq!(std::fs::read_to_string(workspace.join("same.txt")).unwrap(), "2\n", "the earlier item came first");
    let git = |arguments: &[&str]| {
        let mut command = home.program("git");
        ran_to_end(command.current_dir(&workspace).args(arguments)).done().stdout
    };
    assert_eq!(git(&["status", "--porcelain"]), "", "the run's worktree is whole");
    let merged = git(&["log", "--first-parent", "--reverse", "--format=%s", "main..HEAD"]);
    assert_eq!(merged, "mine: all (item 0)\nmine: all (item 1)\nmine: all (item 2)\n");
    // Done again, it starts where the others are.
    home.json(&["answer", &id, "retry"]);
    until_status(&home, &id, "completed");
    assert_eq!(std::fs::read_to_string(workspace.join("same.txt")).unwrap(), "3\n");
    assert_eq!(std::fs::read_to_string(workspace.join("item-3.txt")).unwrap(), "3\n");
}

#[test]
fn cancel_ends_every_process_of_the_run() {
    let home = fresh();
    let told_here = home.pipe("told");
    // A child, a grandchild, one in a session of its own, and one that an earlier step left: none of them hears TERM.
    let deaf = "trap \"\" TERM INT HUP; echo $$ >> \"$SLUICE_HOME/pids\"";
    let steps = format!(
        "steps:
  - name: earlier
    type: script
    command: |
      setsid sh -c '{deaf}; exec tail -f /dev/null > /dev/null 2>&1' &
      while ! test -s \"$SLUICE_HOME/pids\"; do :; done
  - name: work
    type: script
    command: |
      {deaf}
      sh -c '{deaf}; sh -c \"exec tail -f /dev/null\" & tail -f /dev/null' &
      setsid sh -c '{deaf}; (tail -f /dev/null &); exec tail -f /dev/null' &
      while test $(wc -l < \"$SLUICE_HOME/pids\") -lt 4; do :; done
      echo > {}
      wait
",
        told_here.path()
    );
    grimoire(&home, "mine", &steps);
    let id = begin(&home, &["mine"]);
    told_here.hear();
    let noted = std::fs::read_to_string(home.place().join("pids")).unwrap();
    let mark = format!("SLUICE_RUN={id}");
    let of_run = || process::carrying(&mark);
    let pids: Vec<i32> = noted.lines().map(|line| line.parse().unwrap()).chain(of_run()).collect();
    assert!(pids.len() >= 8, "{pids:?}");
    let asked = Instant::now();
    home.json(&["run", "cancel", &id]);
    all_gone(&pids);
    let took = asked.elapsed();
    eprintln!("{} processes that hear no TERM were gone {took:?} after `run cancel` was typed", pids.len());
    assert!(took < Duration::from_secs(4), "{took:?}");
    assert_eq!(of_run(), Vec::<i32>::new());
    until_status(&home, &id, "cancelled");
}

#[test]
fn a_script_that_prints_a_gigabyte_does_not_fill_the_memory() {
    let home = fresh();
    let steps = "steps:\n  - {name: talk, type: script, command: 'echo begin; head -c 1000000000 /dev/zero | tr \"\\\\0\" x; echo; echo end'}\n";
    grimoire(&home, "mine", steps);
    home.sluice(&["run", "list"]).done();
    let highest = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", home.engine_pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap().to_owned();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
    };
    let before = highest();
    let began = Instant::now();
    let run = start(&home, &["mine"]).done().json()["run"].take();
    let after = highest();
    eprintln!("the engine's VmHWM: {before} kB before, {after} kB after 1 GB in {:?}", began.elapsed());
    assert!(after < before + 100_000, "{before} kB before, {after} kB after");
    let output = text(&step(&run, "talk")["output"]);
    assert!(output.len() < 2 << 20 && output.starts_with("begin\nxxx") && output.ends_with("x\nend"));
    assert!(output.contains(" bytes left out]"));
    // All of it up to the limit is in a file, and the log says where.
    let log = home.sluice(&["run", "log", text(&run["id"]), "talk"]).done().stdout;
    let first = log.lines().next().unwrap();
    let path = first.rsplit_once(" is in ").unwrap_or_else(|| panic!("{first}")).1.trim_end_matches(']');
    assert!(path.starts_with(home.place().to_str().unwrap()), "{first}");
    assert!(std::fs::metadata(path).unwrap().len() > 256 << 20, "{first}");
    assert!(log.len() < 3 << 20 && log.trim_end().ends_with("but for the end in the run]"), "{}", log.len());
}

#[test]
fn a_step_that_takes_too_long_is_ended() {
    let home = fresh();
    let steps = "steps:\n  - {name: slow, type: agent, timeout: 1s, prompt: 'demo: ignore TERM; hang'}\n  - {name: after, type: script, always: true, command: 'true'}\n";
    grimoire(&home, "mine", steps);
    let ran = start(&home, &["mine"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let run = ran.json()["run"].take();
    assert_eq!(text(&step(&run, "slow")["error"]), "it took longer than its `timeout`");
    assert_eq!(text(&step(&run, "after")["status"]), "completed", "{run:#}");
    let steps = "steps:\n  - {name: slow, type: script, timeout: 1s, command: 'tail -f /dev/null'}\n";
    grimoire(&home, "mine", steps);
    let run = start(&home, &["mine"]).json()["run"].take();
    assert_eq!(text(&run["error"]), "`slow` failed: it took longer than its `timeout`");
}

#[test]
fn an_agent_that_does_nothing_has_not_succeeded_where_something_is_asked_for() {
    let home = fresh();
    let steps = "steps:
  - {name: review, type: agent, prompt: 'demo: say I looked at it', retry: {max: 1}}
  - {name: ship, type: script, when: \"review.result == 'PASS'\", command: 'true'}
";
    grimoire(&home, "mine", steps);
    let run = start(&home, &["mine"]).json()["run"].take();
    assert_eq!(text(&run["status"]), "failed");
    let error = "it did not give `review.result`, which `ship` depends on";
    assert_eq!((text(&step(&run, "review")["error"]), &step(&run, "review")["attempt"]), (error, &2.into()));
    // Where nothing is read of it, its word is enough.
    grimoire(&home, "mine", "steps:\n  - {name: look, type: agent, prompt: 'demo: exit 0'}\n");
    assert_eq!(start(&home, &["mine"]).code, 0);
    // And a truth value that is not there is false.
    let steps = "steps:
  - {name: plan, type: agent, output: plan, prompt: 'demo: json {}'}
  - {name: go, type: script, when: '!plan.risky', command: 'true'}
";
    grimoire(&home, "mine", steps);
    let run = start(&home, &["mine"]).done().json()["run"].take();
    assert_eq!(text(&step(&run, "go")["status"]), "completed");
    assert_eq!(told(&home, text(&run["id"]), "workflow.completed").len(), 1, "{:#?}", events(&home, text(&run["id"])));
}

/// Every list and every event of a task holds its summary.
#[test]
fn a_summary_is_no_book() {
    let home = Home::new();
    let id = home.create("brew", "worker: hang", &[]);
    let served = Served::start(&home, &[]);
    let (_, person) = token(&home, &[]);
    let tasks = "/v1/lifecycle/tasks".to_owned();
    for (length, said) in [(256 << 10, "200"), ((256 << 10) + 1, "413 too_large")] {
        let body = serde_json::json!({ "summary": "y".repeat(length) }).to_string();
        assert_eq!(served.ask("PATCH", &format!("{tasks}/{id}"), Some(&person), &body).short(), said);
    }
    let body =
        serde_json::json!({ "summary": "y".repeat(4_000_000), "project": "coffee", "branch": "tea" }).to_string();
    let answer = served.ask("POST", &tasks, Some(&person), &body);
    assert_eq!(answer.short(), "413 too_large");
    let message = answer.json()["error"].as_str().unwrap().to_owned();
    assert_eq!(message, "the summary has 4000000 bytes, and a summary has at most 262144");
}
