//! The names of events in the documents are those of the code: one that is renamed there must be renamed here.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]
#![expect(clippy::disallowed_methods, reason = "the test reads the documents; the core does not")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use sluice_core::event_name::{EventName, PROCESS_STEP_BLOCKED, told};
use sluice_core::run::RunKind;

/// What looks like the name of an event and is something else: variables of a recipe, spans, files, ids, and a name that
/// a page shows as misspelt.
const OTHERS: [&str; 18] = [
    "attention.pool_full_after",
    "attention.worker_after",
    "attention.quiet_after",
    "mission.plan",
    "run.context",
    "run.id",
    "run.prompt",
    "run.start",
    // opencode's own.
    "session.error",
    "session.status",
    "run.work_order",
    "run.workspace",
    "session.idle",
    "status.change",
    "store.commit",
    "task.create",
    "store.damaged",
    "task.effect",
];
/// How names of files end.
const ENDINGS: [&str; 4] = [".db", ".json", ".md", ".rs"];

/// Every name under which an event is told.
fn names() -> BTreeSet<String> {
    let kinds = [RunKind::Run, RunKind::Mission, RunKind::Workflow, RunKind::Process];
    let all = EventName::ALL.iter().flat_map(|name| kinds.map(|kind| told(name.word(), kind)));
    all.chain([PROCESS_STEP_BLOCKED.to_owned()]).collect()
}

fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "md") {
            found.push(path);
        }
    }
}

/// The words of a text that have a dot inside, like the names of events.
fn dotted(text: &str) -> impl Iterator<Item = &str> {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "._*/-".contains(letter);
    let words =
        text.split(move |letter| !is_letter(letter)).map(|word| word.trim_end_matches("**").trim_end_matches('.'));
    words.filter(|word| word.contains('.') && word.chars().all(|it| it.is_ascii_lowercase() || "._*".contains(it)))
}

#[test]
fn documents_name_events_that_there_are() {
    let names = names();
    let heads: BTreeSet<&str> = names.iter().filter_map(|name| name.split('.').next()).collect();
    let is_known = |word: &str| match word.strip_suffix('*') {
        Some(begins) => names.iter().any(|name| name.starts_with(begins)),
        None => names.contains(word) || OTHERS.contains(&word) || ENDINGS.iter().any(|it| word.ends_with(it)),
    };
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut found = Vec::new();
    pages(&docs, &mut found);
    let (mut unknown, mut seen) = (Vec::new(), 0);
    for page in found {
        let text = std::fs::read_to_string(&page).unwrap();
        for word in dotted(&text).filter(|word| word.split('.').next().is_some_and(|head| heads.contains(head))) {
            seen += 1;
            if !is_known(word) {
                unknown.push(format!("{}: `{word}` is no event", page.display()));
            }
        }
    }
    assert_eq!(unknown, Vec::<String>::new(), "name an event of sluice-core/src/event_name.rs, or add it to OTHERS");
    assert!(seen > 20, "only {seen} names were found: is this still how documents name events?");
}
