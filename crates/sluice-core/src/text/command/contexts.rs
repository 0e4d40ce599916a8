//! What the shell is in the middle of: a stack of contexts, each with what it refuses. It reads no text.

use super::Scanner;
use super::refusals::{self, Refusal};
use super::simple::Commands;

/// More contexts in each other than this are nobody's script.
const DEEPEST: usize = 200;

/// What the shell is in the middle of.
#[derive(Debug)]
pub(super) enum Context {
    /// Commands: the script, or what is between `( )`, `$( )`, or `case` and `esac`.
    Commands(Commands),
    /// Between double quotes.
    Double,
    /// Between single quotes.
    Single,
    /// Inside `$' '`.
    Ansi,
    /// Between backquotes; they end at the next one without a backslash, whatever is between.
    Backquotes,
    /// Inside arithmetic or an array, which end when as many brackets are closed as were opened.
    Counted(Counted),
    /// Inside a `${ }` of the shell, written `$${ }`.
    Expansion {
        /// Whether it stands between double quotes or in arithmetic; shells then disagree about single quotes.
        quoted: bool,
    },
    /// Inside `[[ ]]`.
    Test,
    /// The text of a here-document.
    HereDocument,
    /// Behind something that shells read differently, or that is broken. Nothing ends it.
    Lost,
}

/// Brackets that are counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    pub(super) what: Brackets,
    /// How many are open.
    pub(super) depth: usize,
}

/// What is between brackets that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Brackets {
    /// `$(( ))`
    Expansion,
    /// `(( ))`, a command of bash, and two subshells for others.
    Command,
    /// `$[ ]`, which bash still knows.
    Old,
    /// `x=( )`
    Array,
}

impl Brackets {
    /// Just opened.
    pub(super) fn open(self) -> Context {
        let depth = match self {
            Brackets::Expansion | Brackets::Command => 2,
            Brackets::Old | Brackets::Array => 1,
        };
        Context::Counted(Counted { what: self, depth })
    }
}

/// A context on the stack.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) context: Context,
    /// Why variables are refused in here, because of it or of what is around it. What is around counts: the output of
    /// `$(echo ${a})` in `$(( ))` is evaluated no less than the value.
    refusal: Option<&'static Refusal>,
}

impl Frame {
    pub(super) fn script() -> Self {
        Frame { context: Context::Commands(Commands::script()), refusal: None }
    }
}

impl Context {
    fn refusal(&self) -> Option<&'static Refusal> {
        match self {
            Context::Commands(_) | Context::Double | Context::Lost => None,
            Context::Single | Context::Ansi => Some(&refusals::SINGLE_QUOTES),
            Context::Backquotes => Some(&refusals::BACKQUOTES),
            Context::Counted(Counted { what: Brackets::Array, .. }) => Some(&refusals::ARRAY),
            Context::Counted(_) => Some(&refusals::ARITHMETIC),
            Context::Expansion { .. } => Some(&refusals::EXPANSION),
            Context::Test => Some(&refusals::DOUBLE_BRACKETS),
            Context::HereDocument => Some(&refusals::HERE_DOCUMENT),
        }
    }
}

impl Scanner<'_> {
    /// The innermost context.
    pub(super) fn context(&self) -> &Context {
        self.frames.last().map_or(&Context::Lost, |frame| &frame.context)
    }

    /// Why a variable is refused here; `whole` says that it is all of its word.
    pub(super) fn refusal(&self, whole: bool) -> Option<&'static Refusal> {
        let around = self.frames.last().and_then(|frame| frame.refusal);
        around.or_else(|| self.words().and_then(|commands| commands.refusal(whole)))
    }

    /// Goes into `context`, which begins with `len` bytes.
    pub(super) fn enter(&mut self, context: Context, len: usize) {
        if self.frames.len() == DEEPEST {
            return self.lose(&refusals::TOO_DEEP);
        }
        let around = match context {
            // What a word refuses can change between its double quotes: `export "x=${a}"`.
            Context::Double => self.frames.last().and_then(|frame| frame.refusal),
            _ => self.refusal(false),
        };
        let refusal = around.or_else(|| context.refusal());
        self.frames.push(Frame { context, refusal });
        self.at += len;
    }

    /// Goes into `context`, an expansion in a word.
    pub(super) fn expand(&mut self, context: Context, len: usize) {
        self.enter(context, len);
        let inner = self.frames.pop();
        self.unknown_word();
        self.frames.extend(inner);
    }

    /// Leaves the innermost context, which ends with `len` bytes.
    pub(super) fn leave(&mut self, len: usize) {
        if self.frames.len() > 1 {
            self.frames.pop();
        }
        self.at += len;
    }

    /// From here on every variable is refused.
    pub(super) fn lose(&mut self, refusal: &'static Refusal) {
        self.frames.truncate(DEEPEST);
        self.frames.push(Frame { context: Context::Lost, refusal: Some(refusal) });
    }

    /// The commands whose word is being read, be it between quotes.
    pub(super) fn words(&self) -> Option<&Commands> {
        match self.frames.as_slice() {
            [.., Frame { context: Context::Commands(commands), .. }] => Some(commands),
            [.., Frame { context: Context::Commands(commands), .. }, quotes] if quotes.context.is_quotes() => {
                Some(commands)
            }
            _ => None,
        }
    }

    /// The same, to change them.
    pub(super) fn words_mut(&mut self) -> Option<&mut Commands> {
        match self.frames.as_mut_slice() {
            [.., Frame { context: Context::Commands(commands), .. }] => Some(commands),
            [.., Frame { context: Context::Commands(commands), .. }, quotes] if quotes.context.is_quotes() => {
                Some(commands)
            }
            _ => None,
        }
    }

    /// The word being read holds something that only the shell knows.
    pub(super) fn unknown_word(&mut self) {
        if let Some(commands) = self.words_mut() {
            commands.word.open = true;
            commands.word.unknown = true;
        }
    }

    /// Whether the variable that ends at `end` is all of its word, with or without double quotes around it.
    pub(super) fn is_whole_word(&self, end: usize) -> bool {
        let Some(word) = self.words().map(|commands| &commands.word) else { return false };
        let end = match self.context() {
            Context::Double if word.begins_here() && self.byte_at(end) == Some(b'"') => end + 1,
            Context::Commands(_) if !word.open => end,
            _ => return false,
        };
        self.byte_at(end).is_none_or(|byte| b" \t\n;&|<>()".contains(&byte))
    }
}

impl Context {
    fn is_quotes(&self) -> bool {
        matches!(self, Context::Double | Context::Single)
    }
}
