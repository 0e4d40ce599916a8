//! Definitions that were pinned: the stored form never changes unseen, and what was started goes on.

use sluice_core::problem::Severity;
use sluice_dialect::pin::{DefinitionPin, PinError};
use sluice_dialect::prompts::{NoPrompts, PromptLookup, PromptSource};
use sluice_dialect::{DefinitionFile, LoadedDefinition, Sources, load};

const RECIPE: &str = "\u{FEFF}name: greet\nsteps:\n  - {name: hello, prompt_file: do/hello.md}\n  \
                      - {name: again, prompt_file: do/hello.md}\n  - {name: bye, prompt_file: do/gone.md}\n";

/// One prompt file.
struct Hello;

impl PromptSource for Hello {
    fn find(&mut self, written: &str) -> PromptLookup {
        match written {
            "do/hello.md" => {
                PromptLookup::File { shown: "prompts/hello.md".into(), bytes: b"Say \"hi\" to ${input.who}\n".into() }
            }
            _ => PromptLookup::Missing("it is not there".into()),
        }
    }
}

fn pinned(path: &str, text: &str) -> (LoadedDefinition, DefinitionPin) {
    let source = DefinitionFile { path, bytes: text.as_bytes() };
    let loaded = load(&source, &mut Hello, &mut Sources::new());
    let pinned = DefinitionPin::of(&source, &loaded).unwrap_or_else(|| panic!("{:#?}", loaded.problems));
    (loaded, pinned)
}

/// Golden: tasks and runs that were started by an older Sluice have this in their record.
#[test]
fn the_stored_form() {
    let (loaded, pinned) = pinned("/home/me/.sluice/workflows/greet.yml", RECIPE);
    assert_eq!(loaded.prompts.len(), 1, "a file that two steps share is kept once");
    let stored = String::from_utf8(pinned.to_bytes()).unwrap();
    insta::assert_snapshot!("pinned-v1", format!("{stored}\n{}", pinned.digest()));
}

#[test]
fn it_is_the_same_without_files_and_wherever_it_lay() {
    let (loaded, one) = pinned("/home/me/.sluice/workflows/greet.yml", RECIPE);
    let (_, other) = pinned("greet.yml", RECIPE);
    assert_eq!(one.digest(), other.digest());
    let again = DefinitionPin::from_bytes(&one.to_bytes()).unwrap();
    assert_eq!(again, one);
    assert_eq!(again.load().definition, loaded.definition);
    assert_ne!(pinned("greet.yml", &RECIPE.replace("again", "twice")).1.digest(), one.digest());
}

#[test]
fn what_is_no_pinned_definition_is_refused() {
    let damaged = |bytes: &[u8]| DefinitionPin::from_bytes(bytes).unwrap_err().to_string();
    assert_eq!(DefinitionPin::from_bytes(br#"{"version": 2}"#), Err(PinError::Version(2)));
    assert_eq!(damaged(b"{"), "a pinned definition is damaged: it is not a JSON object");
    assert_eq!(damaged(b"{}"), "a pinned definition is damaged: it has no `version`");
    assert_eq!(
        damaged(br#"{"version": 1, "name": "a", "text": ""}"#),
        "a pinned definition is damaged: its `prompts` cannot be read"
    );
}

/// Errors that a stricter check may find one day in what is already at work. There is a definition all the same.
#[test]
fn errors_that_leave_no_hole_do_not_take_the_definition_away() {
    let lifecycle = |transitions: &str| {
        format!("name: t\nstates: {{pending: {{}}, a: {{}}, done: {{terminal: true}}}}\ntransitions:\n{transitions}")
    };
    let step = |rest: &str| {
        format!("name: t\nsteps:\n  - {{name: one, type: script, command: x}}\n  - {{name: two, {rest}}}\n")
    };
    let made = [
        (
            "an overlap",
            "S0107",
            lifecycle("  - {from: pending, to: a}\n  - {from: pending, to: a}\n  - {from: a, to: done}\n"),
        ),
        ("no way out", "S0112", lifecycle("  - {from: pending, to: a}\n  - {from: pending, to: done}\n")),
        (
            "a terminal state is left",
            "S0103",
            lifecycle("  - {from: pending, to: done}\n  - {from: done, to: a}\n  - {from: a, to: done}\n"),
        ),
        ("an unknown variable", "S0301", step("type: script, command: \"echo ${nothing}\"")),
        ("a value that is never given", "S0206", step("type: script, command: x, when: \"one.status == 'great'\"")),
        ("an unknown key", "S0007", step("type: script, command: x, colour: red")),
        ("a reserved name", "S0011", step("type: script, command: x, output: run")),
    ];
    for (what, code, text) in made {
        let (loaded, pinned) = pinned("t.yml", &text);
        assert!(loaded.problems.iter().any(|it| it.code.as_str() == code), "{what}: {:#?}", loaded.problems);
        assert!(!loaded.is_usable(), "{what}: it must not be started");
        assert!(pinned.load().definition.is_some(), "{what}: what is at work goes on");
    }
    let holes = [
        ("an unknown state", lifecycle("  - {from: pending, to: b}\n")),
        (
            "a guard that cannot be read",
            lifecycle("  - {from: pending, to: a, when: \"x <\"}\n  - {from: a, to: done}\n"),
        ),
        ("an unknown need", step("type: script, command: x, needs: [three]")),
        ("a cycle", step("type: script, command: x, needs: [two]")),
        (
            "a misspelt key of a hook",
            lifecycle(
                "  - {from: pending, to: done, hooks: [{action: notify, mesage: x}]}\n  - {from: pending, to: a}\n  - {from: a, to: done}\n",
            ),
        ),
        ("a wrong type", step("type: script, command: [x]")),
        (
            "a misspelt hook",
            lifecycle(
                "  - {from: pending, to: done, hooks: [{action: spwan}]}\n  - {from: pending, to: a}\n  - {from: a, to: done}\n",
            ),
        ),
    ];
    for (what, text) in holes {
        let loaded =
            load(&DefinitionFile { path: "t.yml", bytes: text.as_bytes() }, &mut NoPrompts, &mut Sources::new());
        assert!(loaded.count(Severity::Error) > 0 && loaded.definition.is_none(), "{what}: {:#?}", loaded.problems);
    }
}
