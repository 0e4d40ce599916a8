//! Reads the texts of a definition (guards, prompts, commands) and reports what cannot be read in them.
//!
//! Which variables exist is decided by the caller, who gets every placeholder with its place.

use std::collections::BTreeSet;

use crate::expr::{self, Expr};
use crate::findings::CheckFindings;
use crate::problem::{Code, Diagnosis, clip, closest};
use crate::span::{SourceText, Span};
use crate::task::TaskKey;
use crate::text::{BadPlaceholder, Placeholder, PlaceholderSyntax, ShellCommand, Template, TextReading};

/// The most different variables of one prompt file.
const MOST_VARIABLES: usize = 500;
/// The most places of variables in one prompt file.
const MOST_PLACES: usize = 20_000;
const ESCAPED: &str = "write `$${` for a `${` that is no variable";

/// Reads a guard or condition; `code` is what a failure is reported as.
pub(super) fn expression(text: &SourceText, code: Code, what: &str, findings: &mut CheckFindings) -> Option<Expr> {
    match expr::parse(&text.value) {
        Ok(expr) => Some(expr),
        Err(error) => {
            let message = format!("this {what} cannot be read: {}", error.message);
            let exact = text.locate(error.at);
            // A guard knows no text, so the parser's advice to quote it would lead to the next error.
            let quotes = code == Code::BadGuard && error.help.as_ref().is_some_and(|help| help.contains("in quotes"));
            let help =
                if quotes { Some("on the right stands a whole number: `review_round < 2`".into()) } else { error.help };
            let mut problem = Diagnosis::new(code, text.span, message).maybe_help(help);
            if exact != text.span {
                problem = problem.other(exact, "here");
            }
            findings.add(problem);
            None
        }
    }
}

/// Reads a prompt or message of a lifecycle. A word in braces that is no variable stays as it is; one that resembles a
/// variable is probably misspelt.
pub(super) fn prompt(text: &SourceText, findings: &mut CheckFindings) -> Template {
    let reading = Template::read(&text.value, PlaceholderSyntax::Braces);
    for word in &reading.words {
        let Some(close) = closest(word.path.head(), TaskKey::variables()) else { continue };
        let shown = clip(&PlaceholderSyntax::Braces.wrap(&word.path));
        let message = format!("`{shown}` is not a variable of a task, so it stays as it is");
        let help = format!("did you mean `{}`?", PlaceholderSyntax::Braces.wrap(close));
        findings.add(Diagnosis::new(Code::WordInBraces, text.locate(word.at.clone()), message).help(help));
    }
    reading.text
}

/// Reads a prompt or message, and hands each placeholder with its place to `known`.
pub(super) fn template(
    text: &SourceText,
    syntax: PlaceholderSyntax,
    findings: &mut CheckFindings,
    mut known: impl FnMut(&Placeholder, Span, &mut CheckFindings),
) -> Template {
    let reading = Template::read(&text.value, syntax);
    bad(text, &reading.bad, ESCAPED, findings);
    for placeholder in &reading.placeholders {
        known(placeholder, text.locate(placeholder.at.clone()), findings);
    }
    reading.text
}

/// Reads a prompt file that several steps may share. Of each variable only the first place is kept: they are looked up
/// for every step again.
pub(super) fn read_file(
    text: &SourceText,
    syntax: PlaceholderSyntax,
    findings: &mut CheckFindings,
) -> TextReading<Template> {
    let mut reading = Template::read(&text.value, syntax);
    bad(text, &reading.bad, ESCAPED, findings);
    let mut too_many = |found: &Placeholder, message: String| {
        findings.hole(Diagnosis::new(Code::TooMuchStructure, text.locate(found.at.clone()), message));
        TextReading { text: Template::literal(""), placeholders: Vec::new(), words: Vec::new(), bad: Vec::new() }
    };
    if let Some(found) = reading.placeholders.get(MOST_PLACES) {
        return too_many(found, format!("variables at more than {MOST_PLACES} places of one prompt file"));
    }
    let mut seen = BTreeSet::new();
    reading.placeholders.retain(|found| seen.insert(found.path.clone()));
    match reading.placeholders.get(MOST_VARIABLES) {
        Some(found) => too_many(found, format!("more than {MOST_VARIABLES} variables in one prompt file")),
        None => reading,
    }
}

/// Reads a command, and hands each placeholder with its place to `known`.
pub(super) fn command(
    text: &SourceText,
    findings: &mut CheckFindings,
    mut known: impl FnMut(&Placeholder, Span, &mut CheckFindings),
) -> ShellCommand {
    let (reading, unexpanded) = ShellCommand::read(&text.value);
    bad(text, &reading.bad, "a variable is `${name}`; `$${` leaves the rest to the shell", findings);
    for found in unexpanded {
        let shown = clip(&text.value[found.at.clone()]);
        let span = text.locate(found.at);
        findings.add(
            Diagnosis::new(Code::VariableNotExpanded, span, format!("`{shown}` stands {}", found.place))
                .note("values reach the shell as environment variables, which it does not expand safely there")
                .help(found.way_out),
        );
    }
    for placeholder in &reading.placeholders {
        known(placeholder, text.locate(placeholder.at.clone()), findings);
    }
    reading.text
}

fn bad(text: &SourceText, bad: &[BadPlaceholder], help: &str, findings: &mut CheckFindings) {
    for found in bad {
        let span = text.locate(found.at.clone());
        findings.add(Diagnosis::new(Code::BadPlaceholder, span, clip(&found.message)).help(help));
    }
}
