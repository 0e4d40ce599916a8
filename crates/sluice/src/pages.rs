//! The pages about problem codes, as they stand in `docs/problems/`.

use sluice_core::problem::Code;

macro_rules! pages {
    ($($code:literal),+ $(,)?) => {
        &[$(($code, include_str!(concat!("../../../docs/problems/", $code, ".md"))),)+]
    };
}

#[rustfmt::skip]
const PAGES: &[(&str, &str)] = pages![
    "S0001", "S0002", "S0003", "S0004", "S0005", "S0006", "S0007", "S0008", "S0009", "S0010",
    "S0011", "S0012", "S0013", "S0101", "S0102", "S0103", "S0104", "S0105", "S0106", "S0107",
    "S0108", "S0109", "S0110", "S0111", "S0112", "S0113", "S0114", "S0115", "S0116", "S0117",
    "S0118", "S0119", "S0120", "S0121", "S0201", "S0202", "S0203", "S0204", "S0205", "S0206",
    "S0207", "S0208", "S0209", "S0210", "S0211", "S0301", "S0302", "S0303", "S0304", "S0305",
    "S0306", "S0901", "S0902", "S0903", "S0904", "S0905", "S0906",
];

/// The page about `code`.
pub(crate) fn page(code: Code) -> Option<&'static str> {
    PAGES.iter().find(|(name, _)| *name == code.as_str()).map(|(_, page)| *page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_page_with_its_title() {
        for code in Code::ALL {
            let page = page(*code).unwrap_or_else(|| panic!("{} has no page", code.as_str()));
            let title = format!("# {}: {}", code.as_str(), code.title().trim_end_matches('.'));
            assert_eq!(
                page.lines().next(),
                Some(title.as_str()),
                "the first line of docs/problems/{}.md",
                code.as_str()
            );
            for heading in ["## Example", "## Why it matters", "## The way out"] {
                assert!(page.contains(heading), "docs/problems/{}.md lacks `{heading}`", code.as_str());
            }
        }
        assert_eq!(PAGES.len(), Code::ALL.len());
    }

    #[test]
    fn the_table_of_codes_is_that_of_the_code() {
        let table = include_str!("../../../docs/problems/README.md");
        let written: Vec<&str> = table.lines().filter(|line| line.starts_with("| S")).collect();
        let row = |code: &Code| {
            let (name, title) = (code.as_str(), code.title().trim_end_matches('.'));
            format!("| {name} | {} | [{title}]({name}.md) |", code.severity().word())
        };
        assert_eq!(written, Code::ALL.iter().map(row).collect::<Vec<_>>());
    }
}
