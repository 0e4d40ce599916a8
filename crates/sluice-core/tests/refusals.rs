//! The pages about refusals show what the machines say: every message and every way out in an example is one that a
//! script of a machine got as its answer.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]
#![expect(clippy::disallowed_methods, reason = "scripts and pages are files")]

use std::path::Path;

use sluice_core::machine::RefusalCode;

/// The files of a folder of this crate's tests, one after the other, with a blank between any two words.
fn said(folder: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let files = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let text: String = files.map(|file| std::fs::read_to_string(file).unwrap()).collect();
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n").collect()
}

#[test]
fn examples_say_what_the_machines_say() {
    let said = said("task/plays") + &said("run/snapshots");
    // A lost lease is the loop's own answer, and what a repository or a forge says is the merge's; their tests look at
    // those pages.
    let others = [
        RefusalCode::LeaseLost,
        RefusalCode::NothingToMerge,
        RefusalCode::CheckoutChanged,
        RefusalCode::MergeConflict,
        RefusalCode::NotFastForward,
        RefusalCode::PrOpen,
        RefusalCode::PrElsewhere,
    ];
    for code in RefusalCode::ALL.iter().filter(|code| !others.contains(code)) {
        let name = code.as_str();
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/refusals/{name}.md"));
        // A machine does not know what the task is called.
        let page = std::fs::read_to_string(path).unwrap().replace("7f3a", "<id>");
        let example = page.split("## Example").nth(1).and_then(|rest| rest.split("```").nth(1)).unwrap();
        let error = example.lines().find_map(|line| line.strip_prefix("error: ")).unwrap();
        // A used-up loop is no answer to anybody: it is why a run has ended.
        let answer = match code {
            RefusalCode::LoopExhausted => error.to_owned(),
            _ => format!("{name}: {error}"),
        };
        assert!(said.contains(&answer), "docs/refusals/{name}.md shows what no script got: {answer}");
        if let Some(hint) = example.lines().find_map(|line| line.strip_prefix("hint: ")) {
            // The pages show the command line, which makes flags of fields.
            let hint = hint.replace("`--force`", "`force=true`").replace("`--commit`", "`commit=true`");
            assert!(said.contains(&hint), "docs/refusals/{name}.md shows a way out that no script got: {hint}");
        }
    }
}
