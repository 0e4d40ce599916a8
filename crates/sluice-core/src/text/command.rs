//! A command for the shell with `${…}` in it. Values never become part of the script.
//!
//! Each variable is replaced by the expansion of an environment variable that carries the value, quoted as its
//! place demands. Quoting the value into the script (what most systems do) is one forgotten context away from
//! running it. Where the shell would not expand, or would evaluate what it expanded, the variable is refused.

use std::ops::Range;

use super::{BadPlaceholder, Placeholder, Reading, dollar_path};
use crate::expr::Path;

/// A script, and the variables that its environment must carry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// What the shell is given.
    pub script: String,
    /// Names of environment variables and the paths of the values in them.
    pub environment: Vec<(String, Path)>,
}

/// A variable that stands where it cannot be filled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unexpanded {
    /// The placeholder.
    pub at: Range<usize>,
    /// Where it stands: "inside single quotes".
    pub place: &'static str,
}

impl Command {
    /// Reads `text`; the second part tells of variables that stand where they cannot be filled.
    pub fn read(text: &str) -> (Reading<Command>, Vec<Unexpanded>) {
        let mut scanner = Scanner {
            text,
            at: 0,
            copied: 0,
            contexts: vec![Context::Plain],
            here_documents: Vec::new(),
            reading: Reading {
                text: Command { script: String::new(), environment: Vec::new() },
                placeholders: Vec::new(),
                bad: Vec::new(),
            },
            unexpanded: Vec::new(),
        };
        while scanner.at < text.len() {
            scanner.step();
        }
        scanner.copy_to(text.len());
        (scanner.reading, scanner.unexpanded)
    }
}

/// What the shell is in the middle of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Context {
    Plain,
    /// Inside `( )` or `$( )`.
    Parentheses,
    /// Inside `$(( ))`.
    Arithmetic,
    Double,
    Single,
    /// Inside `$' '`.
    Ansi,
    Backquotes,
    HereDocument,
}

struct HereDocument<'a> {
    end: &'a str,
    strip_tabs: bool,
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    /// Everything before this is in the script already.
    copied: usize,
    contexts: Vec<Context>,
    /// Announced on this line; their bodies start on the next.
    here_documents: Vec<HereDocument<'a>>,
    reading: Reading<Command>,
    unexpanded: Vec<Unexpanded>,
}

impl<'a> Scanner<'a> {
    fn context(&self) -> Context {
        self.contexts.last().copied().unwrap_or(Context::Plain)
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn copy_to(&mut self, end: usize) {
        self.reading.text.script.push_str(&self.text[self.copied..end]);
        self.copied = end;
    }

    fn step(&mut self) {
        if self.rest().starts_with("$${") {
            self.copy_to(self.at);
            self.reading.text.script.push_str("${");
            self.at += 3;
            self.copied = self.at;
            return;
        }
        if self.rest().starts_with("${") {
            return self.variable();
        }
        match self.context() {
            Context::Plain | Context::Parentheses | Context::Backquotes => self.plain(),
            Context::Arithmetic => self.arithmetic(),
            Context::Double => self.double(),
            Context::Single => self.until('\'', false),
            Context::Ansi => self.until('\'', true),
            Context::HereDocument => self.forward(),
        }
    }

    /// One character on.
    fn forward(&mut self) {
        self.at += self.rest().chars().next().map_or(1, char::len_utf8);
    }

    fn enter(&mut self, context: Context, len: usize) {
        self.contexts.push(context);
        self.at += len;
    }

    fn leave(&mut self, len: usize) {
        if self.contexts.len() > 1 {
            self.contexts.pop();
        }
        self.at += len;
    }

    fn plain(&mut self) {
        let rest = self.rest();
        if rest.starts_with("$((") {
            self.enter(Context::Arithmetic, 3);
        } else if rest.starts_with("$(") {
            self.enter(Context::Parentheses, 2);
        } else if rest.starts_with("$'") {
            self.enter(Context::Ansi, 2);
        } else if rest.starts_with("<<<") {
            self.at += 3;
        } else if rest.starts_with("<<") {
            self.announce();
        } else {
            self.plain_character(rest.as_bytes()[0]);
        }
    }

    fn plain_character(&mut self, first: u8) {
        match first {
            b'\\' => self.escape(),
            b'\'' => self.enter(Context::Single, 1),
            b'"' => self.enter(Context::Double, 1),
            b'`' if self.context() == Context::Backquotes => self.leave(1),
            b'`' => self.enter(Context::Backquotes, 1),
            b'(' => self.enter(Context::Parentheses, 1),
            b')' if self.context() == Context::Parentheses => self.leave(1),
            b'#' if self.starts_word() => self.at += self.rest().find('\n').unwrap_or(self.rest().len()),
            b'\n' => {
                self.at += 1;
                self.bodies();
            }
            _ => self.forward(),
        }
    }

    fn starts_word(&self) -> bool {
        self.text[..self.at].chars().next_back().is_none_or(|c| c.is_whitespace() || ";&|(".contains(c))
    }

    fn escape(&mut self) {
        self.at += 1;
        if self.at < self.text.len() {
            self.forward();
        }
    }

    fn double(&mut self) {
        let rest = self.rest();
        match rest.as_bytes()[0] {
            b'\\' => self.escape(),
            b'"' => self.leave(1),
            b'`' => self.enter(Context::Backquotes, 1),
            b'$' if rest.starts_with("$((") => self.enter(Context::Arithmetic, 3),
            b'$' if rest.starts_with("$(") => self.enter(Context::Parentheses, 2),
            _ => self.forward(),
        }
    }

    fn arithmetic(&mut self) {
        match self.rest().starts_with("))") {
            true => self.leave(2),
            false => self.forward(),
        }
    }

    fn until(&mut self, close: char, escapes: bool) {
        match self.rest().chars().next() {
            Some('\\') if escapes => self.escape(),
            Some(c) if c == close => self.leave(1),
            _ => self.forward(),
        }
    }

    /// `<<END`, `<<-END`, `<<'END'`: the lines after this one are text until `END`.
    fn announce(&mut self) {
        self.at += 2;
        let strip_tabs = self.rest().starts_with('-');
        self.at += usize::from(strip_tabs);
        self.at += self.rest().len() - self.rest().trim_start_matches([' ', '\t']).len();
        let rest = self.rest();
        let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let word = &rest[usize::from(quote.is_some()).min(rest.len())..];
        let word = word.strip_prefix('\\').unwrap_or(word);
        let len = word
            .find(|c: char| match quote {
                Some(quote) => c == quote,
                None => c.is_whitespace() || ";&|()<>".contains(c),
            })
            .unwrap_or(word.len());
        let end = &word[..len];
        let consumed = rest.len() - word.len() + len + usize::from(quote.is_some());
        self.at = (self.at + consumed).min(self.text.len());
        if !end.is_empty() {
            self.here_documents.push(HereDocument { end, strip_tabs });
        }
    }

    /// Passes over the bodies of the here-documents that this line announced.
    fn bodies(&mut self) {
        for document in std::mem::take(&mut self.here_documents) {
            self.contexts.push(Context::HereDocument);
            while self.at < self.text.len() {
                let line_end = self.rest().find('\n').map_or(self.text.len(), |offset| self.at + offset);
                let line = &self.text[self.at..line_end];
                let shown = if document.strip_tabs { line.trim_start_matches('\t') } else { line };
                if shown == document.end {
                    self.at = line_end;
                    break;
                }
                while self.at < line_end {
                    self.step();
                }
                self.at = (line_end + 1).min(self.text.len()).max(self.at);
            }
            self.contexts.pop();
        }
    }

    fn variable(&mut self) {
        let start = self.at;
        let (path, end) = match dollar_path(self.text, start + 2) {
            Ok(found) => found,
            Err(bad) => {
                let message = format!("{}; `$${{` leaves it to the shell", bad.message);
                self.reading.bad.push(BadPlaceholder { at: bad.at.clone(), message });
                self.at = bad.at.end;
                return;
            }
        };
        self.at = end;
        let quoted = match self.context() {
            Context::Plain | Context::Parentheses => true,
            Context::Backquotes => !self.contexts.contains(&Context::Double),
            Context::Double => false,
            Context::Single | Context::Ansi => return self.refuse(start..end, "inside single quotes"),
            Context::HereDocument => return self.refuse(start..end, "inside a here-document"),
            Context::Arithmetic => return self.refuse(start..end, "inside an arithmetic expansion"),
        };
        self.copy_to(start);
        self.copied = end;
        let name = self.environment_name(&path);
        let expansion = if quoted { format!("\"${{{name}}}\"") } else { format!("${{{name}}}") };
        self.reading.text.script.push_str(&expansion);
        self.reading.placeholders.push(Placeholder { path, at: start..end });
    }

    fn refuse(&mut self, at: Range<usize>, place: &'static str) {
        self.unexpanded.push(Unexpanded { at, place });
    }

    fn environment_name(&mut self, path: &Path) -> String {
        let environment = &mut self.reading.text.environment;
        if let Some((name, _)) = environment.iter().find(|(_, known)| known == path) {
            return name.clone();
        }
        let name = format!("SLUICE_VALUE_{}", environment.len() + 1);
        environment.push((name.clone(), path.clone()));
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(text: &str) -> String {
        let (reading, unexpanded) = Command::read(text);
        let bad: String = reading.bad.iter().map(|bad| format!(" !{}", bad.message)).collect();
        let refused: String = unexpanded.iter().map(|found| format!(" !{}", found.place)).collect();
        reading.text.script.replace("SLUICE_VALUE_", "V") + &bad + &refused
    }

    #[test]
    fn expansions_fit_their_quotes() {
        assert_eq!(script("echo ${a} \"x ${a}\" ${b}"), "echo \"${V1}\" \"x ${V1}\" \"${V2}\"");
        assert_eq!(script("echo \"$(cat ${a})\" ${b}"), "echo \"$(cat \"${V1}\")\" \"${V2}\"");
        assert_eq!(script("echo \"`cat ${a}`\""), "echo \"`cat ${V1}`\"");
        assert_eq!(script("echo $${HOME} $HOME \\${a} \\' ${b}"), "echo ${HOME} $HOME \\${a} \\' \"${V1}\"");
        assert_eq!(script("# it's ${a}\necho ${b}"), "# it's ${a}\necho \"${V1}\"");
    }

    #[test]
    fn places_that_do_not_expand_are_refused() {
        assert_eq!(script("echo '${a}'"), "echo '${a}' !inside single quotes");
        assert_eq!(script("echo $'\\'${a}'"), "echo $'\\'${a}' !inside single quotes");
        assert_eq!(script("cat <<E\n${a}\nE\necho ${b}"), "cat <<E\n${a}\nE\necho \"${V1}\" !inside a here-document");
        assert_eq!(script("cat <<-'E F' x\n\t${a}\n\tE F\necho '${b}'").matches('!').count(), 2);
        assert_eq!(script("echo $((1 + ${a}))"), "echo $((1 + ${a})) !inside an arithmetic expansion");
        assert_eq!(script("cat <<<${a}"), "cat <<<\"${V1}\"");
    }

    #[test]
    fn shell_expansions_must_be_said_to_be_such() {
        assert_eq!(
            script("echo ${A:-b} ${c}"),
            "echo ${A:-b} \"${V1}\" !`${A:-b}` is not a variable; `$${` leaves it to the shell"
        );
    }

    #[test]
    fn broken_scripts_end() {
        for text in
            ["'", "\"", "`", "$(", "$((", "<<", "<<'", "<<E", "<<E\n", "\\", "${", "$$", "$${", "<<-\\", "é<<é\né"]
        {
            script(text);
        }
    }
}
