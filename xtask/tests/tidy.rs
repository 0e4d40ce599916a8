//! The rules of this repository that a machine can check. Each finding reads `file:line: what: do this instead`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use xtask::root;

/// Lines of a file, without its tests.
const LONGEST_FILE: usize = 500;
/// Lines of a function.
const LONGEST_FUNCTION: usize = 70;

fn tracked(pattern: &str) -> Vec<String> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", pattern])
        .current_dir(root())
        .output();
    let text = String::from_utf8(output.expect("git lists the files").stdout).unwrap();
    let files: Vec<String> = text.lines().filter(|path| root().join(path).exists()).map(str::to_owned).collect();
    assert!(!files.is_empty(), "no files match {pattern}");
    files
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

fn is_test(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("/tests.rs") || path.ends_with("/samples.rs")
}

#[test]
fn source_files_are_tidy() {
    let mut found = Vec::new();
    for path in tracked("*.rs") {
        let text = read(&path);
        let mut find = |line: usize, what: &str| found.push(format!("{path}:{line}: {what}"));
        if !text.starts_with("//! ") {
            find(1, "does not say what it is for: open it with `//!`");
        }
        let name = Path::new(&path).file_stem().unwrap().to_str().unwrap();
        if ["mod", "utils", "util", "common", "helpers", "helper", "manager", "misc"].contains(&name) {
            find(1, "a name that says nothing: call it after what is in it (`foo.rs` beside `foo/`, not `mod.rs`)");
        }
        let without_tests = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        if !is_test(&path) && without_tests.lines().count() > LONGEST_FILE {
            find(LONGEST_FILE, "too long: split it by story");
        }
        for (index, line) in text.lines().enumerate() {
            let line_number = index + 1;
            for (pattern, instead) in [
                (concat!("#", "[allow("), "use `#[expect(…, reason = \"…\")]`"),
                (concat!("to", "do!("), "do it, or say in the closing note that it is missing"),
                (concat!("FIX", "ME"), "fix it, or file it"),
                (concat!("std::thread::", "sleep"), "wait for the event instead"),
            ] {
                if line.contains(pattern) {
                    find(line_number, &format!("`{pattern}`: {instead}"));
                }
            }
        }
        let measured = if is_test(&path) { "" } else { without_tests };
        for (line, length) in functions(measured).into_iter().filter(|(_, length)| *length > LONGEST_FUNCTION) {
            find(line, &format!("a function of {length} lines: split it, at most {LONGEST_FUNCTION}"));
        }
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

/// Where each function starts, and how many lines it has; rustfmt closes a function at the column it opens in.
fn functions(text: &str) -> Vec<(usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let is_start = |line: &str| {
        let words = line.trim_start();
        if words.ends_with(';') {
            return false; // a trait says that there is such a function
        }
        let words =
            ["pub ", "pub(crate) ", "pub(super) "].iter().find_map(|start| words.strip_prefix(start)).unwrap_or(words);
        ["fn ", "const fn ", "async fn "].iter().any(|start| words.starts_with(start))
    };
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate().filter(|(_, line)| is_start(line)) {
        let end = lines[start..].iter().position(|end| end.trim() == "}" && indent(end) == indent(line));
        found.extend(end.map(|length| (start + 1, length + 1)));
    }
    found
}

/// Those who ask the engine over HTTP have no flags. The engine names fields, `project=NAME`, and the command line makes flags of
/// them; whole commands, `sluice task list --all`, are the same for all. These files speak to the command line alone.
#[test]
fn the_engine_names_no_flags() {
    let of_the_command_line = ["attached.rs", "doctor.rs", "network.rs", "skills.rs"];
    let mut found = Vec::new();
    for path in [
        "crates/sluice-core/src",
        "crates/sluice-home/src",
        "crates/sluice-server/src",
        "crates/sluice-worker/src",
        "crates/sluice-os/src/git",
    ]
    .iter()
    .flat_map(|folder| tracked(&format!("{folder}/*.rs")))
    .filter(|path| !is_test(path) && !of_the_command_line.iter().any(|name| path.ends_with(name)))
    {
        let text = read(&path);
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (number, line) in code.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
            // Every second part is a text; in that, every second part between backquotes.
            let is_flag = |text: &str| {
                let outside =
                    text.split('`').enumerate().filter(|(index, part)| index % 2 == 0 || part.starts_with("--"));
                let words: Vec<&str> = outside.flat_map(|(_, part)| part.split_whitespace()).collect();
                let is_prose = words.iter().any(|word| word.chars().all(char::is_alphabetic));
                let is_flag =
                    |word: &&str| word.strip_prefix("--").is_some_and(|it| it.starts_with(char::is_alphabetic));
                is_prose && words.iter().any(is_flag)
            };
            if line.split('"').skip(1).step_by(2).any(is_flag) {
                found.push(format!("{path}:{}: a flag in the engine: name the field, `field=VALUE`", number + 1));
            }
        }
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn crates_depend_on_each_other_as_the_architecture_says() {
    let picture = read("ARCHITECTURE.md");
    let block = picture.split("```edges\n").nth(1).and_then(|rest| rest.split("```").next());
    let block = block.expect("ARCHITECTURE.md has a block ```edges");
    let mut allowed: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in block.lines().filter(|line| !line.trim().is_empty()) {
        let (from, to) = line.split_once("->").unwrap_or_else(|| panic!("`{line}` is not `crate -> crates`"));
        allowed.insert(from.trim(), to.split(',').map(str::trim).filter(|name| *name != "nothing").collect());
    }
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root())
        .output();
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.expect("cargo tells its metadata").stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let members: BTreeSet<&str> = packages.iter().map(|package| package["name"].as_str().unwrap()).collect();
    for package in packages {
        let name = package["name"].as_str().unwrap();
        let normal = |it: &&serde_json::Value| it["kind"].is_null();
        let names =
            package["dependencies"].as_array().unwrap().iter().filter(normal).map(|it| it["name"].as_str().unwrap());
        let edges: BTreeSet<&str> = names.filter(|name| members.contains(name)).collect();
        let drawn = allowed.get(name).unwrap_or_else(|| panic!("ARCHITECTURE.md does not draw the crate {name}"));
        assert_eq!(&edges, drawn, "the dependencies of {name} are not those that ARCHITECTURE.md draws");
    }
    assert_eq!(
        allowed.keys().copied().collect::<BTreeSet<_>>(),
        members,
        "ARCHITECTURE.md draws a crate that is not there"
    );
}

#[test]
fn the_core_depends_on_nothing_that_does_io() {
    let manifest = read("crates/sluice-core/Cargo.toml");
    let section = manifest.split("[dependencies]\n").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap();
    let names: Vec<&str> = section.lines().filter_map(|line| line.split(['.', ' ']).next()).collect();
    assert_eq!(
        names,
        ["pulldown-cmark", "sha2", "strsim"],
        "a new dependency of the core: is it pure? then add it here"
    );
}

#[test]
fn links_between_pages_lead_somewhere() {
    let mut found = Vec::new();
    for path in tracked("*.md") {
        let text = read(&path);
        let folder = Path::new(&path).parent().unwrap();
        for (index, line) in text.lines().enumerate() {
            for link in line.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
                let file = link.split('#').next().unwrap_or_default();
                if !file.is_empty() && !link.contains("://") && !root().join(folder).join(file).exists() {
                    found.push(format!("{path}:{}: a link to {link}, which is not there", index + 1));
                }
            }
        }
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}
