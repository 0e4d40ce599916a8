//! What the shell is in the middle of: a stack of contexts, each with what it refuses. It reads no text.

use super::CommandScanner;
use super::refusals::{self, VariableRefusal};
use super::simple::{CommandList, CommandListEnd};

/// More contexts in each other than this are nobody's script.
const DEEPEST: usize = 200;

#[derive(Debug)]
pub(super) enum ShellContext {
    /// Commands: the script, or what is between `( )`, `$( )`, or `case` and `esac`.
    Commands(CommandList),
    /// Text between double quotes, where variables may stand.
    Double,
    /// Text between single quotes, where the shell expands nothing.
    Single,
    /// Text inside `$' '`, where the shell reads backslash escapes.
    Ansi,
    /// Between backquotes; they end at the next one without a backslash, whatever is between.
    Backquotes,
    /// Inside arithmetic or an array, which end when as many brackets are closed as were opened.
    Counted(CountedBrackets),
    /// Inside a `${ }` of the shell, written `$${ }`.
    Expansion {
        /// Whether it stands between double quotes or in arithmetic; shells then disagree about single quotes.
        quoted: bool,
    },
    /// A test of bash, inside `[[ ]]`.
    Test,
    /// The text of a here-document.
    HereDocument,
    /// Behind something that shells read differently, or that is broken. Nothing ends it.
    Lost,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct CountedBrackets {
    pub(super) what: Brackets,
    pub(super) depth: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Brackets {
    /// An arithmetic expansion, inside `$(( ))`.
    Expansion,
    /// `(( ))`, a command of bash, and two subshells for others.
    Command,
    /// `$[ ]`, which bash still knows.
    Old,
    /// The values of an array assignment, inside `x=( )`.
    Array,
}

impl Brackets {
    pub(super) fn open(self) -> ShellContext {
        let depth = match self {
            Brackets::Expansion | Brackets::Command => 2,
            Brackets::Old | Brackets::Array => 1,
        };
        ShellContext::Counted(CountedBrackets { what: self, depth })
    }
}

#[derive(Debug)]
pub(super) struct ContextFrame {
    pub(super) context: ShellContext,
    /// Why variables are refused in here, because of it or of what is around it. What is around counts: the output of
    /// `$(echo ${a})` in `$(( ))` is evaluated no less than the value.
    refusal: Option<&'static VariableRefusal>,
}

impl ContextFrame {
    pub(super) fn script() -> Self {
        ContextFrame { context: ShellContext::Commands(CommandList::new(CommandListEnd::Script, 0)), refusal: None }
    }
}

impl ShellContext {
    fn refusal(&self) -> Option<&'static VariableRefusal> {
        match self {
            ShellContext::Commands(_) | ShellContext::Double | ShellContext::Lost => None,
            ShellContext::Single | ShellContext::Ansi => Some(&refusals::SINGLE_QUOTES),
            ShellContext::Backquotes => Some(&refusals::BACKQUOTES),
            ShellContext::Counted(CountedBrackets { what: Brackets::Array, .. }) => Some(&refusals::ARRAY),
            ShellContext::Counted(_) => Some(&refusals::ARITHMETIC),
            ShellContext::Expansion { .. } => Some(&refusals::EXPANSION),
            ShellContext::Test => Some(&refusals::DOUBLE_BRACKETS),
            ShellContext::HereDocument => Some(&refusals::HERE_DOCUMENT),
        }
    }
}

impl CommandScanner<'_> {
    pub(super) fn context(&self) -> &ShellContext {
        self.frames.last().map_or(&ShellContext::Lost, |frame| &frame.context)
    }

    /// Why a variable is refused here; `whole` says that it is all of its word.
    pub(super) fn refusal(&self, whole: bool) -> Option<&'static VariableRefusal> {
        let around = self.frames.last().and_then(|frame| frame.refusal);
        around.or_else(|| self.words().and_then(|commands| commands.refusal(whole)))
    }

    /// Goes into `context`, which begins with `len` bytes.
    pub(super) fn enter(&mut self, context: ShellContext, len: usize) {
        if self.frames.len() == DEEPEST {
            return self.lose(&refusals::TOO_DEEP);
        }
        let around = match context {
            // What a word refuses can change between its double quotes: `export "x=${a}"`.
            ShellContext::Double => self.frames.last().and_then(|frame| frame.refusal),
            _ => self.refusal(false),
        };
        let refusal = around.or_else(|| context.refusal());
        self.frames.push(ContextFrame { context, refusal });
        self.at += len;
    }

    /// Goes into `context`, an expansion in a word.
    pub(super) fn expand(&mut self, context: ShellContext, len: usize) {
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
    pub(super) fn lose(&mut self, refusal: &'static VariableRefusal) {
        self.frames.truncate(DEEPEST);
        self.frames.push(ContextFrame { context: ShellContext::Lost, refusal: Some(refusal) });
    }

    /// The commands whose word is being read, be it between quotes.
    pub(super) fn words(&self) -> Option<&CommandList> {
        match &self.frames.get(self.words_at()?)?.context {
            ShellContext::Commands(commands) => Some(commands),
            _ => None,
        }
    }

    /// The same, to change them.
    pub(super) fn words_mut(&mut self) -> Option<&mut CommandList> {
        let at = self.words_at()?;
        match &mut self.frames.get_mut(at)?.context {
            ShellContext::Commands(commands) => Some(commands),
            _ => None,
        }
    }

    /// The innermost frame, or the one around the quotes that are that.
    fn words_at(&self) -> Option<usize> {
        self.frames.len().checked_sub(if self.context().is_quotes() { 2 } else { 1 })
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
            ShellContext::Double if word.begins_here() && self.byte_at(end) == Some(b'"') => end + 1,
            ShellContext::Commands(_) if !word.open => end,
            _ => return false,
        };
        self.byte_at(end).is_none_or(|byte| b" \t\n;&|<>()".contains(&byte))
    }
}

impl ShellContext {
    fn is_quotes(&self) -> bool {
        matches!(self, ShellContext::Double | ShellContext::Single)
    }
}
