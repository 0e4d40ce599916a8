//! What people read is plain English: the subject of a sentence is named, and words of one design document stay where that
//! document's users are.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use xtask::root;

/// Subjects that name nobody.
const NAMELESS: [&str; 3] = ["whoever", "somebody", "nobody"];

/// Words of one document each, which the engine has others for.
const OF_A_DOCUMENT: [&str; 9] =
    ["crab", "crabs", "colony", "colonies", "burrow", "burrows", "grimoire", "grimoires", "spell"];

/// Where those words are at home: what is asked in them, and how their files are written.
const EDGE: [&str; 11] = [
    "crates/sluice-server/src/facade",
    "crates/sluice-home/src/facade",
    "crates/sluice-home/src/roster/missions.rs",
    "crates/sluice-home/src/ask.rs",
    "crates/sluice-home/src/ask/access.rs",
    "crates/sluice-home/src/settings/tokens.rs",
    "crates/sluice-server/src/routes/document.rs",
    "crates/sluice-dialect/src",
    "crates/sluice-api/src",
    "crates/sluice/src",
    "crates/sluice-testkit/src",
];

/// Doc comments of fewer words say nothing that a name cannot say.
const FEWEST_WORDS: usize = 4;

fn sources() -> Vec<PathBuf> {
    let crates = std::fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path().join("src"));
    let mut folders: Vec<PathBuf> = crates.collect();
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.extension().is_some_and(|end| end == "rs") => found.push(path),
                false => {}
            }
        }
    }
    found.sort();
    found
}

/// A file without its tests, and its path from the root.
fn read(path: &Path) -> (String, String) {
    let text = std::fs::read_to_string(path).unwrap();
    let own = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default().to_owned();
    (path.strip_prefix(root()).unwrap().display().to_string(), own)
}

/// The texts in a line of code that a person may read: more than one word.
fn texts(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some((_, after)) = rest.split_once('"') {
        let mut escaped = false;
        let end = after.find(|letter: char| {
            let is_end = letter == '"' && !escaped;
            escaped = letter == '\\' && !escaped;
            is_end
        });
        let Some(end) = end else { break };
        found.extend(Some(after[..end].to_owned()).filter(|text| text.contains(' ')));
        rest = &after[end + 1..];
    }
    found
}

fn has_word(text: &str, wanted: &str) -> bool {
    text.split(|letter: char| !letter.is_alphanumeric()).any(|word| word.eq_ignore_ascii_case(wanted))
}

fn capital(word: &str) -> String {
    let (first, rest) = word.split_at(1);
    format!("{}{rest}", first.to_uppercase())
}

#[test]
fn messages_and_pages_name_their_subject() {
    let mut found = Vec::new();
    for path in sources() {
        let (name, text) = read(&path);
        // The simulation tells its story to those who work on it.
        if name.starts_with("crates/sluice-sim") || name.contains("/conformance/") || name.ends_with("/tests.rs") {
            continue;
        }
        let is_help = name.starts_with("crates/sluice/src/args");
        for (index, line) in text.lines().enumerate() {
            let is_comment = line.trim_start().starts_with("//");
            let shown = match is_comment {
                true if is_help => vec![line.to_owned()],
                true => Vec::new(),
                false => texts(line),
            };
            let nameless = NAMELESS.iter().filter(|word| shown.iter().any(|text| has_word(text, word)));
            found.extend(nameless.map(|word| format!("{name}:{}: `{word}`", index + 1)));
        }
    }
    let mut pages = vec![root().join("README.md"), root().join("CONTRIBUTING.md"), root().join("ARCHITECTURE.md")];
    pages.extend(std::fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path()));
    for page in pages.iter().filter(|path| path.extension().is_some_and(|end| end == "md" || end == "json")) {
        let text = std::fs::read_to_string(page).unwrap();
        // One page has the word as the name of a caller, and says so.
        let defines = |word: &&&str| text.contains(&format!("*{}*", capital(word)));
        let mut is_code = false;
        for (index, line) in text.lines().enumerate() {
            is_code ^= line.trim_start().starts_with("```");
            let in_line = |word: &&&str| line.split('`').step_by(2).any(|part| has_word(part, word));
            let nameless = NAMELESS.iter().filter(|word| !is_code && in_line(word) && !defines(word));
            found.extend(nameless.map(|word| format!("{}:{}: `{word}`", page.display(), index + 1)));
        }
    }
    assert!(found.is_empty(), "say who or what it is:\n{}", found.join("\n"));
}

#[test]
fn a_text_is_found_in_its_line_of_code() {
    assert_eq!(texts(r#"x("a \"b\" c", "one", 'q', "d e")"#), [r#"a \"b\" c"#, "d e"]);
    assert!(has_word("nobody waits", "nobody") && !has_word("NobodyKnows", "nobody"));
}

#[test]
fn words_of_one_document_stay_at_the_edge() {
    let mut found = Vec::new();
    for path in sources() {
        let (name, text) = read(&path);
        if EDGE.iter().any(|edge| name.starts_with(edge)) {
            continue;
        }
        for (index, line) in text.lines().enumerate() {
            // What is stored and sent keeps its name: in texts, in the wire's types, and in their fields.
            let code: String = line.split('"').step_by(2).collect();
            let code = code.split("//").next().unwrap_or_default().replace("sluice_api::grimoire", "");
            let words = code.split(|letter: char| !letter.is_alphanumeric() && !"_.:".contains(letter));
            let words = words.map(|word| word.trim_end_matches(':'));
            let wrong = words.filter(|word| OF_A_DOCUMENT.contains(word));
            found.extend(wrong.map(|word| format!("{name}:{}: `{word}`", index + 1)));
        }
    }
    assert!(found.is_empty(), "{} times; use the engine's own word:\n{}", found.len(), found.join("\n"));
}

#[test]
fn doc_comments_say_something() {
    let mut found = Vec::new();
    for path in sources() {
        let (name, text) = read(&path);
        let mut words = 0;
        for (index, line) in text.lines().enumerate() {
            match line.trim_start().strip_prefix("///") {
                Some(said) => words += said.split_whitespace().count(),
                None => {
                    if (1..FEWEST_WORDS).contains(&words) {
                        found.push(format!("{name}:{index}"));
                    }
                    words = 0;
                }
            }
        }
    }
    assert!(
        found.is_empty(),
        "{} doc comments have fewer than {FEWEST_WORDS} words:\n{}",
        found.len(),
        found.join("\n")
    );
}

#[test]
fn every_type_has_a_name_of_its_own() {
    let mut named: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in sources() {
        let (name, _) = read(&path);
        let text = std::fs::read_to_string(&path).unwrap();
        for (index, line) in text.lines().enumerate() {
            // An associated type has the name that its trait gives it.
            let is_inside = line.starts_with("    ") && line.trim_start().starts_with("type ");
            if let Some(declared) = declared(line).filter(|_| !is_inside) {
                named.entry(declared.to_owned()).or_default().push(format!("{name}:{}", index + 1));
            }
        }
    }
    let shared: Vec<String> = named
        .iter()
        .filter(|(_, places)| places.len() > 1)
        .map(|(name, places)| format!("{name}: {}", places.join(", ")))
        .collect();
    assert!(shared.is_empty(), "put the subject into the name of one of them:\n{}", shared.join("\n"));
    assert!(named.len() > 1000, "{} types", named.len());
}

/// The type that a line declares.
fn declared(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().peekable();
    words.next_if(|word| word.starts_with("pub"));
    let is_type = words.next().is_some_and(|word| ["struct", "enum", "trait", "type", "union"].contains(&word));
    let name = words.next()?.split(|letter: char| !letter.is_alphanumeric()).next()?;
    Some(name).filter(|name| is_type && name.starts_with(|first: char| first.is_ascii_uppercase()))
}
