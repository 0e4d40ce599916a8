//! A line of a script in its steps, and a step in its words. Quotes and brackets hold together what belongs together.

pub(super) const VERBS: [&str; 28] = [
    "work", "ok", "commit", "edit", "delete", "write", "update", "review", "pass", "sluice", "git", "say", "json",
    "wait", "tell", "exit", "drop", "merge", "crash", "hang", "ignore", "leave", "talk", "print", "forge", "touch",
    "try", "refused",
];

/// The steps of a line: `a; b`, `a, then b`, `a then b`.
pub(super) fn pieces(line: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut start = 0;
    for (index, _) in outside(line) {
        if index < start {
            continue;
        }
        let rest = &line[index..];
        let separator = [";", ", then ", " then "].iter().find(|separator| rest.starts_with(**separator));
        if let Some(separator) = separator {
            pieces.push(&line[start..index]);
            start = index + separator.len();
        }
    }
    pieces.push(&line[start..]);
    pieces.into_iter().map(str::trim).filter(|piece| !piece.is_empty()).collect()
}

/// The characters that stand outside quotes and brackets, with their places.
fn outside(line: &str) -> impl Iterator<Item = (usize, char)> {
    let mut is_quoted = false;
    let mut is_escaped = false;
    let mut depth = 0usize;
    line.char_indices().filter(move |(_, c)| {
        let was_outside = !is_quoted && depth == 0;
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            '{' | '[' if !is_quoted => depth += 1,
            '}' | ']' if !is_quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        was_outside && *c != '"'
    })
}

/// The words of a step; in double quotes `\n`, `\"` and `\\` are what they are elsewhere.
pub(super) fn words(step: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut current: Option<String> = None;
    let mut characters = step.chars();
    while let Some(c) = characters.next() {
        match c {
            c if c.is_whitespace() => words.extend(current.take()),
            '"' => quoted(&mut characters, current.get_or_insert_default()),
            c => current.get_or_insert_default().push(c),
        }
    }
    words.extend(current);
    words
}

fn quoted(characters: &mut std::str::Chars<'_>, word: &mut String) {
    while let Some(c) = characters.next() {
        match c {
            '"' => return,
            '\\' => match characters.next() {
                Some('n') => word.push('\n'),
                Some(other) => word.push(other),
                None => return,
            },
            c => word.push(c),
        }
    }
}
