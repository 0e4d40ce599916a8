//! Commands as the shell cuts them up: words, separators, redirections, subshells and `case`. What a word means is
//! decided in `simple`.

use super::CommandScanner;
use super::contexts::{Brackets, ShellContext};
use super::refusals;
use super::simple::{CasePart, CommandList, CommandListEnd, WordEnd, WordPosition};

impl CommandScanner<'_> {
    pub(super) fn commands(&mut self) {
        let open = self.words().is_some_and(|commands| commands.word.open);
        match self.text.as_bytes()[self.at] {
            b'\\' if self.ahead("\\\n").is_some() => self.at += 2,
            b'\\' => {
                self.at += 1;
                self.literal(true);
            }
            b'\'' => self.quote(ShellContext::Single),
            b'"' => self.quote(ShellContext::Double),
            b'`' => self.expand(ShellContext::Backquotes, 1),
            b'$' => self.dollar(),
            b'#' if !open => self.at += self.rest().find('\n').unwrap_or(self.rest().len()),
            byte @ (b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')') => self.operator(byte),
            _ => self.literal(false),
        }
    }

    fn quote(&mut self, quotes: ShellContext) {
        if let Some(commands) = self.words_mut() {
            commands.word.open_quotes();
        }
        self.enter(quotes, 1);
    }

    fn operator(&mut self, byte: u8) {
        if byte == b'(' && self.words().is_some_and(|commands| commands.word.is_empty_assignment()) {
            return self.expand(Brackets::Array.open(), 1);
        }
        let number = b"<>".contains(&byte) && self.words_mut().is_some_and(CommandList::drop_number);
        if !number && self.end_word() {
            return;
        }
        match byte {
            b' ' | b'\t' => self.at += 1,
            b'<' | b'>' => self.redirection(),
            b'(' => self.opening(),
            b')' => self.closing(),
            _ => self.separator(byte),
        }
    }

    /// Ends the word, if one is being read. Says whether that led into another context or out of one.
    pub(super) fn end_word(&mut self) -> bool {
        let Some(ShellContext::Commands(commands)) = self.frames.last_mut().map(|frame| &mut frame.context) else {
            return false;
        };
        let documents = commands.documents;
        match commands.end_word() {
            WordEnd::None => return false,
            WordEnd::Case => {
                let ends = CommandListEnd::Case(CasePart::Subject);
                self.enter(ShellContext::Commands(CommandList::new(ends, documents)), 0);
            }
            WordEnd::Esac => self.leave(0),
            WordEnd::Test => self.enter(ShellContext::Test, 0),
            WordEnd::Format(at) => {
                self.refuse(at, &refusals::FORMAT);
                return false;
            }
            WordEnd::Lost(refusal) => self.lose(refusal),
        }
        true
    }

    fn separator(&mut self, byte: u8) {
        let doubled = byte == b';' && (self.ahead(";;").is_some() || self.ahead(";&").is_some());
        self.at += 1;
        let Some(commands) = self.words_mut() else { return };
        commands.separate();
        if doubled && let CommandListEnd::Case(part @ CasePart::Body) = &mut commands.ends {
            *part = CasePart::Patterns { first: true };
            // `;;&` of bash as well; a `&` or `;` before a pattern means nothing else.
        }
        let documents = commands.documents;
        if byte == b'\n' && !self.documents.is_empty() {
            self.documents(documents);
        }
    }

    fn redirection(&mut self) {
        if let Some(len) = self.ahead("<(").or_else(|| self.ahead(">(")) {
            let commands = CommandList::new(CommandListEnd::Substitution, self.documents.len());
            return self.expand(ShellContext::Commands(commands), len);
        }
        let here = self.ahead("<<").filter(|_| self.ahead("<<<").is_none());
        if let Some(len) = here {
            return self.announce(len);
        }
        let operators = ["<<<", ">>", ">&", ">|", "<&", "<>", ">", "<"];
        self.at += operators.iter().find_map(|operator| self.ahead(operator)).unwrap_or(1);
        if let Some(commands) = self.words_mut() {
            commands.redirected = true;
        }
    }

    /// `(`: a subshell, arithmetic, a function, or what stands before a pattern of `case`.
    fn opening(&mut self) {
        let double = self.ahead("((");
        let empty = self.empty_parentheses();
        let Some(commands) = self.words_mut() else { return };
        let documents = commands.documents;
        match (&mut commands.ends, commands.position) {
            (CommandListEnd::Case(CasePart::Patterns { first: first @ true }), _) => {
                *first = false;
                self.at += 1;
            }
            (CommandListEnd::Case(CasePart::Subject | CasePart::In | CasePart::Patterns { .. }), _) => {
                self.lose(&refusals::AFTER_OPENING)
            }
            (_, position) => match (position, empty, double) {
                // No subshell is empty: it is a function.
                (_, Some(len), _) => {
                    commands.separate();
                    self.at += len;
                }
                (WordPosition::Start, _, Some(len)) => {
                    commands.position = WordPosition::Arguments;
                    self.enter(Brackets::Command.open(), len);
                }
                (WordPosition::ForName, _, Some(len)) => {
                    commands.position = WordPosition::ForIn;
                    self.enter(Brackets::Command.open(), len);
                }
                (WordPosition::Start, ..) => {
                    commands.position = WordPosition::Arguments;
                    let commands = CommandList::new(CommandListEnd::Subshell, documents);
                    self.enter(ShellContext::Commands(commands), 1);
                }
                _ => self.lose(&refusals::AFTER_OPENING),
            },
        }
    }

    /// The length of `( )`.
    fn empty_parentheses(&self) -> Option<usize> {
        let inner = self.rest().strip_prefix('(')?.trim_start_matches([' ', '\t']);
        inner.starts_with(')').then(|| self.rest().len() - inner.len() + 1)
    }

    fn closing(&mut self) {
        let pending = self.documents.len();
        let Some(commands) = self.words_mut() else { return };
        match commands.ends {
            CommandListEnd::Case(CasePart::Patterns { .. }) => {
                commands.separate();
                commands.ends = CommandListEnd::Case(CasePart::Body);
                self.at += 1;
            }
            CommandListEnd::Subshell => self.leave(1),
            CommandListEnd::Substitution if pending > commands.documents => self.lose(&refusals::AFTER_DOCUMENT),
            CommandListEnd::Substitution => self.leave(1),
            CommandListEnd::Script => self.lose(&refusals::AFTER_PARENTHESIS),
            CommandListEnd::Case(_) => self.lose(&refusals::AFTER_CASE),
        }
    }
}
