//! The pages about the codes of problems and refusals, as they stand in `docs/problems/` and `docs/refusals/`.

use sluice_core::machine::RefusalCode;
use sluice_core::problem::Code;

macro_rules! pages {
    ($folder:literal: $($code:literal),+ $(,)?) => {
        &[$(($code, include_str!(concat!("../../../docs/", $folder, "/", $code, ".md"))),)+]
    };
}

#[rustfmt::skip]
const PROBLEMS: &[(&str, &str)] = pages!["problems":
    "S0001", "S0002", "S0003", "S0004", "S0005", "S0006", "S0007", "S0008", "S0009", "S0010",
    "S0011", "S0012", "S0013", "S0101", "S0102", "S0103", "S0104", "S0105", "S0106", "S0107",
    "S0108", "S0109", "S0110", "S0111", "S0112", "S0113", "S0114", "S0115", "S0116", "S0117",
    "S0118", "S0119", "S0120", "S0121", "S0122", "S0123", "S0124", "S0201", "S0202", "S0203", "S0204", "S0205", "S0206",
    "S0207", "S0208", "S0209", "S0210", "S0211", "S0212", "S0301", "S0302", "S0303", "S0304", "S0305",
    "S0306", "S0901", "S0902", "S0903", "S0904", "S0905", "S0906", "S0907", "S0910", "S0911",
];

#[rustfmt::skip]
const REFUSALS: &[(&str, &str)] = pages!["refusals":
    "no_transition", "guard_failed", "gate_failed", "stale_verdict", "failed_verdict", "uncommitted",
    "not_on_branch", "nothing_to_merge", "checkout_changed", "merge_conflict", "not_fast_forward", "pr_open", "pr_elsewhere", "not_yours", "finished", "not_respawnable",
    "no_workspace", "session_alive", "loop_exhausted", "step_open", "not_ready", "lease_lost",
];

pub(crate) fn problem(code: Code) -> Option<&'static str> {
    find(PROBLEMS, code.as_str())
}

/// What the page about a problem says before it shows an example: what the problem is, without how bad it is.
pub(crate) fn description(code: Code) -> Option<String> {
    let (before, _) = problem(code)?.split_once("\n## ")?;
    let paragraphs: Vec<&str> = before.split("\n\n").skip(2).map(str::trim).filter(|it| !it.is_empty()).collect();
    Some(paragraphs.join("\n\n"))
}

pub(crate) fn refusal(code: RefusalCode) -> Option<&'static str> {
    find(REFUSALS, code.as_str())
}

/// Every code that has a page.
pub(crate) fn codes() -> impl Iterator<Item = &'static str> {
    PROBLEMS.iter().chain(REFUSALS).map(|(code, _)| *code)
}

fn find(pages: &[(&str, &'static str)], code: &str) -> Option<&'static str> {
    pages.iter().find(|(name, _)| *name == code).map(|(_, page)| *page)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds a folder of pages to the codes that it is about: a page for each, a code for each, in one form.
    fn hold(folder: &str, codes: &[(&str, &str)], headings: &[&str], page: &dyn Fn(&str) -> Option<&'static str>) {
        for (code, title) in codes {
            let place = format!("docs/{folder}/{code}.md");
            let page = page(code).unwrap_or_else(|| panic!("{code} has no page: write {place}"));
            let title = format!("# {code}: {}", title.trim_end_matches('.'));
            assert_eq!(page.lines().next(), Some(title.as_str()), "the first line of {place}");
            for heading in headings {
                assert!(page.contains(heading), "{place} lacks `{heading}`");
            }
        }
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(folder);
        for entry in std::fs::read_dir(path).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let known = codes.iter().any(|(code, _)| name == format!("{code}.md")) || name == "README.md";
            assert!(known, "docs/{folder}/{name} is about no code");
        }
    }

    #[test]
    fn every_problem_has_a_page_and_every_page_a_problem() {
        let codes: Vec<_> = Code::ALL.iter().map(|code| (code.as_str(), code.title())).collect();
        let headings = ["## Example", "## Why it matters", "## The way out"];
        hold("problems", &codes, &headings, &|code| problem(Code::parse(code)?));
        assert_eq!(PROBLEMS.len(), Code::ALL.len());
    }

    /// Code hosts show it to people who have no pages, and cut what is longer.
    #[test]
    fn every_problem_is_described_in_a_few_sentences() {
        for code in Code::ALL {
            let text = description(*code).unwrap_or_else(|| panic!("{} has no description", code.as_str()));
            let is_severity = ["Error:", "Warning:", "Note:"].iter().any(|word| text.starts_with(word));
            let length = text.chars().count();
            assert!(!is_severity && (20..1000).contains(&length), "{}: {length}: {text}", code.as_str());
        }
    }

    #[test]
    fn every_refusal_has_a_page_and_every_page_a_refusal() {
        let codes: Vec<_> = RefusalCode::ALL.iter().map(|code| (code.as_str(), code.title())).collect();
        let headings = ["## Example", "## Why it is refused", "## The way out"];
        hold("refusals", &codes, &headings, &|code| refusal(RefusalCode::parse(code)?));
        assert_eq!(REFUSALS.len(), RefusalCode::ALL.len());
    }

    #[test]
    fn the_tables_of_codes_are_those_of_the_code() {
        let table = include_str!("../../../docs/problems/README.md");
        let written: Vec<&str> = table.lines().filter(|line| line.starts_with("| S")).collect();
        let row = |code: &Code| {
            let (name, title) = (code.as_str(), code.title().trim_end_matches('.'));
            format!("| {name} | {} | [{title}]({name}.md) |", code.severity().word())
        };
        assert_eq!(written, Code::ALL.iter().map(row).collect::<Vec<_>>());

        let table = include_str!("../../../docs/refusals/README.md");
        let written: Vec<&str> = table.lines().filter(|line| line.contains(".md) |")).collect();
        let row = |code: &RefusalCode| {
            let (name, title) = (code.as_str(), code.title().trim_end_matches('.'));
            format!("| {name} | [{title}]({name}.md) |")
        };
        assert_eq!(written, RefusalCode::ALL.iter().map(row).collect::<Vec<_>>());
    }
}
