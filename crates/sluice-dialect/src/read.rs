//! The one way in: a text in YAML or TOML becomes a tree and a list of findings.
//!
//! It never says that a definition is wrong, only that a file cannot be read. What it gives back is bounded
//! whatever it is given: see the limits in [`crate::tree`], [`MOST_PROBLEMS`] and [`crate::source::MAX_FILE`].

use crate::tree::Node;
use crate::{toml, yaml};
use sluice_core::problem::Diagnosis;
use sluice_core::span::FileId;
use std::path::Path;

/// How many findings the reader tells about one file. Nobody mends more at a time, and a file of eight megabytes
/// can be wrong millions of times.
pub const MOST_PROBLEMS: usize = 50;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSyntax {
    /// YAML 1.2 with the core schema.
    Yaml,
    Toml,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedFile {
    /// The tree; none if the file is empty (then there is no problem either) or too broken to go on with.
    pub node: Option<Node>,
    /// What is wrong, in no particular order.
    pub problems: Vec<Diagnosis>,
}

pub fn read(file: FileId, text: &str, syntax: FileSyntax) -> ParsedFile {
    match syntax {
        FileSyntax::Yaml => yaml::read(file, text),
        FileSyntax::Toml => toml::read(file, text),
    }
}

impl FileSyntax {
    /// The syntax of a file, by the end of its name or else by its first line that says something.
    pub fn of(path: &Path, text: &str) -> FileSyntax {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        match extension.to_ascii_lowercase().as_str() {
            "toml" => FileSyntax::Toml,
            "yml" | "yaml" => FileSyntax::Yaml,
            _ => FileSyntax::guess(text),
        }
    }

    /// In TOML, that line is a header or has an equals sign where YAML has a colon.
    fn guess(text: &str) -> FileSyntax {
        let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
        let first = first.unwrap_or_default();
        let header = first.starts_with('[') && first.contains(']') && !first.contains([',', ':']);
        let equals = first.find(['=', ':']).is_some_and(|at| first[at..].starts_with('='));
        if header || (equals && !first.starts_with(['{', '-'])) { FileSyntax::Toml } else { FileSyntax::Yaml }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_syntax_follows_the_name_and_then_the_text() {
        let of = |path: &str, text: &str| FileSyntax::of(Path::new(path), text);
        assert_eq!(of("a.toml", "a: b"), FileSyntax::Toml);
        assert_eq!(of("a.YML", "a = 1"), FileSyntax::Yaml);
        assert_eq!(of("a", "# x\n\nname = \"a: b\""), FileSyntax::Toml);
        assert_eq!(of("a.txt", "[[steps]]\n"), FileSyntax::Toml);
        assert_eq!(of("a", "[a, b]"), FileSyntax::Yaml);
        assert_eq!(of("a", "name: a = b"), FileSyntax::Yaml);
        assert_eq!(of("a", "- a = b"), FileSyntax::Yaml);
        assert_eq!(of("a", ""), FileSyntax::Yaml);
    }
}
