//! Every action of the table can be written in a lifecycle, and comes out of it as what it is.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use sluice_core::lifecycle::action::{PlainAction, TaskAction};
use sluice_dialect::format::DefinitionFormat;
use sluice_dialect::prompts::NoPrompts;
use sluice_dialect::shape::{Field, FieldKind, Shape};
use sluice_dialect::{Definition, DefinitionFile, Sources, load};

/// The shape of a hook.
fn hook() -> &'static Shape {
    let table = |shape: &'static Shape, key: &str| match &shape.field(key).unwrap().kind {
        FieldKind::List(FieldKind::Table(inner)) => *inner,
        _ => panic!("`{key}` is no list of tables"),
    };
    table(table(DefinitionFormat::Lifecycle.shape(), "transitions"), "hooks")
}

/// The keys that go with an action and no other.
fn keys(action: &str) -> Vec<&'static Field> {
    hook().fields().filter(|field| field.only.contains(&action)).collect()
}

#[test]
fn a_plain_action_has_the_keys_of_the_table() {
    for action in PlainAction::ALL {
        let described: Vec<&str> = keys(action.word()).iter().map(|field| field.key).collect();
        assert_eq!(described, action.keys(), "`{}`: HOOK in format/lifecycle.rs describes other keys", action.word());
        for field in keys(action.word()) {
            assert!(field.required && matches!(field.kind, FieldKind::Text), "`{}` must be a text", field.key);
        }
    }
}

/// Without a form a schema takes any text, an empty one too, and an editor does not say what `sluice check` will.
#[test]
fn a_text_of_a_hook_says_how_it_is_written() {
    /// The names of prompts, which may be written in any way, and the message that replaces the engine's own words.
    const FREE: [(&str, &[&str]); 3] =
        [("prompt", &["spawn_agent"]), ("prompt", &["spawn_reviewer"]), ("message", &["notify_worker"])];
    let texts = hook().fields().filter(|field| matches!(field.kind, FieldKind::Text));
    for field in texts.filter(|field| !FREE.contains(&(field.key, field.only))) {
        let which = format!("`{}` of {:?}", field.key, field.only);
        assert!(!field.forms.is_empty(), "{which}: HOOK in format/lifecycle.rs gives it no `.form(…)`");
    }
}

#[test]
fn every_action_is_read_as_what_it_is() {
    for action in TaskAction::HOOKS {
        let given = keys(action.word()).into_iter().filter(|field| field.required).map(|field| {
            let value = match field.key {
                "prompt" => "worker",
                _ => "some",
            };
            format!(", {}: {value}", field.key)
        });
        let given: String = given.collect();
        let text = format!(
            "name: tiny\nstates: {{pending: {{}}, done: {{terminal: true}}}}\ntransitions:\n  \
             - {{from: pending, to: done, hooks: [{{action: {}{given}}}]}}\n\
             prompts: {{worker: work, reviewer: review}}\n",
            action.word()
        );
        let file = DefinitionFile { path: "tiny.yml", bytes: text.as_bytes() };
        let loaded = load(&file, &mut NoPrompts, &mut Sources::new());
        let Some(Definition::Lifecycle(lifecycle)) = loaded.definition else { panic!("{action}:\n{text}") };
        let hooks: Vec<TaskAction> = lifecycle.transitions[0].hooks.iter().map(|hook| hook.action()).collect();
        assert_eq!(hooks, [*action]);
    }
}
