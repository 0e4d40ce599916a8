//! Where the frontmatter ends and the body begins, also when somebody has broken it.

pub(super) const BOM: &[u8] = b"\xEF\xBB\xBF";

/// Bytes of a key; what is longer is no key.
const LONGEST_KEY: usize = 256;

/// A key with its value, over as many lines as it has; or a line without a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FrontmatterEntry {
    pub(super) key: Option<String>,
    pub(super) raw: Vec<u8>,
}

impl FrontmatterEntry {
    pub(super) fn value(&self) -> String {
        let text = String::from_utf8_lossy(&self.raw);
        key(&text).map_or_else(String::new, |(_, value)| value.trim().to_owned())
    }
}

/// A file in its parts, which together are the file: what stands before the frontmatter, its opening line, what is in
/// it, its closing line, and the body.
pub(super) fn split<'a>(bytes: &'a [u8], keys: &[&str]) -> [&'a [u8]; 5] {
    let all_body = |before: &[u8]| {
        let (before, body) = bytes.split_at(before.len());
        [before, b"", b"", b"", body]
    };
    let bom = if bytes.starts_with(BOM) { BOM } else { b"" };
    let blank: usize = lines(&bytes[bom.len()..]).take_while(|line| is_blank(line)).map(<[u8]>::len).sum();
    let (before, rest) = bytes.split_at(bom.len() + blank);
    let Some(opening) = lines(rest).next().filter(|line| is_fence(line, &["---"])) else { return all_body(bom) };
    let inner: Vec<&[u8]> = lines(&rest[opening.len()..]).collect();
    let closed = inner.iter().position(|line| is_fence(line, &["---", "..."]));
    let closed = closed.filter(|end| !holds_a_section(&inner[..*end], keys));
    let has_engine_key = |lines: &[&[u8]]| lines.iter().any(|line| has_key(line, keys));
    let end = match closed {
        Some(end) if has_engine_key(&inner[..end]) => end,
        // A person's own frontmatter, or none and a line across the page.
        Some(end) if blank == 0 && inner[..end].iter().all(|line| is_plausible(line)) => end,
        Some(_) => return all_body(bom),
        // It was never closed: it goes as far as it looks like one.
        None => {
            let end = inner.iter().position(|line| is_blank(line) || !is_plausible(line) || is_heading(line));
            let end = end.unwrap_or(inner.len());
            if !has_engine_key(&inner[..end]) {
                return all_body(bom);
            }
            end
        }
    };
    let inside_length = inner[..end].iter().map(|line| line.len()).sum();
    let (inside, rest) = rest[opening.len()..].split_at(inside_length);
    let closing_length = if closed.is_some() { inner[end].len() } else { 0 };
    let (closing, body) = rest.split_at(closing_length);
    [before, opening, inside, closing, body]
}

/// A `## ` line is a comment to YAML. With none of our keys behind it, it is the first section of a body, and the fence
/// found below it is a line across the page: somebody has lost the closing one.
fn holds_a_section(lines: &[&[u8]], keys: &[&str]) -> bool {
    let heading = lines.iter().position(|line| is_heading(line));
    heading.is_some_and(|index| !lines[index..].iter().any(|line| has_key(line, keys)))
}

pub(super) fn entries(inside: &[u8]) -> Vec<FrontmatterEntry> {
    let mut entries: Vec<FrontmatterEntry> = Vec::new();
    for line in lines(inside) {
        let continues = matches!(line.first(), Some(b' ' | b'\t')) || line.starts_with(b"- ");
        match entries.last_mut() {
            Some(entry) if continues && !is_blank(line) && entry.key.is_some() => entry.raw.extend_from_slice(line),
            Some(_) | None => {
                let name = std::str::from_utf8(line).ok().and_then(key).map(|(name, _)| name);
                entries.push(FrontmatterEntry { key: name, raw: line.to_vec() });
            }
        }
    }
    entries
}

/// `text`, at its beginning, as a key and what follows its colon.
fn key(text: &str) -> Option<(String, &str)> {
    let (name, rest) = match text.chars().next()? {
        quote @ ('"' | '\'') => {
            let end = text[1..].find(quote)? + 1;
            (super::scalar::read(&text[..=end])?, &text[end + 1..])
        }
        _ => {
            let end = text.find(':')?;
            let name = text[..end].trim_end_matches([' ', '\t']);
            if !is_plain_key(name) {
                return None;
            }
            (name.to_owned(), &text[end..])
        }
    };
    let value = rest.trim_start_matches([' ', '\t']).strip_prefix(':')?;
    let is_separate = value.is_empty() || value.starts_with([' ', '\t', '\r', '\n']);
    is_separate.then_some((name, value))
}

pub(super) fn is_plain_key(name: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    name.len() <= LONGEST_KEY
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(is_word)
}

fn has_key(line: &[u8], keys: &[&str]) -> bool {
    let name = std::str::from_utf8(line).ok().and_then(key).map(|(name, _)| name);
    name.is_some_and(|name| keys.contains(&name.as_str()))
}

fn is_plausible(line: &[u8]) -> bool {
    is_blank(line)
        || matches!(line.first(), Some(b' ' | b'\t' | b'#'))
        || line.starts_with(b"- ")
        || std::str::from_utf8(line).is_ok_and(|line| key(line).is_some())
}

fn is_heading(line: &[u8]) -> bool {
    line.starts_with(b"## ")
}

fn is_fence(line: &[u8], words: &[&str]) -> bool {
    words.iter().any(|word| line.trim_ascii_end() == word.as_bytes())
}

fn is_blank(line: &[u8]) -> bool {
    line.trim_ascii().is_empty()
}

/// The lines of `bytes`, each with its end.
fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n')
}
