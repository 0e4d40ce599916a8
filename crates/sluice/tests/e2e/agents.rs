//! What an agent may do from inside its session, and what it may not, however it asks. The agent is a shell script.

use super::home::{Home, run};

/// Asks `sluice`, and writes `what: exit-code error-code` into a log.
const ASK: &str = r#"
ask() {
    what="$1"; shift
    "$@" --json > "$OUT/answer" 2>&1
    code=$?
    why=''
    [ $code = 0 ] || why=$(sed -n 's/.*"code": "\([a-z_]*\)".*/\1/p' "$OUT/answer" | head -1)
    printf '%s: %s %s\n' "$what" "$code" "$why" | sed 's/ $//' >> "$OUT/log"
}
"#;

/// A home whose harness `shell` runs a script, which is written later.
fn home_with_shell() -> Home {
    let home = Home::empty();
    std::fs::create_dir(home.place()).unwrap();
    let script = home.path("agent.sh").display().to_string();
    let config = format!("[harnesses.shell]\ninteractive = [\"/bin/sh\", {script:?}, \"{{prompt}}\"]\n");
    std::fs::write(home.place().join("config.toml"), config).unwrap();
    home.sluice(&["project", "add"]).done();
    home
}

/// What its agents do. `$OUT` is the test's folder.
fn set_script(home: &Home, script: &str) {
    let out = home.path("").display().to_string();
    std::fs::write(home.path("agent.sh"), format!("OUT={out:?}\n{ASK}\n{script}")).unwrap();
}

fn log(home: &Home) -> String {
    std::fs::read_to_string(home.path("log")).unwrap_or_default()
}

fn shell(home: &Home, branch: &str, more: &[&str]) -> String {
    let first = ["task", "create", branch, "Do it", "--harness", "shell", "--review-harness", "demo"];
    let answer = home.json(&[&first, more].concat());
    answer["task"]["id"].as_str().unwrap().to_owned()
}

#[test]
fn whoever_asks_for_its_own_end_is_answered_first() {
    let home = home_with_shell();
    // What is written after the answer comes from the shell itself: it hears that it shall end as soon as it has one.
    let script = r#"
        trap 'over=yes' TERM
        printf '\n## Handoff\n\nDONE: brewed\n' >> TASK.md
        sluice task update --status agent-review
        echo "answered $?" >> "$OUT/log"
        while [ -z "$over" ]; do read -r line || break; done
        exit 0
    "#;
    set_script(&home, script);
    let id = shell(&home, "brew", &["--context", "## Context\n\n```demo\nreviewer: hang\n```"]);
    home.until_status(&id, "agent-review");
    assert_eq!(log(&home), "answered 0\n");
    let task = home.task(&id);
    assert_eq!((&task["session"], &task["review_round"]), (&"active".into(), &1.into()));
    let ended: Vec<_> = home.history(&id).into_iter().filter(|event| event["type"] == "session.ended").collect();
    assert_eq!((ended.len(), &ended[0]["data"]["session"]), (1, &"s1".into()));
    assert_eq!(home.windows(), ["coffee/brew:review-1"]);
}

#[test]
fn an_agent_renames_its_own_branch_and_no_other() {
    let home = home_with_shell();
    home.git(&["branch", "somebodys"]);
    let other = home.create("other", "worker: hang", &[]);
    let here = home.pipe("here");
    let script = r#"
        ask "another's" sluice task update OTHER --branch mine
        ask "to the default branch" sluice task update --branch main
        ask "to somebody's" sluice task update --branch somebodys
        ask "to another task's" sluice task update --branch other
        git checkout -q --ignore-other-worktrees main
        ask "to where it stands" sluice task update --branch
        git checkout -q brew
        ask "its own" sluice task update --branch tea
        echo > HERE
        read -r line
    "#;
    set_script(&home, &script.replace("OTHER", &other).replace("HERE", here.path()));
    let id = shell(&home, "brew", &[]);
    here.hear();
    insta::assert_snapshot!(log(&home), @"
    another's: 4 not_yours
    to the default branch: 4 not_yours
    to somebody's: 4 not_yours
    to another task's: 4 not_yours
    to where it stands: 4 not_yours
    its own: 0
    ");
    assert_eq!(home.git(&["branch", "--format=%(refname:short)"]), "main\nother\nsomebodys\ntea");
    assert_eq!(home.git(&["branch", "--show-current"]), "main");
    assert_eq!((&home.task(&id)["branch"], &home.task(&other)["branch"]), (&"tea".into(), &"other".into()));
    // For a person the default branch and another task's are nobody's to take either.
    for name in ["main", "other"] {
        assert_eq!(home.refused(&["task", "update", &id, "--branch", name]), "4 not_yours");
    }
    assert_eq!(home.json(&["task", "update", &id, "--branch", "somebodys"])["task"]["branch"], "somebodys");
}

/// What it takes it can rename.
#[test]
fn an_agent_takes_no_branch_that_may_be_older_than_its_task() {
    let home = home_with_shell();
    for name in ["victim", "adopted"] {
        let mut old = home.program("git");
        old.current_dir(home.repository()).env("GIT_COMMITTER_DATE", "2020-01-01T00:00:00Z").args(["branch", name]);
        run(&mut old).done();
    }
    home.git(&["-c", "core.logAllRefUpdates=false", "branch", "unlogged"]);
    home.git(&["remote", "add", "origin", home.path("nowhere").to_str().unwrap()]);
    home.git(&["update-ref", "refs/remotes/origin/theirs", "main"]);
    let here = home.pipe("here");
    let script = r#"
        git checkout -q victim
        ask "where it stands" sluice task update --branch
        ask "by its name" sluice task update --branch victim
        git checkout -q unlogged
        ask "without a log" sluice task update --branch
        git checkout -q -b theirs origin/theirs
        ask "a remote's" sluice task update --branch
        git checkout -q -b tea main
        ask "a new one" sluice task update --branch
        ask "renames that" sluice task update --branch coffee
        echo > HERE
        read -r line
    "#;
    set_script(&home, &script.replace("HERE", here.path()));
    let id = shell(&home, "brew", &[]);
    here.hear();
    insta::assert_snapshot!(log(&home), @"
    where it stands: 4 not_yours
    by its name: 4 not_yours
    without a log: 4 not_yours
    a remote's: 4 not_yours
    a new one: 0
    renames that: 0
    ");
    let branches = home.git(&["branch", "--format=%(refname:short)"]);
    assert_eq!(branches, "adopted\nbrew\ncoffee\nmain\ntheirs\nunlogged\nvictim");
    let denied = home.sluice(&["events", "--type", "access.denied", "--json"]).done().stdout;
    assert_eq!(denied.lines().filter(|line| line.contains(&format!("session:{id}.1"))).count(), 4, "{denied}");
    // A person may.
    assert_eq!(home.json(&["task", "update", &id, "--branch", "victim"])["task"]["branch"], "victim");
    // What a person gave to the task the agent may rename, also by itself.
    let script = r#"
        git branch -m adopted renamed
        ask "renamed by git" sluice task update --branch
        echo > HERE
        read -r line
    "#;
    set_script(&home, &script.replace("HERE", here.path()));
    let id = shell(&home, "adopted", &[]);
    here.hear();
    assert_eq!(log(&home).lines().last(), Some("renamed by git: 0"));
    assert_eq!(home.task(&id)["branch"], "renamed");
}

#[test]
fn what_is_a_persons_is_refused_to_an_agent() {
    let home = home_with_shell();
    let other = home.create("other", "worker: hang", &[]);
    let here = home.pipe("here");
    let script = r#"
        ask "move another" sluice task update OTHER --status stuck
        ask "rename another" sluice task update OTHER --summary mine
        ask "cancel another" sluice task cancel OTHER --yes
        ask "spawn another" sluice task spawn OTHER
        ask "respawn another" sluice task respawn OTHER
        ask "delete another" sluice task delete OTHER --yes
        ask "nudge another" sluice task nudge OTHER hello
        ask "merge" sluice task merge "$SLUICE_TASK" --local
        ask "merge by force" sluice task merge "$SLUICE_TASK" --local --force
        ask "delete" sluice task delete "$SLUICE_TASK" --yes
        ask "pull request" sluice task create-pr "$SLUICE_TASK"
        ask "create" sluice task create tea Tea --harness demo
        ask "project add" sluice project add "$OUT/coffee" --name mine
        ask "project update" sluice project update coffee --pool-size 9
        ask "project remove" sluice project remove coffee
        ask "project import" sluice project import "$OUT/projects.json"
        ask "workspace init" sluice workspace init
        ask "workspace gc" sluice workspace gc
        ask "backup" sluice backup "$OUT/copy.db"
        ask "stop" sluice stop
        ask "look at another" sluice task show OTHER
        ask "its own summary" sluice task update --summary "Do it well"
        echo > HERE
        read -r line
    "#;
    std::fs::write(home.path("projects.json"), "[]").unwrap();
    set_script(&home, &script.replace("OTHER", &other).replace("HERE", here.path()));
    let id = shell(&home, "brew", &[]);
    here.hear();
    insta::assert_snapshot!(log(&home), @"
    move another: 4 not_yours
    rename another: 4 not_yours
    cancel another: 4 not_yours
    spawn another: 4 not_yours
    respawn another: 4 not_yours
    delete another: 4 not_yours
    nudge another: 4 not_yours
    merge: 4 not_yours
    merge by force: 4 not_yours
    delete: 4 not_yours
    pull request: 4 not_yours
    create: 4 not_yours
    project add: 4 not_yours
    project update: 4 not_yours
    project remove: 4 not_yours
    project import: 4 not_yours
    workspace init: 4 not_yours
    workspace gc: 4 not_yours
    backup: 4 not_yours
    stop: 4 not_yours
    look at another: 0
    its own summary: 0
    ");
    assert_eq!(home.task(&id)["summary"], "Do it well");
    let other = home.task(&other);
    assert_eq!(
        (&other["status"], &other["session"], &other["summary"]),
        (&"working".into(), &"active".into(), &"Do other".into())
    );
}

/// Without a gate an agent may say that it is stuck and ask questions; to start agents or to end the task is a person's.
#[test]
fn an_agent_takes_no_transition_that_starts_an_agent_or_ends_its_task() {
    let home = home_with_shell();
    let here = home.pipe("here");
    let script = r#"
        ask "asks a question" sluice task update --status clarification
        ask "goes on" sluice task update --status working
        ask "gives up" sluice task update --status cancelled
        ask "is stuck" sluice task update --status stuck
        ask "starts a worker" sluice task update --status working
        ask "starts a reviewer" sluice task update --status agent-review
        ask "gives up while stuck" sluice task update --status cancelled
        echo > HERE
        read -r line
    "#;
    set_script(&home, &script.replace("HERE", here.path()));
    let id = shell(&home, "brew", &[]);
    here.hear();
    insta::assert_snapshot!(log(&home), @"
    asks a question: 0
    goes on: 0
    gives up: 4 not_yours
    is stuck: 0
    starts a worker: 4 not_yours
    starts a reviewer: 4 not_yours
    gives up while stuck: 4 not_yours
    ");
    let started = home.history(&id).into_iter().filter(|event| event["type"] == "agent.spawned").count();
    assert_eq!((started, &home.task(&id)["status"]), (1, &"stuck".into()));
}

/// In `persistent` the worker hears that its review passed, and cannot call its own task back.
#[test]
fn a_persistent_worker_hears_of_pass_and_waits_for_the_person() {
    let home = home_with_shell();
    let here = home.pipe("here");
    let script = r#"
        printf '\n## Plan\n\nAPPROACH: heat\nTOUCHING: water\n\n## Handoff\n\nDONE: brewed\n' >> TASK.md
        sluice task update --status working && sluice task update --status agent-review
        while read -r line; do
            case "$line" in *passed*) printf '%s\n' "$line" | grep -o 'Review round 1 passed' >> "$OUT/log"; break;; esac
        done
        ask "calls it back" sluice task update --status working
        echo > HERE
        read -r line
    "#;
    set_script(&home, &script.replace("HERE", here.path()));
    let context = ["--workflow", "persistent", "--context", "## Context\n\n```demo\nreviewer: review pass\n```"];
    let id = shell(&home, "brew", &context);
    here.hear();
    insta::assert_snapshot!(log(&home), @"
    Review round 1 passed
    calls it back: 4 not_yours
    ");
    assert_eq!(home.task(&id)["status"], "reviewing");
}

#[test]
fn an_agent_is_known_whatever_it_forgets_and_wherever_it_goes() {
    let home = home_with_shell();
    let other = home.create("other", "worker: hang", &[]);
    let (here, inner) = (home.pipe("here"), home.pipe("inner"));
    let script = r#"
        bare="env -i PATH=$PATH SLUICE_HOME=$SLUICE_HOME"
        ask "without its token" env -u SLUICE_TOKEN sluice task update OTHER --status stuck
        ask "without its task" env -u SLUICE_TASK sluice task update OTHER --status stuck
        ask "as another task" env SLUICE_TASK=OTHER sluice task update --status stuck
        ask "without anything" $bare sluice task update OTHER --status stuck
        ask "in a session of its own" $bare setsid -w sluice task create tea Tea --harness demo
        export OUT bare
        cat > "$OUT/orphan.sh" <<'END'
        $bare sluice task update OTHER --status stuck --json > "$OUT/orphan" 2>&1
        printf 'as an orphan: %s\n' $? >> "$OUT/log"
        echo > INNER
END
        $bare OUT="$OUT" bare="$bare" setsid -f sh -c 'setsid -f sh "$OUT/orphan.sh"' < /dev/null
        cat INNER
        ask "it is still itself" $bare sluice task update --summary "Found by its process"
        echo > HERE
        read -r line
    "#;
    let script = script.replace("OTHER", &other).replace("HERE", here.path()).replace("INNER", inner.path());
    set_script(&home, &script);
    let id = shell(&home, "brew", &[]);
    here.hear();
    insta::assert_snapshot!(log(&home), @"
    without its token: 4 not_yours
    without its task: 4 not_yours
    as another task: 4 not_yours
    without anything: 4 not_yours
    in a session of its own: 4 not_yours
    as an orphan: 4
    it is still itself: 0
    ");
    assert_eq!(home.task(&other)["status"], "working");
    assert_eq!(home.task(&id)["summary"], "Found by its process");
}

#[test]
fn a_worker_does_not_judge_itself_and_does_not_close_its_task() {
    let home = home_with_shell();
    let (here, on) = (home.pipe("here"), home.pipe("on"));
    let script = r#"
        printf '\n## Plan\n\nAPPROACH: heat\n' >> TASK.md
        ask "working" sluice task update --status working
        printf '\n## Handoff\n\nDONE: brewed\n' >> TASK.md
        ask "agent-review" sluice task update --status agent-review
        printf '\n## Review\n\nVerdict: PASS\n' >> TASK.md
        ask "its own verdict" sluice task update --status reviewing
        echo > HERE
        cat GO_ON
        ask "close it" sluice task update --status done
        ask "merge it" sluice task merge "$SLUICE_TASK"
        echo > HERE
        read -r line
    "#;
    set_script(&home, &script.replace("HERE", here.path()).replace("GO_ON", on.path()));
    let id =
        shell(&home, "brew", &["--workflow", "persistent", "--context", "## Context\n\n```demo\nreviewer: hang\n```"]);
    here.hear();
    assert_eq!(home.task(&id)["status"], "agent-review");
    // A person may.
    home.json(&["task", "update", &id, "--status", "reviewing"]);
    on.let_go();
    here.hear();
    insta::assert_snapshot!(log(&home), @"
    working: 0
    agent-review: 0
    its own verdict: 4 not_yours
    close it: 4 not_yours
    merge it: 4 not_yours
    ");
    assert_eq!(home.task(&id)["status"], "reviewing");
}

#[test]
fn the_other_names_of_the_program_are_on_an_agents_path() {
    let home = home_with_shell();
    let here = home.pipe("here");
    let script = r#"
        ask "orange" orange task show "$SLUICE_TASK"
        ask "orange update" orange task update --summary "Said by orange"
        ask "wo" wo --version
        echo > HERE
        read -r line
    "#;
    set_script(&home, &script.replace("HERE", here.path()));
    let id = shell(&home, "brew", &[]);
    here.hear();
    assert_eq!(log(&home), "orange: 0\norange update: 0\nwo: 0\n");
    assert_eq!(home.task(&id)["summary"], "Said by orange");
    let orange = home.place().join("bin/orange");
    let ran = run(home.program(orange).args(["task", "list"])).done();
    assert!(ran.stdout.contains("Said by orange"), "{ran:?}");
}
