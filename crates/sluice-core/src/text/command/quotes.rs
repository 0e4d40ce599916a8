//! The contexts in which no command can begin: quotes, expansions, arithmetic. Each step finds what ends them or what
//! opens another.

use super::CommandScanner;
use super::contexts::{Brackets, CountedBrackets, ShellContext};
use super::refusals;
use super::simple::{CommandList, CommandListEnd};

impl CommandScanner<'_> {
    /// What may stand unquoted, between double quotes, in expansions and in arithmetic alike. Says whether it was that.
    fn common(&mut self, byte: u8) -> bool {
        match byte {
            b'\\' => self.escape(),
            b'`' => self.expand(ShellContext::Backquotes, 1),
            b'$' => self.dollar(),
            _ => return false,
        }
        true
    }

    /// Passes over a backslash and what it quotes, without adding it to the word.
    pub(super) fn escape(&mut self) {
        self.at += 1;
        if self.at < self.text.len() {
            self.forward();
        }
    }

    /// A `$` that begins none of Sluice's variables.
    pub(super) fn dollar(&mut self) {
        let unquoted = match self.context() {
            ShellContext::Commands(_) | ShellContext::Test => true,
            ShellContext::Expansion { quoted } => !quoted,
            _ => false,
        };
        if let Some(len) = self.ahead("$((") {
            self.expand(Brackets::Expansion.open(), len);
        } else if let Some(len) = self.ahead("$(") {
            let commands = CommandList::new(CommandListEnd::Substitution, self.documents.len());
            self.expand(ShellContext::Commands(commands), len);
        } else if let Some(len) = self.ahead("$[") {
            self.expand(Brackets::Old.open(), len);
        } else if let Some(len) = self.ahead("$'").filter(|_| unquoted) {
            self.expand(ShellContext::Ansi, len);
        } else if self.rest().starts_with("$$(") || self.rest().starts_with("$$[") {
            // Between double quotes bash looks for the end of a `$(` here, and then expands none.
            self.lose(&refusals::AFTER_DOLLARS);
        } else {
            // `$$` is the number of the process, so that the second one begins nothing, unless Sluice reads it.
            let number = self.rest().starts_with("$$") && !self.rest().starts_with("$$${");
            self.unknown_word();
            self.at += if number { 2 } else { 1 };
        }
    }

    pub(super) fn double(&mut self) {
        let byte = self.text.as_bytes()[self.at];
        match byte {
            b'"' => self.leave(1),
            b'\\' if self.ahead("\\\n").is_some() => self.at += 2,
            b'\\' => {
                self.unknown_word();
                self.escape();
            }
            _ if self.common(byte) => {}
            _ => self.literal(true),
        }
    }

    pub(super) fn single(&mut self) {
        match self.text.as_bytes()[self.at] {
            b'\'' => self.leave(1),
            _ => self.literal(true),
        }
    }

    /// For dash `$'` is a dollar and a quote, which the quote of `\'` ends.
    pub(super) fn ansi(&mut self) {
        match self.text.as_bytes()[self.at] {
            b'\'' => self.leave(1),
            b'\\' if self.rest().starts_with("\\'") => self.lose(&refusals::AFTER_QUOTE),
            b'\\' => self.escape(),
            _ => self.forward(),
        }
    }

    pub(super) fn backquotes(&mut self) {
        match self.text.as_bytes()[self.at] {
            b'`' => self.leave(1),
            b'\\' => self.escape(),
            _ => self.forward(),
        }
    }

    pub(super) fn literal(&mut self, quoted: bool) {
        let Some(c) = self.rest().chars().next() else { return };
        self.at += c.len_utf8();
        if let Some(commands) = self.words_mut() {
            commands.word.push(c, quoted);
        }
    }

    /// A `$${` has no comments and no commands of its own; the brace that ends it is the first unquoted one.
    pub(super) fn expansion(&mut self) {
        let byte = self.text.as_bytes()[self.at];
        let quoted = matches!(self.context(), ShellContext::Expansion { quoted: true });
        match byte {
            b'}' => self.leave(1),
            b'"' => self.enter(ShellContext::Double, 1),
            // In `"${x:-it's}"` it is an apostrophe, in `"${x#'}'}"` a quote, and not in all shells.
            b'\'' if quoted => self.lose(&refusals::AFTER_QUOTE),
            b'\'' => self.enter(ShellContext::Single, 1),
            _ if self.common(byte) => {}
            _ => self.forward(),
        }
    }

    /// `[[ ]]` ends at the word `]]`.
    pub(super) fn test(&mut self) {
        let byte = self.text.as_bytes()[self.at];
        let blank = |at: usize, bytes: &[u8]| self.byte_at(at).is_none_or(|byte| bytes.contains(&byte));
        match byte {
            b']' if self.rest().starts_with("]]")
                && blank(self.at.wrapping_sub(1), b" \t\n")
                && blank(self.at + 2, b" \t\n;&|<>()") =>
            {
                self.leave(2)
            }
            b'"' => self.enter(ShellContext::Double, 1),
            b'\'' => self.enter(ShellContext::Single, 1),
            _ if self.common(byte) => {}
            _ => self.forward(),
        }
    }

    /// Arithmetic and arrays. Ending at the first `))` would end `$(( (1+(2)) + x ))` too early.
    pub(super) fn counted(&mut self) {
        let byte = self.text.as_bytes()[self.at];
        let ShellContext::Counted(CountedBrackets { what, depth }) = *self.context() else { return };
        let (open, close) = if what == Brackets::Old { (b'[', b']') } else { (b'(', b')') };
        let doubled = matches!(what, Brackets::Expansion | Brackets::Command);
        match byte {
            b'"' => self.enter(ShellContext::Double, 1),
            b'\'' => self.enter(ShellContext::Single, 1),
            _ if byte == open => self.recount(depth + 1),
            _ if byte == close && depth == 2 && doubled => match self.ahead("))") {
                Some(len) => self.leave(len),
                // Subshells after all, for some shells.
                None => self.lose(&refusals::AFTER_DOUBLE),
            },
            _ if byte == close && depth == 1 => self.leave(1),
            _ if byte == close => self.recount(depth - 1),
            _ if self.common(byte) => {}
            _ => self.forward(),
        }
    }

    fn recount(&mut self, depth: usize) {
        self.at += 1;
        if let Some(ShellContext::Counted(counted)) = self.frames.last_mut().map(|frame| &mut frame.context) {
            counted.depth = depth;
        }
    }
}
