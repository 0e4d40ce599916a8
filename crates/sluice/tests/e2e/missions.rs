//! Seed 001: a mission of five steps on the built binary, with the states of all of them after everything that happens.

use std::time::Instant;

use super::home::{Home, LONG, Pipe};
use super::recipes::{begin, events, first, fresh, show, standing, step, text, told, until_status, write};

/// The manifest of seed 001, as it stands there.
const MANIFEST: &str = r#"[workflow]
name = "dev-task"
description = "Plan, implement, review, fix, and PR"
version = "1.0.0"

[[steps]]
id = "plan"
role = "planner"
prompt_file = "do/plan.md"

[[steps]]
id = "implement"
role = "worker"
prompt_file = "do/implement.md"
depends_on = ["plan"]

[[steps]]
id = "review"
role = "reviewer"
prompt_file = "do/review.md"
depends_on = ["implement"]

[[steps]]
id = "fix"
role = "worker"
prompt_file = "do/implement.md"
depends_on = ["review"]
condition = "review.result == 'FAIL'"
max_retries = 3

[[steps]]
id = "pr"
role = "any"
prompt_file = "do/pr.md"
depends_on = ["review"]
condition = "review.result == 'PASS'"
"#;

/// A repository that has the manifest and its prompt files. Every agent waits at the pipe before it does anything;
/// `review` is what the reviewer's script says.
fn crabitat(review: &[(&str, &str)]) -> (Home, Pipe) {
    let home = fresh();
    let pipe = home.pipe("go");
    write(&home, ".sluice/workflows/dev-task.toml", MANIFEST);
    let about = "Wanted: {{mission_prompt}}\nBefore: {{context}}\nWhere: {{worktree_path}}\n";
    let prompts: [(&str, &[(&str, &str)]); 4] = [
        ("plan", &[("any", "json {\"summary\": \"first this, then that\"}")]),
        ("implement", &[("any", "commit \"work\"\njson {\"summary\": \"it is written\"}")]),
        ("review", review),
        ("pr", &[("any", "json {\"summary\": \"offered as pull request 7\"}")]),
    ];
    for (name, script) in prompts {
        let part = |(who, what): &(&str, &str)| format!("{who}:\nwait for {}\n{what}\n", pipe.path());
        let script: String = script.iter().map(part).collect();
        write(&home, &format!(".sluice/prompts/do/{name}.md"), &format!("# {name}\n\n{about}\n```demo\n{script}```\n"));
    }
    (home, pipe)
}

/// Plays a mission to its end. Says where all steps stand whenever one has begun, and at the end.
fn played(home: &Home, pipe: &Pipe) -> (String, Vec<String>) {
    let mut happening = home.follow(&[]);
    let id = begin(home, &["dev-task", "--prompt", "Fix issue #6"]);
    let give_up = Instant::now() + LONG;
    let mut seen = Vec::new();
    while let Some(event) = happening.next(give_up) {
        match text(&event["type"]) {
            "step.started" => {
                seen.push(standing(&show(home, &id)));
                pipe.let_go();
            }
            "run.completed" | "run.failed" => {
                let run = show(home, &id);
                seen.push(format!("{}: {}", text(&run["status"]), standing(&run)));
                return (id, seen);
            }
            _ => {}
        }
    }
    panic!("nothing more happens: {:#}", show(home, &id));
}

#[test]
fn a_review_that_passes_leads_to_a_pull_request() {
    let (home, pipe) = crabitat(&[("any", "review pass")]);
    let (id, seen) = played(&home, &pipe);
    assert_eq!(
        seen,
        [
            "plan running, implement waiting, review waiting, fix waiting, pr waiting",
            "plan completed, implement running, review waiting, fix waiting, pr waiting",
            "plan completed, implement completed, review running, fix waiting, pr waiting",
            "plan completed, implement completed, review completed, fix skipped, pr running",
            "completed: plan completed, implement completed, review completed, fix skipped, pr completed",
        ]
    );
    let run = show(&home, &id);
    assert_eq!((text(&run["kind"]), text(&run["recipe"])), ("mission", "dev-task"));
    assert_eq!(text(&step(&run, "review")["result"]), "PASS");
    assert_eq!(
        told(&home, &id, "run."),
        ["run.started", "run.completed"],
        "a mission is told as a run: {:?}",
        told(&home, &id, "")
    );
}

#[test]
fn after_a_fail_the_work_is_fixed_and_judged_again() {
    let (home, pipe) = crabitat(&[("any 1", "review fail \"line 3 is wrong\""), ("any", "review pass")]);
    let (id, seen) = played(&home, &pipe);
    assert_eq!(
        seen,
        [
            "plan running, implement waiting, review waiting, fix waiting, pr waiting",
            "plan completed, implement running, review waiting, fix waiting, pr waiting",
            "plan completed, implement completed, review running, fix waiting, pr waiting",
            "plan completed, implement completed, review completed, fix running, pr waiting",
            "plan completed, implement completed, review running, fix waiting, pr waiting",
            "plan completed, implement completed, review completed, fix skipped, pr running",
            "completed: plan completed, implement completed, review completed, fix skipped, pr completed",
        ]
    );
    let run = show(&home, &id);
    assert_eq!((&step(&run, "review")["round"], &step(&run, "review")["attempt"]), (&1.into(), &2.into()), "{run:#}");
    assert_eq!(first(&home, &id, "run.looped")["data"]["to"], "review");
}

#[test]
fn a_mission_whose_review_never_passes_fails_when_its_retries_are_used_up() {
    let (home, pipe) = crabitat(&[("any", "review fail \"still wrong\"")]);
    let (id, seen) = played(&home, &pipe);
    let fixes = seen.iter().filter(|standing| standing.contains("fix running")).count();
    let reviews = seen.iter().filter(|standing| standing.contains("review running")).count();
    assert_eq!((fixes, reviews), (3, 4), "{seen:#?}");
    let (last, before) = seen.split_last().unwrap();
    assert!(before.iter().all(|standing| standing.ends_with("pr waiting")), "{seen:#?}");
    assert!(last.ends_with("pr skipped"), "{last}");
    let run = show(&home, &id);
    assert_eq!(text(&run["status"]), "failed");
    assert!(text(&run["error"]).contains("loop_exhausted"), "{run:#}");
    assert_eq!(text(&step(&run, "fix")["status"]), "failed");
    assert_eq!(home.sluice(&["run", "follow", &id]).code, 1);
}

#[test]
fn what_was_done_before_is_told_to_those_who_come_after() {
    let (home, pipe) = crabitat(&[("any 1", "review fail \"line 3 is wrong\""), ("any", "review pass")]);
    let (id, _) = played(&home, &pipe);
    let run = show(&home, &id);
    let context = |step: &str| home.sluice(&["run", "context", &id, step]).done().stdout;
    assert_eq!(context("plan"), "");
    assert_eq!(context("implement"), "## plan\n\nfirst this, then that\n");
    let before_review = context("review");
    assert!(before_review.contains("## implement\n\nit is written\n"), "{before_review}");
    assert!(before_review.contains("## fix\n\nit is written\n"), "the newest fix is part of it: {before_review}");
    assert!(context("pr").contains("## review"), "{}", context("pr"));
    // The prompts as the agents got them.
    let prompt = |step: u32, attempt: u32| {
        let private = home.place().join("sessions/attempts").join(format!("{id}.{step}.{attempt}.whole"));
        std::fs::read_to_string(private.join("stdin")).unwrap_or_else(|error| panic!("{}: {error}", private.display()))
    };
    let workspace = text(&run["workspace"]);
    assert!(workspace.starts_with(home.place().join("runs").to_str().unwrap()), "{workspace}");
    let implement = prompt(1, 1);
    assert!(implement.contains("Wanted: Fix issue #6\n"), "{implement}");
    assert!(implement.contains("Before: ## plan\n\nfirst this, then that\n"), "{implement}");
    assert!(implement.contains(&format!("Where: {workspace}\n")), "{implement}");
    let fix = prompt(3, 1);
    assert!(fix.contains("line 3 is wrong"), "{fix}");
    assert!(!prompt(0, 1).contains("{{"), "{}", prompt(0, 1));
}

#[test]
fn retry_with_guidance_reaches_the_prompt() {
    let (home, pipe) = crabitat(&[("any 1", "exit 3"), ("any", "review pass")]);
    let (id, seen) = played(&home, &pipe);
    assert!(seen.last().unwrap().starts_with("failed"), "{seen:#?}");
    assert_eq!(text(&step(&show(&home, &id), "pr")["status"]), "failed");
    home.json(&["run", "retry", &id, "review", "--message", "Look at line 3 first"]);
    pipe.let_go();
    home.until_event(&id, "step.started", 5);
    pipe.let_go();
    let run = until_status(&home, &id, "completed");
    assert_eq!(standing(&run), "plan completed, implement completed, review completed, fix skipped, pr completed");
    let prompt = home.place().join("sessions/attempts").join(format!("{id}.2.2.whole")).join("stdin");
    let prompt = std::fs::read_to_string(prompt).unwrap();
    assert!(prompt.contains("## Guidance\n\nLook at line 3 first\n"), "{prompt}");
    let plans =
        events(&home, &id).iter().filter(|it| it["type"] == "step.started" && it["data"]["step_id"] == "plan").count();
    assert_eq!(plans, 1, "what was done is not done again");
}
