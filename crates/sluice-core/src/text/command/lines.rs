//! Commands as the shell cuts them up: words, separators, redirections, subshells and `case`. What a word means is
//! decided in `simple`.

use super::Scanner;
use super::contexts::{Brackets, Context};
use super::refusals;
use super::simple::{Case, Commands, Ends, Event, Position};

impl Scanner<'_> {
    pub(super) fn commands(&mut self) {
        let open = self.words().is_some_and(|commands| commands.word.open);
        match self.text.as_bytes()[self.at] {
            b'\\' if self.ahead("\\\n").is_some() => self.at += 2,
            b'\\' => {
                self.at += 1;
                self.literal(true);
            }
            b'\'' => self.quote(Context::Single),
            b'"' => self.quote(Context::Double),
            b'`' => self.expand(Context::Backquotes, 1),
            b'$' => self.dollar(),
            b'#' if !open => self.at += self.rest().find('\n').unwrap_or(self.rest().len()),
            byte @ (b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')') => self.operator(byte),
            _ => self.literal(false),
        }
    }

    fn quote(&mut self, quotes: Context) {
        if let Some(commands) = self.words_mut() {
            commands.word.open_quotes();
        }
        self.enter(quotes, 1);
    }

    /// A character that ends a word.
    fn operator(&mut self, byte: u8) {
        if byte == b'(' && self.words().is_some_and(|commands| commands.word.is_empty_assignment()) {
            return self.expand(Brackets::Array.open(), 1);
        }
        let number = b"<>".contains(&byte) && self.words_mut().is_some_and(Commands::drop_number);
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
        let Some(Context::Commands(commands)) = self.frames.last_mut().map(|frame| &mut frame.context) else {
            return false;
        };
        let documents = commands.documents;
        match commands.end_word() {
            Event::None => return false,
            Event::Case => self.enter(Context::Commands(Commands::case(documents)), 0),
            Event::Esac => self.leave(0),
            Event::Test => self.enter(Context::Test, 0),
            Event::Format(at) => {
                self.refuse(at, &refusals::FORMAT);
                return false;
            }
            Event::Lost(refusal) => self.lose(refusal),
        }
        true
    }

    fn separator(&mut self, byte: u8) {
        let doubled = byte == b';' && (self.ahead(";;").is_some() || self.ahead(";&").is_some());
        self.at += 1;
        let Some(commands) = self.words_mut() else { return };
        commands.separate();
        if doubled && let Ends::Case(part @ Case::Body) = &mut commands.ends {
            *part = Case::Patterns { first: true };
            // `;;&` of bash as well; a `&` or `;` before a pattern means nothing else.
        }
        let documents = commands.documents;
        if byte == b'\n' && !self.documents.is_empty() {
            self.documents(documents);
        }
    }

    fn redirection(&mut self) {
        if let Some(len) = self.ahead("<(").or_else(|| self.ahead(">(")) {
            let commands = Commands::substitution(self.documents.len());
            return self.expand(Context::Commands(commands), len);
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
            (Ends::Case(Case::Patterns { first: first @ true }), _) => {
                *first = false;
                self.at += 1;
            }
            (Ends::Case(Case::Subject | Case::In | Case::Patterns { .. }), _) => self.lose(&refusals::AFTER_OPENING),
            (_, position) => match (position, empty, double) {
                // No subshell is empty: it is a function.
                (_, Some(len), _) => {
                    commands.separate();
                    self.at += len;
                }
                (Position::Start, _, Some(len)) => {
                    commands.position = Position::Arguments;
                    self.enter(Brackets::Command.open(), len);
                }
                (Position::ForName, _, Some(len)) => {
                    commands.position = Position::ForIn;
                    self.enter(Brackets::Command.open(), len);
                }
                (Position::Start, ..) => {
                    commands.position = Position::Arguments;
                    self.enter(Context::Commands(Commands::subshell(documents)), 1);
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
            Ends::Case(Case::Patterns { .. }) => {
                commands.separate();
                commands.ends = Ends::Case(Case::Body);
                self.at += 1;
            }
            Ends::Subshell => self.leave(1),
            Ends::Substitution if pending > commands.documents => self.lose(&refusals::AFTER_DOCUMENT),
            Ends::Substitution => self.leave(1),
            Ends::Script => self.lose(&refusals::AFTER_PARENTHESIS),
            Ends::Case(_) => self.lose(&refusals::AFTER_CASE),
        }
    }
}
