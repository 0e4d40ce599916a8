//! Values of the frontmatter: written so that every YAML reader understands them, read as far as they are plain.

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FrontmatterScalar {
    Null,
    Number(i64),
    Text(String),
}

impl FrontmatterScalar {
    /// As words; nothing is no words.
    pub fn text(&self) -> String {
        match self {
            FrontmatterScalar::Null => String::new(),
            FrontmatterScalar::Number(number) => number.to_string(),
            FrontmatterScalar::Text(text) => text.clone(),
        }
    }
}

/// `key: value`, with the end of the line.
pub(super) fn line(key: &str, value: &FrontmatterScalar, newline: &str) -> String {
    let key = if super::split::is_plain_key(key) { key.to_owned() } else { quoted(key) };
    let value = match value {
        FrontmatterScalar::Null => "null".to_owned(),
        FrontmatterScalar::Number(number) => number.to_string(),
        FrontmatterScalar::Text(text) if is_plain(text) => text.clone(),
        FrontmatterScalar::Text(text) => quoted(text),
    };
    format!("{key}: {value}{newline}")
}

/// Whether a text can stand without quotes and is a text to every reader, not a number, a truth value or a time.
fn is_plain(text: &str) -> bool {
    let starts_like_a_word = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '/');
    let is_harmless = |c: char| c.is_ascii_alphanumeric() || " _./@+-,()".contains(c);
    let means_something = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"]
        .iter()
        .any(|word| text.eq_ignore_ascii_case(word));
    let is_time = text.contains('T') && text.ends_with('Z') && text.len() <= 30;
    let is_time = is_time && text.bytes().all(|byte| byte.is_ascii_digit() || b"-:.TZ".contains(&byte));
    let is_address = text.starts_with("https://") && text[8..].chars().all(|c| is_harmless(c) && c != ' ');
    let is_word = starts_like_a_word && text.chars().all(is_harmless) && !text.ends_with(' ') && !means_something;
    is_word || is_time || is_address
}

/// In double quotes. What a reader might take for the end of a line, or not show, is written as its number.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{2028}' | '\u{2029}' | '\u{FEFF}' | '\u{FFFE}' | '\u{FFFF}' => {
                quoted.push_str(&format!("\\u{:04X}", c as u32));
            }
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", c as u32)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// What stands behind a key, if it is a plain value: words, quoted or not, on one line or folded over several.
///
/// Lists, tables, references and tags are not read.
pub(super) fn read(value: &str) -> Option<String> {
    let value = value.trim();
    match value.chars().next() {
        None => Some(String::new()),
        Some('"') => double_quoted(&unfolded(value)),
        Some('\'') => single_quoted(&unfolded(value)),
        Some('|' | '>') => Some(block(value)),
        Some('[' | '{' | '&' | '*' | '!' | '%' | '@' | '`' | '#') => None,
        Some(_) if value.starts_with("- ") => None,
        Some(_) => {
            let words = value.lines().map(|line| line.split(" #").next().unwrap_or_default().trim());
            let words = words.collect::<Vec<_>>().join(" ");
            Some(if matches!(words.as_str(), "~" | "null" | "Null" | "NULL") { String::new() } else { words })
        }
    }
}

/// Folded lines as one: a line's end is a blank, an empty line is a line's end.
fn unfolded(value: &str) -> String {
    let mut whole = String::with_capacity(value.len());
    let mut lines = value.lines().map(str::trim).peekable();
    while let Some(line) = lines.next() {
        let (line, is_joined) = match line.strip_suffix('\\') {
            Some(before) if !before.ends_with('\\') => (before, true),
            Some(_) | None => (line, false),
        };
        whole.push_str(line);
        match lines.peek() {
            Some(&"") => whole.push('\n'),
            Some(_) if !is_joined && !whole.ends_with('\n') => whole.push(' '),
            Some(_) | None => {}
        }
    }
    whole
}

fn double_quoted(value: &str) -> Option<String> {
    let mut read = String::new();
    let mut rest = value.chars();
    rest.next();
    loop {
        match rest.next()? {
            '"' => return is_end(rest.as_str()).then_some(read),
            '\\' => read.push(escape(&mut rest)?),
            c => read.push(c),
        }
    }
}

fn escape(rest: &mut std::str::Chars<'_>) -> Option<char> {
    let digits = match rest.next()? {
        '0' => return Some('\0'),
        'a' => return Some('\u{7}'),
        'b' => return Some('\u{8}'),
        'e' => return Some('\u{1B}'),
        'f' => return Some('\u{C}'),
        'n' => return Some('\n'),
        'r' => return Some('\r'),
        't' => return Some('\t'),
        'v' => return Some('\u{B}'),
        'N' => return Some('\u{85}'),
        '_' => return Some('\u{A0}'),
        'L' => return Some('\u{2028}'),
        'P' => return Some('\u{2029}'),
        'x' => 2,
        'u' => 4,
        'U' => 8,
        other => return Some(other),
    };
    let first = number(rest, digits)?;
    // What writes JSON writes a character beyond the first plane as two halves.
    if digits == 4 && (0xD800..0xDC00).contains(&first) && rest.as_str().starts_with("\\u") {
        let second = number(&mut rest.as_str()[2..].chars(), 4)?;
        if (0xDC00..0xE000).contains(&second) {
            rest.nth(5);
            return char::from_u32(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00));
        }
    }
    char::from_u32(first)
}

fn number(rest: &mut std::str::Chars<'_>, digits: usize) -> Option<u32> {
    let text: String = rest.by_ref().take(digits).collect();
    if text.len() != digits || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u32::from_str_radix(&text, 16).ok()
}

fn single_quoted(value: &str) -> Option<String> {
    let mut read = String::new();
    let mut rest = value.chars();
    rest.next();
    loop {
        match rest.next()? {
            '\'' if rest.as_str().starts_with('\'') => {
                rest.next();
                read.push('\'');
            }
            '\'' => return is_end(rest.as_str()).then_some(read),
            c => read.push(c),
        }
    }
}

/// Behind the quotes nothing may stand but a comment.
fn is_end(rest: &str) -> bool {
    let rest = rest.trim();
    rest.is_empty() || rest.starts_with('#')
}

/// A block of lines, `|` or `>`: here only its words matter, not how its lines end.
fn block(value: &str) -> String {
    value.lines().skip(1).map(str::trim).collect::<Vec<_>>().join("\n").trim().to_owned()
}
