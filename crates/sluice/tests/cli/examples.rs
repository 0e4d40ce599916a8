//! The files that the documentation shows: broken ones break exactly one rule, the others none.

use std::path::PathBuf;

use sluice_core::problem::{Code, Severity};

use super::sluice::{root, run};

fn files(folder: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{folder} is empty");
    files.into_iter().map(|path| path.strip_prefix(root()).unwrap().to_owned()).collect()
}

/// Codes that no file in the repository can show: it would have to be huge, or no text.
const WITHOUT_EXAMPLE: [Code; 2] = [Code::FileTooLarge, Code::NotText];

#[test]
fn every_code_has_a_file_that_shows_it_and_nothing_else() {
    let examples = files("examples/broken");
    for code in Code::ALL.iter().filter(|code| !WITHOUT_EXAMPLE.contains(code)) {
        let name = code.as_str();
        let path = examples.iter().find(|path| path.file_stem().is_some_and(|stem| stem == name));
        let path = path.unwrap_or_else(|| panic!("examples/broken/{name}.* is missing")).to_str().unwrap();
        let report = run(&["check", path, "--json"]).json();
        let codes = |list: &str| -> Vec<String> {
            report[list].as_array().unwrap().iter().map(|it| it["code"].as_str().unwrap().to_owned()).collect()
        };
        match code.severity() {
            Severity::Error | Severity::Warning => assert_eq!(codes("problems"), [name], "{path}"),
            Severity::Note => {
                assert_eq!(codes("problems"), [""; 0], "{path}");
                assert!(codes("notes").contains(&name.to_owned()), "{path}");
            }
        }
        let text = run(&["check", path]);
        let expected = if code.severity() == Severity::Error { 1 } else { 0 };
        assert_eq!(text.code, expected, "{path}");
        insta::assert_snapshot!(name, text.shown());
    }
}

#[test]
fn ten_mistakes_are_ten_findings_each_on_its_line() {
    let path = "examples/broken/ten-mistakes.yml";
    let text = std::fs::read_to_string(root().join(path)).unwrap();
    let marked: Vec<usize> = (1..=10)
        .map(|number| {
            let mark = format!("# {number}");
            1 + text.lines().position(|line| line.ends_with(&mark)).unwrap_or_else(|| panic!("no line {mark}"))
        })
        .collect();
    let answer = run(&["check", path, "--json"]);
    let lines: Vec<usize> = answer.findings().iter().map(|it| line_of(it)).collect();
    assert_eq!(lines, marked);
    insta::assert_snapshot!("ten-mistakes", run(&["check", path]).shown());
}

fn line_of(finding: &str) -> usize {
    finding.split([' ', ':']).nth(1).unwrap().parse().unwrap()
}

#[test]
fn good_examples_have_no_problem() {
    for path in [files("examples/lifecycles"), files("examples/recipes")].concat() {
        let answer = run(&["check", path.to_str().unwrap(), "--json"]);
        assert_eq!(answer.findings(), [""; 0], "{}", path.display());
        assert_eq!(answer.code, 0);
    }
}

#[test]
fn pages_show_lines_of_their_example() {
    for code in Code::ALL.iter().filter(|code| !WITHOUT_EXAMPLE.contains(code)) {
        let name = code.as_str();
        let page = std::fs::read_to_string(root().join(format!("docs/problems/{name}.md"))).unwrap();
        let excerpt = page.split("## Example").nth(1).and_then(|rest| rest.split("```").nth(1)).unwrap();
        let example = files("examples/broken").into_iter().find(|path| path.file_stem().unwrap() == name).unwrap();
        let example = std::fs::read_to_string(root().join(example)).unwrap();
        for line in excerpt.lines().skip(1).map(str::trim).filter(|line| !line.is_empty() && *line != "…") {
            assert!(example.contains(line), "docs/problems/{name}.md shows a line that its example lacks: {line}");
        }
    }
}

#[test]
fn the_blocks_of_the_page_about_lifecycles_are_a_whole_file() {
    let page = std::fs::read_to_string(root().join("docs/writing-a-lifecycle.md")).unwrap();
    let blocks = page.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.yml");
    std::fs::write(&file, blocks.collect::<String>()).unwrap();
    let answer = run(&["check", file.to_str().unwrap(), "--json"]);
    assert_eq!((answer.code, answer.findings()), (0, Vec::new()));
    assert_eq!(answer.json()["notes"].as_array().unwrap().len(), 3, "as the page says");
}
