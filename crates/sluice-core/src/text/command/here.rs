//! Here-documents: their announcements and their texts. Variables are refused in all of them, with and without quotes
//! around the delimiter: a rule that hangs on three characters on another line is not one to remember.

use super::CommandScanner;
use super::contexts::ShellContext;
use super::refusals;

/// A here-document that was announced and whose text has not been read.
#[derive(Debug)]
pub(super) struct HereDocument {
    /// The line that ends it.
    end: String,
    /// Whether it was announced with `<<-`, so that tabs before its lines are dropped.
    strip_tabs: bool,
    /// Whether the shell expands the text, and joins lines that end in a backslash.
    expands: bool,
}

impl CommandScanner<'_> {
    /// `<<END`, `<<-END`, `<<'END'`: the lines after this one are text until `END`. `len` is that of the operator.
    pub(super) fn announce(&mut self, len: usize) {
        self.at += len;
        let strip_tabs = self.rest().starts_with('-');
        self.at += usize::from(strip_tabs);
        while let Some(len) = [" ", "\t", "\\\n"].iter().find(|blank| self.rest().starts_with(**blank)).map(|b| b.len())
        {
            self.at += len;
        }
        match self.delimiter() {
            Some((end, expands)) => self.documents.push(HereDocument { end, strip_tabs, expands }),
            None => self.lose(&refusals::AFTER_DOCUMENT),
        }
    }

    /// The delimiter without its quotes, and whether it had none; nothing if shells differ about it.
    fn delimiter(&mut self) -> Option<(String, bool)> {
        let (mut end, mut quote, mut expands, start) = (String::new(), None, true, self.at);
        while let Some(c) = self.rest().chars().next() {
            match c {
                _ if quote == Some(c) => quote = None,
                '\'' | '"' if quote.is_none() => (quote, expands) = (Some(c), false),
                '\\' if quote != Some('\'') => {
                    self.at += 1;
                    let next = self.rest().chars().next()?;
                    match next {
                        '\n' => {}
                        _ if quote.is_none() || "\\\"".contains(next) => end.push(next),
                        _ => return None,
                    }
                    expands &= next == '\n';
                    self.forward();
                    continue;
                }
                '$' | '`' => return None,
                '\n' if quote.is_some() => return None,
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>' if quote.is_none() => break,
                _ => end.push(c),
            }
            self.at += c.len_utf8();
        }
        (self.at > start && quote.is_none()).then_some((end, expands))
    }

    /// Passes over the texts of the here-documents from `from` on; the line that announced them has just ended.
    pub(super) fn documents(&mut self, from: usize) {
        if from > 0 {
            // Announced outside of the `$( )` that this line ends in; shells look for the text in different places.
            return self.lose(&refusals::AFTER_DOCUMENT);
        }
        for document in std::mem::take(&mut self.documents) {
            self.enter(ShellContext::HereDocument, 0);
            if matches!(self.context(), ShellContext::Lost) {
                return;
            }
            self.document(&document);
            self.leave(0);
        }
    }

    fn document(&mut self, document: &HereDocument) {
        let mut joined = false;
        while self.at < self.text.len() {
            let line_end = self.rest().find('\n').map_or(self.text.len(), |offset| self.at + offset);
            let line = &self.text[self.at..line_end];
            let shown = if document.strip_tabs { line.trim_start_matches('\t') } else { line };
            let ends = shown == document.end && !joined;
            while !ends && self.at < line_end {
                self.step();
            }
            self.at = (line_end + 1).min(self.text.len());
            if ends {
                return;
            }
            let backslashes = line.bytes().rev().take_while(|byte| *byte == b'\\').count();
            joined = document.expands && backslashes % 2 == 1;
        }
    }
}
