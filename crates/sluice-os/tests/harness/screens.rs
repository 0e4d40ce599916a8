//! The table of screens against what programs really showed: `PROGRAM-VERSION-WHAT[-more].txt`. Each raises what its name
//! says, and a screen of an agent that works or has ended its turn raises nothing.

use std::collections::BTreeSet;

use sluice_os::harness::screens::ShownDialog;
use sluice_os::harness::stream::HarnessFormat;

/// What stands on screens without a dialog.
const QUIET: [&str; 2] = ["working", "idle"];

fn recorded() -> Vec<(String, String)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/harness/screens");
    let mut all: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read_to_string(entry.path()).unwrap()))
        .collect();
    all.sort();
    all
}

/// The program and what its screen is about, from the name of its file.
fn about(name: &str) -> (HarnessFormat, &str) {
    let mut parts = name.trim_end_matches(".txt").splitn(3, '-');
    let program = HarnessFormat::read(parts.next().unwrap()).unwrap();
    let what = parts.nth(1).unwrap();
    (program, what.split('-').next().unwrap())
}

#[test]
fn every_recorded_screen_raises_what_it_shows() {
    let recorded = recorded();
    for (name, screen) in &recorded {
        let (program, what) = about(name);
        let found = ShownDialog::find(program, screen);
        let wanted = (!QUIET.contains(&what)).then_some(what);
        assert_eq!(found.as_ref().map(|found| found.what.word()), wanted, "{name}: {found:?}");
        assert!(found.is_none_or(|found| !found.line.is_empty() && screen.contains(&found.line)), "{name}");
    }
    let seen: BTreeSet<&str> = recorded.iter().map(|(name, _)| about(name).1).collect();
    for what in ["trust", "login", "other", "limit", "network", "permission", "question", "working", "idle"] {
        assert!(seen.contains(what), "no screen was recorded for {what}");
    }
}

/// A screen is known by its own program's words alone: another program's agent may write about it.
#[test]
fn a_screen_of_one_program_means_nothing_on_another() {
    for (name, screen) in recorded() {
        let (program, what) = about(&name);
        for other in HarnessFormat::ALL.iter().filter(|other| **other != program) {
            // Two programs ask for trust with the same sentence, and are told apart by another.
            assert_eq!(ShownDialog::find(*other, &screen), None, "{name} ({what}) on {}", other.word());
        }
    }
}

/// Words of a prompt that stand above do not make another dialog of one.
#[test]
fn words_of_one_line_must_stand_on_one_line() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/harness/screens/claude-2.1.326-network-retry.txt");
    let screen = std::fs::read_to_string(folder).unwrap().replace("hello", "Answer 429 as we answer 401 ");
    let found = ShownDialog::find(HarnessFormat::Claude, &screen).unwrap();
    assert_eq!(found.what.word(), "network");
    assert!(found.line.contains("ECONNREFUSED"), "{found:?}");
}

#[test]
fn prose_about_dialogs_is_no_dialog() {
    let prose = "I looked at the trust dialog (`Do you trust the files in this folder?`), at 401 and 429 answers, at usage \
                 limits and at retries. Do you want to proceed? The network was unreachable once; it is retrying.";
    for program in HarnessFormat::ALL {
        assert_eq!(ShownDialog::find(*program, prose), None, "{}", program.word());
    }
}
