//! Definitions that must load: the built-in ones, and those of the documents that the formats come from.

use std::path::{Path, PathBuf};

use sluice_core::problem::Severity;
use sluice_dialect::builtin;
use sluice_dialect::catalogue::load_path;
use sluice_dialect::prompts::NoPrompts;
use sluice_dialect::{Definition, DefinitionFile, LoadedDefinition, Sources, load};

fn seed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/seeds").join(name)
}

/// The codes of errors and warnings.
fn codes(loaded: &LoadedDefinition) -> Vec<&'static str> {
    let counted = loaded.problems.iter().filter(|problem| problem.severity() != Severity::Note);
    counted.map(|problem| problem.code.as_str()).collect()
}

fn text(name: &str, text: &str) -> LoadedDefinition {
    load(&DefinitionFile { path: name, bytes: text.as_bytes() }, &mut NoPrompts, &mut Sources::new())
}

#[test]
fn built_in_definitions_have_no_problem() {
    for file in builtin::ALL {
        let loaded = text(file.file, file.text);
        let expected: &[&str] = if file.file == "minimal.yml" { &["S0117"] } else { &[] };
        assert_eq!(codes(&loaded), expected, "{}: {:#?}", file.file, loaded.problems);
        let stem = Path::new(file.file).file_stem().unwrap().to_str();
        assert_eq!(loaded.name.as_deref(), stem, "a built-in definition is called as its file");
        assert!(!loaded.description.is_empty(), "{} says what it is for", file.file);
    }
}

#[test]
fn the_documents_own_files_load_as_they_stand() {
    let missing_prompts = ["S0306"; 5];
    let cases: [(&str, &[&str]); 7] = [
        ("000-default.yml", &[]),
        ("000-minimal.yml", &["S0117"]),
        ("001-dev-task.toml", &missing_prompts),
        ("002-persistent.yml", &[]),
        ("004-supervisor-patrol.toml", &[]),
        ("004-worker-execute.toml", &[]),
        ("004-verify-pipeline.toml", &[]),
    ];
    for (name, expected) in cases {
        let loaded = load_path(&seed(name), &mut Sources::new());
        assert_eq!(codes(&loaded), expected, "{name}: {:#?}", loaded.problems);
        assert!(loaded.is_usable(), "{name}");
    }
}

#[test]
fn the_manifest_finds_its_prompts() {
    let place = tempfile::tempdir().unwrap();
    let folder = |name: &str| place.path().join(name);
    std::fs::create_dir_all(folder("workflows")).unwrap();
    std::fs::create_dir_all(folder("do")).unwrap();
    std::fs::copy(seed("001-dev-task.toml"), folder("workflows/dev-task.toml")).unwrap();
    for prompt in ["plan", "implement", "review", "pr"] {
        let text = "{{mission_prompt}} {{context}} {{worktree_path}}";
        std::fs::write(folder(&format!("do/{prompt}.md")), text).unwrap();
    }
    let loaded = load_path(&folder("workflows/dev-task.toml"), &mut Sources::new());
    assert_eq!(codes(&loaded), [""; 0]);
    let Some(Definition::Recipe(recipe)) = loaded.definition else { panic!("not a recipe") };
    let fix = recipe.step(recipe.find("fix").unwrap());
    let back = fix.loop_back.as_ref().expect("`fix` loops back");
    assert_eq!((back.to, back.max), (recipe.find("review").unwrap(), 3));
    assert_eq!(fix.retry.max, 0, "the same number is not also a number of retries");
}

#[test]
fn the_documents_fragments_load_in_a_frame() {
    let node = sluice_dialect::read::read(
        sluice_core::span::FileId(0),
        &std::fs::read_to_string(seed("000-fragments.yml")).unwrap(),
        sluice_dialect::read::FileSyntax::Yaml,
    );
    let fragments = node.node.unwrap();
    let mut tried = 0;
    for fragment in fragments.as_list().unwrap() {
        let part = |key: &str| fragment.get(key).and_then(|node| node.as_text()).unwrap().value.clone();
        let (title, yaml) = (part("title"), part("yaml"));
        let Some(file) = framed(&yaml) else { continue };
        let loaded = text("framed.yml", &file);
        assert_eq!(codes(&loaded), [""; 0], "{title}: {:#?}\n{file}", loaded.problems);
        tried += 1;
    }
    assert!(tried >= 6, "only {tried} fragments were tried");
}

/// A whole lifecycle around a fragment, by what the fragment starts with; `None` if it is not part of a definition.
fn framed(yaml: &str) -> Option<String> {
    let indent = |text: &str, by: &str| text.lines().map(|line| format!("{by}{line}\n")).collect::<String>();
    let head = "name: frame\nversion: 1\n";
    let states = "states:\n  working: {}\n  agent-review: {}\n  stuck: {}\n  done: {terminal: true}\n";
    let edges = "transitions:\n  - {from: working, to: agent-review}\n  - {from: agent-review, to: done}\n  \
                 - {from: agent-review, to: stuck}\n  - {from: stuck, to: done}\n  - {from: agent-review, to: working}\n";
    let prompts = "prompts:\n  worker_respawn: again\n  reviewer: review\n  stuck_fix: mend\n";
    let first = yaml.lines().find(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'))?;
    let fragment = |by: &str| indent(yaml, by);
    if first.starts_with("states:") {
        let edges = "transitions:\n  - {from: working, to: agent-review}\n  - {from: agent-review, to: stuck}\n";
        let ended = format!("{}  done: {{terminal: true}}\n", fragment(""));
        return Some(format!("{head}{ended}{edges}  - {{from: stuck, to: done}}\n{prompts}"));
    }
    if first.starts_with("gate:") || first.starts_with("when:") {
        let mut edges = edges.replacen("to: agent-review}", "to: agent-review}\n  - from: working\n    to: stuck\n", 1);
        edges = edges.replacen("to: stuck\n", &format!("to: stuck\n{}", fragment("    ")), 1);
        if first.starts_with("gate:") && yaml.contains("verdict: PASS") {
            let other = fragment("    ").replace("PASS", "FAIL");
            edges.push_str(&format!("  - from: working\n    to: done\n{other}"));
        }
        return Some(format!("{head}{states}{edges}{prompts}"));
    }
    if first.starts_with("then_when:") {
        let rules = format!("exit_monitoring:\n  rules:\n    - status: agent-review\n{}", fragment("      "));
        return Some(format!("{head}{states}{edges}{rules}{prompts}"));
    }
    if first.starts_with("- status:") {
        return Some(format!("{head}{states}{edges}exit_monitoring:\n  rules:\n{}{prompts}", fragment("    ")));
    }
    None
}
