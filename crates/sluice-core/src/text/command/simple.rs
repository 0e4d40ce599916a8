//! What a word of a command means: reserved words, names of commands that evaluate their arguments, and the text of
//! `sh -c`. Only what shells evaluate is known here; to every other program a value is an argument.

use std::ops::Range;

use super::refusals::{self, VariableRefusal};

/// Words are compared with known ones, all of them shorter.
const LONGEST: usize = 64;
/// What runs the text behind `-c`.
const SHELLS: [&str; 9] = ["sh", "ash", "bash", "dash", "ksh", "mksh", "rbash", "yash", "zsh"];
/// Variables that shells evaluate when they are set, or when a script runs. Not those of interactive shells alone
/// (`PS1`, `ENV`): `ENV=${input.stage} make` is too common to refuse for nothing.
const EVALUATED: [&str; 8] = ["BASH_ENV", "HISTCMD", "LINENO", "OPTIND", "PS4", "RANDOM", "SECONDS", "SRANDOM"];

/// Commands, up to what ends them, and where in them the shell is.
#[derive(Debug)]
pub(super) struct CommandList {
    pub(super) ends: CommandListEnd,
    pub(super) position: WordPosition,
    class: CommandClass,
    pub(super) word: CommandWord,
    /// The next word is the target of a redirection, and no argument.
    pub(super) redirected: bool,
    /// How many here-documents had been announced around the innermost `$( )`.
    pub(super) documents: usize,
}

#[derive(Debug)]
pub(super) enum CommandListEnd {
    /// The end of the text.
    Script,
    /// The `)` of a subshell.
    Subshell,
    /// The `)` of `$( )`, in the middle of a word.
    Substitution,
    /// `esac`. The `)` behind a pattern ends nothing.
    Case(CasePart),
}

/// The parts of `case … in … esac`.
#[derive(Debug)]
pub(super) enum CasePart {
    Subject,
    In,
    Patterns {
        /// Nothing of the pattern was read.
        first: bool,
    },
    Body,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WordPosition {
    /// Where a reserved word, an assignment or the name of a command may stand.
    Start,
    /// Behind `for` or `select`, where the name of the variable stands.
    ForName,
    /// Behind the name of `for`.
    ForIn,
    /// Behind `function`, where the name of the function stands.
    FunctionName,
    /// Behind `command`, which runs what follows.
    Wrapped,
    Arguments,
}

#[derive(Debug)]
enum CommandClass {
    /// Nothing that is known.
    Plain,
    Refuses(&'static VariableRefusal),
    /// A command that declares variables and takes `name=value`, such as `export`.
    Declares,
    /// A test, written as `test` or `[`.
    Tests {
        /// The next word may be the name of a variable, whose subscript bash evaluates.
        name: bool,
    },
    /// `printf`, whose first argument is a format.
    Prints {
        /// The format is still to come.
        format: bool,
        /// The variable that the format begins with.
        variable: Option<Range<usize>>,
    },
    Shell {
        /// Whether `-c` was read, so that the next word is a script.
        text: bool,
        /// Words to come that belong to options.
        skip: usize,
        /// `su` takes options behind its user.
        anywhere: bool,
    },
}

#[derive(Debug)]
pub(super) enum WordEnd {
    None,
    Case,
    Esac,
    Test,
    /// The variable here is a format of `printf` with arguments.
    Format(Range<usize>),
    Lost(&'static VariableRefusal),
}

#[derive(Debug, Default)]
pub(super) struct CommandWord {
    /// Its text without its quotes.
    text: String,
    pub(super) open: bool,
    quoted: bool,
    /// Holds something that only the shell knows.
    pub(super) unknown: bool,
    /// Begins with `name=` without quotes.
    assigned: bool,
    /// Whether the word begins with `name=`, in quotes or not.
    named: bool,
    /// The double quotes that are open began it.
    begun_by_quotes: bool,
}

impl CommandWord {
    pub(super) fn push(&mut self, c: char, quoted: bool) {
        self.open = true;
        self.quoted |= quoted;
        if c == '=' && !self.unknown && !self.named && is_name(self.text.strip_suffix('+').unwrap_or(&self.text)) {
            self.named = true;
            self.assigned = !self.quoted;
        }
        if self.text.len() < LONGEST {
            self.text.push(c);
        }
    }

    pub(super) fn open_quotes(&mut self) {
        self.begun_by_quotes = !self.open;
        self.open = true;
        self.quoted = true;
    }

    /// Nothing of it was read but the quotes that are open.
    pub(super) fn begins_here(&self) -> bool {
        self.begun_by_quotes && self.text.is_empty() && !self.unknown
    }

    pub(super) fn is_empty_assignment(&self) -> bool {
        self.assigned && self.text.ends_with('=') && !self.unknown
    }

    /// The text, if the shell may take it for a reserved word.
    fn reserved(&self) -> Option<&str> {
        (!self.quoted && !self.unknown).then_some(self.text.as_str())
    }

    /// The name of the program that it calls, as far as it can be told: `$x/bash` is a bash.
    fn program(&self) -> Option<&str> {
        match self.text.rsplit_once('/') {
            Some((_, name)) => Some(name),
            None if self.unknown => (self.text == "SHELL").then_some("sh"),
            None => Some(&self.text),
        }
    }

    fn is_option(&self) -> bool {
        !self.unknown && self.text.starts_with(['-', '+'])
    }

    /// The name before `=`.
    fn name(&self) -> &str {
        self.text.split(['=', '+']).next().unwrap_or_default()
    }

    /// Inside the `[ ]` of `name[…]=`, which bash evaluates.
    fn in_subscript(&self) -> bool {
        let split = self.text.split_once('[').filter(|(name, _)| is_name(name));
        split.is_some_and(|(_, inner)| !inner.contains("]=") && !inner.contains("]+="))
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

impl CommandList {
    pub(super) fn new(ends: CommandListEnd, documents: usize) -> Self {
        let (position, class, word) = (WordPosition::Start, CommandClass::Plain, CommandWord::default());
        CommandList { ends, position, class, word, redirected: false, documents }
    }

    pub(super) fn separate(&mut self) {
        self.position = WordPosition::Start;
        self.class = CommandClass::Plain;
        self.redirected = false;
    }

    /// Forgets a word that is the number before `<` or `>`.
    pub(super) fn drop_number(&mut self) -> bool {
        let number =
            self.word.reserved().is_some_and(|text| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()));
        if number {
            self.word = CommandWord::default();
        }
        number
    }

    /// Why the word being read refuses a variable; `whole` says that it is all of the word.
    pub(super) fn refusal(&self, whole: bool) -> Option<&'static VariableRefusal> {
        let word = &self.word;
        if self.redirected
            || matches!(self.ends, CommandListEnd::Case(CasePart::Subject | CasePart::In | CasePart::Patterns { .. }))
        {
            return None;
        }
        let assigns =
            word.assigned && self.position == WordPosition::Start || matches!(self.class, CommandClass::Declares);
        if assigns && word.named && EVALUATED.contains(&word.name()) {
            return Some(&refusals::EVALUATED);
        }
        if self.position == WordPosition::Start {
            return word.in_subscript().then_some(&refusals::ARITHMETIC);
        }
        match &self.class {
            CommandClass::Refuses(refusal) => Some(refusal),
            CommandClass::Declares if !word.named => Some(&refusals::DECLARED),
            CommandClass::Tests { name: true } => Some(&refusals::TESTED),
            CommandClass::Prints { format: true, .. } if word.text.starts_with("-v") => Some(&refusals::PRINT_VARIABLE),
            CommandClass::Shell { text: true, skip: 0, .. } if !whole => Some(&refusals::SHELL_TEXT),
            _ => None,
        }
    }

    /// A variable was filled in at `at`, in the word being read.
    pub(super) fn filled(&mut self, at: &Range<usize>) {
        let begins = self.word.text.is_empty() && !self.word.unknown && !self.redirected;
        if let CommandClass::Prints { format: true, variable } = &mut self.class
            && begins
        {
            *variable = Some(at.clone());
        }
    }

    /// Ends the word, if one is being read.
    pub(super) fn end_word(&mut self) -> WordEnd {
        if !self.word.open {
            return WordEnd::None;
        }
        let word = std::mem::take(&mut self.word);
        if std::mem::take(&mut self.redirected) {
            return WordEnd::None;
        }
        if let CommandListEnd::Case(part) = &mut self.ends
            && !matches!(part, CasePart::Body)
        {
            return part.end_word(&word);
        }
        match self.position {
            WordPosition::Start => return self.first_word(&word),
            WordPosition::ForName => self.position = WordPosition::ForIn,
            WordPosition::ForIn if word.reserved() == Some("do") => self.position = WordPosition::Start,
            WordPosition::ForIn => self.position = WordPosition::Arguments,
            WordPosition::FunctionName => self.position = WordPosition::Start,
            WordPosition::Wrapped if word.is_option() => {}
            WordPosition::Wrapped => self.name(&word),
            WordPosition::Arguments => return self.argument(&word),
        }
        WordEnd::None
    }

    fn first_word(&mut self, word: &CommandWord) -> WordEnd {
        match word.reserved() {
            Some("if" | "then" | "elif" | "else" | "while" | "until" | "do" | "{" | "!" | "time" | "coproc") => {}
            Some("for" | "select") => self.position = WordPosition::ForName,
            Some("function") => self.position = WordPosition::FunctionName,
            Some("case") => {
                self.position = WordPosition::Arguments;
                return WordEnd::Case;
            }
            Some("[[") => {
                self.position = WordPosition::Arguments;
                return WordEnd::Test;
            }
            Some("esac") if matches!(self.ends, CommandListEnd::Case(_)) => return WordEnd::Esac,
            Some("}" | "fi" | "done") => self.position = WordPosition::Arguments,
            // `x[1]=` is an assignment as well, and an option here belongs to `time`.
            _ if word.assigned || word.is_option() || word.text.contains("]=") => {}
            _ => self.name(word),
        }
        WordEnd::None
    }

    fn name(&mut self, word: &CommandWord) {
        self.position = WordPosition::Arguments;
        self.class = match word.program().unwrap_or_default() {
            "command" | "builtin" => {
                self.position = WordPosition::Wrapped;
                CommandClass::Plain
            }
            "eval" => CommandClass::Refuses(&refusals::EVAL),
            "let" => CommandClass::Refuses(&refusals::LET),
            "trap" => CommandClass::Refuses(&refusals::TRAP),
            "alias" => CommandClass::Refuses(&refusals::ALIAS),
            "read" => CommandClass::Refuses(&refusals::READ),
            "unset" => CommandClass::Refuses(&refusals::UNSET),
            "mapfile" | "readarray" => CommandClass::Refuses(&refusals::MAPFILE),
            "complete" | "compgen" => CommandClass::Refuses(&refusals::COMPLETE),
            "declare" | "typeset" | "local" | "export" | "readonly" => CommandClass::Declares,
            "test" | "[" => CommandClass::Tests { name: false },
            "printf" => CommandClass::Prints { format: true, variable: None },
            _ => CommandClass::shell(word),
        };
    }

    fn argument(&mut self, word: &CommandWord) -> WordEnd {
        match &mut self.class {
            // `sudo sh -c`, `find -exec sh -c`: what runs the shell is not known, nor need it be.
            CommandClass::Plain => self.class = CommandClass::shell(word),
            CommandClass::Refuses(_) => {}
            // An integer is evaluated whenever it is set, a reference whenever it is used.
            CommandClass::Declares if word.is_option() && word.text.contains(['i', 'n']) => {
                return WordEnd::Lost(&refusals::AFTER_INTEGER);
            }
            CommandClass::Declares => {}
            CommandClass::Tests { name } => *name = word.unknown || word.text == "-v",
            CommandClass::Prints { format: true, .. } if word.is_option() && word.text == "-v" => {
                self.class = CommandClass::Refuses(&refusals::PRINT_VARIABLE);
            }
            CommandClass::Prints { format: format @ true, .. } => *format = false,
            CommandClass::Prints { variable, .. } => return variable.take().map_or(WordEnd::None, WordEnd::Format),
            CommandClass::Shell { skip, .. } if *skip > 0 => *skip -= 1,
            CommandClass::Shell { text, skip, .. } if word.is_option() => {
                let short = !word.text.starts_with("--");
                *text |= short && word.text.contains('c');
                *skip = match word.text.as_str() {
                    "--rcfile" | "--init-file" => 1,
                    options if short => options.matches(['o', 'O']).count(),
                    _ => 0,
                };
            }
            CommandClass::Shell { text: false, anywhere: true, .. } => {}
            CommandClass::Shell { text: false, .. } if word.unknown => {}
            // The text of `-c`, or a file; what follows are its arguments.
            CommandClass::Shell { .. } => self.class = CommandClass::Plain,
        }
        WordEnd::None
    }
}

impl CommandClass {
    fn shell(word: &CommandWord) -> Self {
        match word.program() {
            Some("su" | "runuser") => CommandClass::Shell { text: false, skip: 0, anywhere: true },
            Some(name) if SHELLS.contains(&name) => CommandClass::Shell { text: false, skip: 0, anywhere: false },
            _ => CommandClass::Plain,
        }
    }
}

impl CasePart {
    fn end_word(&mut self, word: &CommandWord) -> WordEnd {
        match self {
            CasePart::Subject => *self = CasePart::In,
            CasePart::In if word.reserved() == Some("in") => *self = CasePart::Patterns { first: true },
            CasePart::In => return WordEnd::Lost(&refusals::AFTER_CASE),
            CasePart::Patterns { first: true } if word.reserved() == Some("esac") => return WordEnd::Esac,
            CasePart::Patterns { first } => *first = false,
            CasePart::Body => {}
        }
        WordEnd::None
    }
}
