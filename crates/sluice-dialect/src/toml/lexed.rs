//! What the tokens of a TOML file tell before and beside its parser: that there is too much, and where keys stand.
//!
//! It knows just enough of the grammar to follow brackets, dots and headers, and it never judges the syntax. On a
//! file that is wrong it may follow it wrongly; then a limit is met too early or a first place is not found.

use crate::finding::too_deep;
use crate::tree::DEEPEST;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use toml_parser::Source;
use toml_parser::lexer::{Token, TokenKind};

/// How many tokens a file may have. The parser keeps them all, in some fifty bytes each.
const MOST_TOKENS: usize = 2_000_000;

/// Where and why the file is too much for the parser, which nests a table for each dot of a key and drops its tree
/// by recursion.
pub(super) fn too_much(text: &str) -> Option<(Range<usize>, String)> {
    /// A bracket that is open, and the dots since the last comma in it.
    struct Level {
        close: Option<TokenKind>,
        dots: usize,
    }
    let mut levels = vec![Level { close: None, dots: 0 }];
    let mut dots = 0;
    for (count, token) in Source::new(text).lex().enumerate() {
        if count == MOST_TOKENS {
            return Some((range(token), format!("the file has more than {MOST_TOKENS} words and signs")));
        }
        let top = levels.last_mut()?;
        match token.kind() {
            TokenKind::LeftSquareBracket => {
                levels.push(Level { close: Some(TokenKind::RightSquareBracket), dots: 0 });
            }
            TokenKind::LeftCurlyBracket => {
                levels.push(Level { close: Some(TokenKind::RightCurlyBracket), dots: 0 });
            }
            TokenKind::Dot => {
                top.dots += 1;
                dots += 1;
            }
            TokenKind::Comma | TokenKind::Newline => {
                dots -= top.dots;
                top.dots = 0;
            }
            kind if top.close == Some(kind) => {
                dots -= top.dots;
                levels.pop();
            }
            // Values and blanks nest nothing, and a bracket that closes nothing changes nothing. The enum is the
            // library's.
            _ => {}
        }
        if levels.len() + dots > DEEPEST + 1 {
            return Some((range(token), too_deep()));
        }
    }
    None
}

/// For each key in `again`, given by its start, the place where the same key stood first. None where it stands in
/// brackets: those are not followed, since the keys of such a table mostly share a line.
pub(super) fn first_places(text: &str, again: &[usize]) -> Vec<Option<Range<usize>>> {
    let wanted: HashSet<usize> = again.iter().copied().collect();
    let mut first: HashMap<u64, Range<usize>> = HashMap::new();
    let mut found = HashMap::new();
    for (path, place) in keys(text) {
        if wanted.contains(&place.start) {
            found.insert(place.start, first.get(&path).cloned());
        } else {
            // The latest, for the items of a list of tables have the same keys each.
            first.insert(path, place);
        }
    }
    again.iter().map(|start| found.get(start).cloned().flatten()).collect()
}

/// Every part of every key outside of brackets, under a hash of its whole path. The paths themselves would be as
/// long as the header above them, once for each key.
fn keys(text: &str) -> Vec<(u64, Range<usize>)> {
    let mut keys = Vec::new();
    let mut header = 0;
    let mut line: Vec<Token> = Vec::new();
    let mut depth = 0_usize;
    for token in Source::new(text).lex() {
        match token.kind() {
            TokenKind::Newline | TokenKind::Eof if depth == 0 => {
                let is_header = line.first().is_some_and(|token| token.kind() == TokenKind::LeftSquareBracket);
                let path = on_line(&line, if is_header { 0 } else { header }, text, &mut keys);
                header = if is_header { path } else { header };
                line.clear();
                continue;
            }
            TokenKind::Whitespace => continue,
            TokenKind::LeftSquareBracket | TokenKind::LeftCurlyBracket => depth += 1,
            TokenKind::RightSquareBracket | TokenKind::RightCurlyBracket => depth = depth.saturating_sub(1),
            _ => {}
        }
        line.push(token);
    }
    keys
}

/// The parts of the key that `line` begins with, below `path`.
fn on_line(line: &[Token], mut path: u64, text: &str, keys: &mut Vec<(u64, Range<usize>)>) -> u64 {
    for token in line.iter().skip_while(|token| token.kind() == TokenKind::LeftSquareBracket) {
        match token.kind() {
            TokenKind::Atom | TokenKind::BasicString | TokenKind::LiteralString => {
                let place = range(*token);
                let mut hasher = DefaultHasher::new();
                (path, super::unquoted(&text[place.clone()])).hash(&mut hasher);
                path = hasher.finish();
                keys.push((path, place));
            }
            TokenKind::Dot => {}
            _ => break,
        }
    }
    path
}

fn range(token: Token) -> Range<usize> {
    token.span().start()..token.span().end()
}
