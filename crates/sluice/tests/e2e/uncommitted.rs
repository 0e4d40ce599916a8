//! What the engine starts by itself is what the default branch's commit or the home has, and only then what lies in the
//! checkout. An agent writes recipes there and onto its branch, to act for a person or to judge its own work: in vain.

use serde_json::Value;

use super::home::Home;
use super::recipes::{begin, grimoire, show, text, until, until_status, with_shell, write};
use super::state_runs::{CHECKED, checked};
use super::triggers::{all_was_looked_at_by, count};

/// A home with a project in which a gate waits for a person.
fn held() -> (Home, String) {
    let home = Home::new();
    with_shell(&home);
    grimoire(&home, "guarded", "steps:\n  - {name: check, type: gate, command: 'false', message: 'Really?'}\n");
    let held = begin(&home, &["guarded"]);
    until_status(&home, &held, "held");
    (home, held)
}

/// A recipe that answers the gate when a task is created.
fn evil(held: &str) -> String {
    let step = format!("{{name: one, type: script, command: sluice answer {held} skip, acts_as: person}}");
    format!("name: evil\ndescription: mine\ntrigger: {{event: task.created}}\nsteps:\n  - {step}\n")
}

#[test]
fn a_recipe_that_only_lies_in_the_checkout_or_on_a_branch_hears_no_event() {
    let (home, held) = held();
    write(&home, ".sluice/workflows/evil.yml", &evil(&held));
    home.create("first", "worker: hang", &["--no-spawn"]);
    all_was_looked_at_by(&home, "mark-one");
    assert_eq!(count(&home, "evil"), 0);
    let log = std::fs::read_to_string(home.place().join("logs/engine.log")).unwrap();
    assert!(log.contains("evil.yml waits for events in vain"), "{log}");
    // On another branch, which is even checked out where the project is.
    home.git(&["checkout", "--quiet", "-b", "mine"]);
    home.commit();
    home.create("second", "worker: hang", &["--no-spawn"]);
    all_was_looked_at_by(&home, "mark-two");
    // Dressed up as what the default branch has: git is told to take one object for another.
    home.git(&["replace", "main", "mine"]);
    home.create("third", "worker: hang", &["--no-spawn"]);
    all_was_looked_at_by(&home, "mark-three");
    home.git(&["replace", "--delete", "main"]);
    assert_eq!((count(&home, "evil"), &show(&home, &held)["status"]), (0, &"held".into()));
    // A person who merges it wants it.
    home.git(&["checkout", "--quiet", "main"]);
    home.git(&["merge", "--quiet", "--ff-only", "mine"]);
    home.create("fourth", "worker: hang", &["--no-spawn"]);
    until(&home, &held, |run| run["status"] == "completed");
    assert_eq!(count(&home, "evil"), 1);
}

/// The recipe that judges the work, with this command.
fn judge(home: &Home, command: &str) {
    let head = "name: verify\ninput: [{name: branch}]\nsteps:\n";
    let step = format!("  - {{name: check, type: script, command: '{command}'}}\n");
    write(home, ".sluice/workflows/verify.yml", &format!("{head}{step}"));
}

#[test]
fn an_agent_does_not_replace_the_recipe_that_judges_its_work() {
    let home = Home::new();
    checked(&home, "true");
    std::fs::remove_file(home.place().join("workflows/verify.yml")).unwrap();
    judge(&home, "test -e approved");
    home.commit();
    let (told, go) = (home.pipe("told"), home.pipe("go"));
    let script = format!("worker: tell {}; wait for {}; work", told.path(), go.path());
    let id = home.create("brew", &script, &["--workflow", CHECKED]);
    told.hear();
    judge(&home, "true");
    go.let_go();
    let run = text(&home.until_event(&id, "task.run_started", 1)["data"]["run_id"]).to_owned();
    let run = until_status(&home, &run, "failed");
    let definition = text(&run["definition"]).to_owned();
    assert!(definition.starts_with(".sluice/workflows/verify.yml in the commit "), "{definition}");
    assert!(definition.contains("the file in the checkout is another one"), "{definition}");
    let shown = home.sluice(&["run", "show", text(&run["id"])]).done().stdout;
    assert!(shown.contains(&definition), "{shown}");
    home.sluice(&["task", "cancel", &id, "--yes"]).done();
}

#[test]
fn what_follows_a_run_and_what_a_step_creates_is_read_in_the_commit_too() {
    let (home, held) = held();
    let steps =
        "steps:\n  - {name: one, type: script, command: 'true'}\non_complete:\n  - {action: start, recipe: next}\n";
    grimoire(&home, "first", steps);
    grimoire(&home, "next", "steps:\n  - {name: one, prompt_file: say.md, harness: shell}\n");
    write(&home, ".coven/prompts/say.md", "echo committed");
    until_status(&home, &begin(&home, &["first"]), "completed");
    let next = super::triggers::until_ended(&home, "next");
    assert!(text(&next["definition"]).contains("in the checkout; it is not in the commit"), "{next:#}");
    home.commit();
    // What an agent makes of it, and of its prompt, in the checkout does not count.
    let answer =
        format!("steps:\n  - {{name: one, type: script, command: sluice answer {held} skip, acts_as: person}}\n");
    grimoire(&home, "next", &answer);
    write(&home, ".coven/prompts/say.md", "echo another");
    let first = begin(&home, &["first"]);
    until_status(&home, &first, "completed");
    let settled = home.until_event(&first, "effect.settled", 1);
    assert!(settled["data"]["error"].is_null(), "{settled:#}");
    let of_commit = |run: &Value| text(&run["definition"]).contains("in the commit ");
    let runs = || home.json(&["run", "list", "--all"])["runs"].as_array().unwrap().clone();
    let next = runs().into_iter().find(|run| run["recipe"] == "next" && of_commit(&show(&home, text(&run["id"]))));
    let next = until_status(&home, text(&next.unwrap()["id"]), "completed");
    assert_eq!(text(&next["steps"][0]["output"]).trim(), "committed", "{next:#}");
    assert_eq!(show(&home, &held)["status"], Value::from("held"));
}

#[test]
fn in_a_folder_without_git_the_homes_recipes_come_first() {
    let home = Home::empty();
    with_shell(&home);
    let folder = home.path("plain");
    let recipes = folder.join(".sluice/workflows");
    std::fs::create_dir_all(&recipes).unwrap();
    let first = "name: first\nsteps: [{name: a, type: script, command: 'true'}]\non_complete: [{action: start, recipe: next}]\n";
    std::fs::write(recipes.join("first.yml"), first).unwrap();
    let next = |word: &str| format!("name: next\nsteps: [{{name: a, type: script, command: 'echo {word}'}}]\n");
    std::fs::write(recipes.join("next.yml"), next("folder")).unwrap();
    let start = || super::home::run(home.command(&["start", "first", "--json"]).current_dir(&folder)).done().json();
    let outputs = || {
        let runs = home.json(&["run", "list", "--all"])["runs"].as_array().unwrap().clone();
        let next = runs.iter().filter(|run| run["recipe"] == "next").map(|run| text(&run["id"]).to_owned());
        let ended = next.map(|id| until_status(&home, &id, "completed"));
        ended.map(|run| text(&run["steps"][0]["output"]).to_owned()).collect::<Vec<_>>()
    };
    let follows = || {
        let id = text(&start()["run"]["id"]).to_owned();
        home.until_event(&id, "effect.settled", 1);
    };
    follows();
    assert_eq!(outputs(), ["folder"]);
    let mine = home.place().join("workflows");
    std::fs::create_dir_all(&mine).unwrap();
    std::fs::write(mine.join("next.yml"), next("home")).unwrap();
    follows();
    assert!(outputs().iter().any(|output| output == "home"), "{:?}", outputs());
}
