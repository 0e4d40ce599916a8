//! Reads a text as everything that a text of a definition can be: a command, a prompt, an expression.
//!
//! Shared by the fuzz target `texts` and the bounded run in the normal tests.

use std::ops::Range;

use sluice_core::expr;
use sluice_core::text::{PlaceholderSyntax, ShellCommand, Template};

/// Panics if anything about `text` breaks a promise.
pub(crate) fn exercise(text: &str) {
    let inside = |at: &Range<usize>| assert!(text.get(at.clone()).is_some(), "{at:?} lies outside {text:?}");
    for syntax in [PlaceholderSyntax::Braces, PlaceholderSyntax::DoubleBraces, PlaceholderSyntax::Dollar] {
        let reading = Template::read(text, syntax);
        reading.placeholders.iter().for_each(|found| inside(&found.at));
        reading.bad.iter().for_each(|found| inside(&found.at));
        let filled = reading.text.fill(&|path| Some(syntax.wrap(path)));
        assert!(filled.is_ok_and(|filled| filled.len() <= 2 * text.len()), "more came out than went in: {text:?}");
    }
    let (reading, unexpanded) = ShellCommand::read(text);
    reading.placeholders.iter().for_each(|found| inside(&found.at));
    reading.bad.iter().for_each(|found| inside(&found.at));
    unexpanded.iter().for_each(|found| inside(&found.at));
    match expr::parse(text) {
        Ok(read) => drop(read.to_string()),
        Err(error) => inside(&error.at),
    }
}
