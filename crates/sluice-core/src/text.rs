//! Texts with variables in them: the three ways prompts name a variable, and commands for the shell.
//!
//! Reading a text finds its variables and what cannot be read; whether a variable exists is the checker's question.

mod command;

use std::ops::Range;
use std::sync::Arc;

pub use command::{ShellCommand, UnexpandedVariable};

use crate::expr::{ValuePath, path_at};
use crate::task::TaskKey;

/// How a text names a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceholderSyntax {
    /// `{summary}`: prompts of lifecycles. Braces around anything but one of a task's variables stay as they are.
    Braces,
    /// `{{context}}`: prompts of manifests. Double braces around anything but a word stay as they are.
    DoubleBraces,
    /// `${plan.output}`: everything else. `$${` stands for `${`.
    Dollar,
}

impl PlaceholderSyntax {
    /// `name` as a variable.
    pub fn wrap(self, name: impl std::fmt::Display) -> String {
        match self {
            PlaceholderSyntax::Braces => format!("{{{name}}}"),
            PlaceholderSyntax::DoubleBraces => format!("{{{{{name}}}}}"),
            PlaceholderSyntax::Dollar => format!("${{{name}}}"),
        }
    }
}

/// A text with places for values. A copy shares its parts: a thousand steps may use one prompt file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    parts: Arc<[TemplatePart]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplatePart {
    Literal(String),
    Variable(ValuePath),
}

/// A variable in a text, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placeholder {
    /// What is asked for.
    pub path: ValuePath,
    /// The placeholder, braces included.
    pub at: Range<usize>,
}

/// A placeholder that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadPlaceholder {
    /// The byte range of the unreadable placeholder in the text.
    pub at: Range<usize>,
    /// What is wrong with it.
    pub message: String,
}

/// What reading a text found.
#[derive(Clone, Debug)]
pub struct TextReading<T> {
    /// The text, ready to be filled.
    pub text: T,
    /// Its variables, from left to right.
    pub placeholders: Vec<Placeholder>,
    /// Words that are written like variables and stay as they are.
    pub words: Vec<Placeholder>,
    /// What could not be read.
    pub bad: Vec<BadPlaceholder>,
}

impl Template {
    /// A text without variables.
    pub fn literal(text: impl Into<String>) -> Self {
        Template { parts: Arc::new([TemplatePart::Literal(text.into())]) }
    }

    /// Reads the placeholders of `text`, which are written as `syntax` says.
    pub fn read(text: &str, syntax: PlaceholderSyntax) -> TextReading<Template> {
        let (mut parts, mut placeholders) = (Vec::new(), Vec::new());
        let (mut words, mut bad) = (Vec::new(), Vec::new());
        let (mut at, mut plain) = (0, String::new());
        while let Some(found) = next_brace(text, at) {
            let token = match syntax {
                PlaceholderSyntax::Braces => braces(text, found),
                PlaceholderSyntax::DoubleBraces => double_braces(text, found),
                PlaceholderSyntax::Dollar => dollar(text, found),
            };
            at = match token {
                TextToken::Plain(end) => {
                    plain.push_str(&text[at..end]);
                    end
                }
                TextToken::Escape(range) => {
                    plain.push_str(&text[at..range.start]);
                    plain.push_str("${");
                    range.end
                }
                TextToken::Variable(path, range) => {
                    plain.push_str(&text[at..range.start]);
                    parts.extend(literal(std::mem::take(&mut plain)));
                    parts.push(TemplatePart::Variable(path.clone()));
                    let end = range.end;
                    placeholders.push(Placeholder { path, at: range });
                    end
                }
                TextToken::Word(path, range) => {
                    let end = range.end;
                    plain.push_str(&text[at..end]);
                    words.push(Placeholder { path, at: range });
                    end
                }
                TextToken::Bad(found) => {
                    let end = found.at.end;
                    plain.push_str(&text[at..end]);
                    bad.push(found);
                    end
                }
            };
        }
        plain.push_str(&text[at..]);
        parts.extend(literal(plain));
        TextReading { text: Template { parts: parts.into() }, placeholders, words, bad }
    }

    /// The text with its values; the first variable without one is the error.
    pub fn fill(&self, value: &dyn Fn(&ValuePath) -> Option<String>) -> Result<String, ValuePath> {
        self.fill_telling(value, &|_| false).map(|(filled, _)| filled)
    }

    /// The same, and where in it the values begin that are asked for, in bytes.
    pub fn fill_telling(
        &self,
        value: &dyn Fn(&ValuePath) -> Option<String>,
        is_asked_for: &dyn Fn(&ValuePath) -> bool,
    ) -> Result<(String, Vec<usize>), ValuePath> {
        let (mut filled, mut begins) = (String::new(), Vec::new());
        for part in self.parts.iter() {
            match part {
                TemplatePart::Literal(text) => filled.push_str(text),
                TemplatePart::Variable(path) => {
                    begins.extend(is_asked_for(path).then_some(filled.len()));
                    filled.push_str(&value(path).ok_or_else(|| path.clone())?);
                }
            }
        }
        Ok((filled, begins))
    }

    /// The one variable it is, if it is nothing else.
    pub fn as_variable(&self) -> Option<&ValuePath> {
        match &*self.parts {
            [TemplatePart::Variable(path)] => Some(path),
            _ => None,
        }
    }
}

fn literal(text: String) -> Option<TemplatePart> {
    (!text.is_empty()).then_some(TemplatePart::Literal(text))
}

enum TextToken {
    /// Text up to this offset, which only looked like a variable.
    Plain(usize),
    /// An escaped placeholder, `$${`, which stands for a literal `${`.
    Escape(Range<usize>),
    Variable(ValuePath, Range<usize>),
    /// Written like a variable, and none.
    Word(ValuePath, Range<usize>),
    Bad(BadPlaceholder),
}

fn next_brace(text: &str, from: usize) -> Option<usize> {
    text[from..].find('{').map(|offset| from + offset)
}

/// The lower-case word between `open` and `close` at `at`.
fn enclosed<'a>(text: &'a str, at: usize, open: &str, close: &str) -> Option<(&'a str, Range<usize>)> {
    let inner = text[at..].strip_prefix(open)?;
    let word = inner.trim_start_matches(' ');
    let word = &word[..word.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))?];
    let start = at + open.len() + (inner.len() - inner.trim_start_matches(' ').len());
    let rest = &text[start + word.len()..];
    let trimmed = rest.trim_start_matches(' ');
    let end = start + word.len() + (rest.len() - trimmed.len()) + close.len();
    (word.starts_with(|c: char| c.is_ascii_lowercase()) && trimmed.starts_with(close)).then_some((word, at..end))
}

fn braces(text: &str, at: usize) -> TextToken {
    let before = text[..at].chars().next_back();
    let plain = TextToken::Plain(at + 1);
    let Some((word, range)) = enclosed(text, at, "{", "}") else { return plain };
    let snug = range.len() == word.len() + 2;
    let lower = !word.contains(|c: char| c.is_ascii_uppercase());
    if !snug || !lower || matches!(before, Some('{' | '$')) || text[range.end..].starts_with('}') {
        return plain;
    }
    let path = ValuePath::new(word, []);
    match TaskKey::variable(word) {
        Some(_) => TextToken::Variable(path, range),
        None => TextToken::Word(path, range),
    }
}

fn double_braces(text: &str, at: usize) -> TextToken {
    let before = text[..at].chars().next_back();
    match enclosed(text, at, "{{", "}}") {
        Some((word, range)) if !matches!(before, Some('{' | '$')) && !text[range.end..].starts_with('}') => {
            TextToken::Variable(ValuePath::new(word, []), range)
        }
        _ => TextToken::Plain(at + text[at..].bytes().take_while(|byte| *byte == b'{').count()),
    }
}

fn dollar(text: &str, at: usize) -> TextToken {
    let before = &text[..at];
    if before.ends_with("$$") {
        return TextToken::Escape(at - 2..at + 1);
    }
    if !before.ends_with('$') {
        return TextToken::Plain(at + 1);
    }
    match dollar_path(text, at + 1) {
        Ok((path, end)) => TextToken::Variable(path, at - 1..end),
        Err(bad) => TextToken::Bad(bad),
    }
}

/// Reads the path behind a `${` that ends at `from`; gives it and the offset behind its `}`.
fn dollar_path(text: &str, from: usize) -> Result<(ValuePath, usize), BadPlaceholder> {
    let start = from - 2;
    // Nothing that is opened again before it is closed is a path, so the search need not go further than that.
    let end = text[from..].find(['\n', '{', '}']).map(|offset| from + offset);
    let Some(close) = end.filter(|end| text[*end..].starts_with('}')) else {
        return Err(BadPlaceholder { at: start..from, message: "`${` without its `}`".into() });
    };
    let inner = text[from..close].trim();
    match path_at(inner, 0) {
        Ok((path, len)) if len == inner.len() => Ok((path, close + 1)),
        _ => Err(BadPlaceholder {
            at: start..close + 1,
            message: format!("`{}` is not a variable", &text[start..=close]),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str, syntax: PlaceholderSyntax) -> String {
        let reading = Template::read(text, syntax);
        let bad: String = reading.bad.iter().map(|bad| format!(" !{}", bad.message)).collect();
        reading.text.fill(&|path| Some(format!("<{path}>"))).unwrap() + &bad
    }

    #[test]
    fn braces_of_lifecycles() {
        assert_eq!(filled("# {summary}: {review_round}", PlaceholderSyntax::Braces), "# <summary>: <review_round>");
        for literal in ["{}", "{ a }", "{\"a\": 1}", "{{summary}}", "${summary}", "{Summary}", "{a b}", "{a", "{é}"] {
            assert_eq!(filled(literal, PlaceholderSyntax::Braces), literal);
        }
    }

    #[test]
    fn double_braces_of_manifests() {
        assert_eq!(filled("{{context}} {{ context }}", PlaceholderSyntax::DoubleBraces), "<context> <context>");
        for literal in ["{context}", "${{ context }}", "{{#if x}}", "{{a.b}}", "{{{context}}}", "{{", "{{context}"] {
            assert_eq!(filled(literal, PlaceholderSyntax::DoubleBraces), literal);
        }
    }

    #[test]
    fn it_is_told_where_values_begin() {
        let text =
            Template::read("é in {{worktree_path}}, {{context}}{{worktree_path}}", PlaceholderSyntax::DoubleBraces)
                .text;
        let is_asked_for = |path: &ValuePath| path.head() == "worktree_path";
        let (filled, begins) = text.fill_telling(&|path| Some(format!("<{path}>")), &is_asked_for).unwrap();
        assert_eq!(filled, "é in <worktree_path>, <context><worktree_path>");
        assert!(begins.iter().all(|at| filled[*at..].starts_with("<worktree_path>")), "{begins:?}");
        assert_eq!(begins.len(), 2);
    }

    #[test]
    fn dollars_of_recipes() {
        assert_eq!(
            filled("${input.name}, ${ plan.output.items[0] }", PlaceholderSyntax::Dollar),
            "<input.name>, <plan.output.items.0>"
        );
        assert_eq!(filled("$${HOME} $HOME {a}", PlaceholderSyntax::Dollar), "${HOME} $HOME {a}");
        assert_eq!(filled("a ${b:-c} d", PlaceholderSyntax::Dollar), "a ${b:-c} d !`${b:-c}` is not a variable");
        assert_eq!(filled("a ${b", PlaceholderSyntax::Dollar), "a ${b !`${` without its `}`");
        assert_eq!(filled("é$${é${é}", PlaceholderSyntax::Dollar), "é${é<é>");
    }

    #[test]
    fn placeholders_know_their_place() {
        let text = "a ${b.c} d";
        let found = Template::read(text, PlaceholderSyntax::Dollar).placeholders;
        assert_eq!(&text[found[0].at.clone()], "${b.c}");
    }
}
