//! Appending a section to a body so that it is one, whatever the body ends in.

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// What can keep a heading from being one, by what ends it: code fences and HTML that were not closed.
const ENDS: [&str; 11] =
    ["", "```", "~~~", "````", "~~~~", "`````", "-->", "</pre>", "</script>", "</style>", "</textarea>"];

/// `body` with a section `## title` below it that holds `text`.
///
/// Headings in `text` are escaped, so that they stay words of this section. Code fences that are left open, above or in
/// `text`, are closed: otherwise this section, or the next one, would be code.
pub fn append_section(body: &[u8], title: &str, text: &str) -> Vec<u8> {
    let newline = newline(body);
    let mut file = body.to_vec();
    if !file.is_empty() && !file.ends_with(b"\n") {
        file.extend_from_slice(newline.as_bytes());
    }
    close_what_is_open(&mut file, newline);
    let is_apart =
        file.is_empty() || file.ends_with(b"\n\n") || file.ends_with(b"\n\r\n") || file == newline.as_bytes();
    if !is_apart {
        file.extend_from_slice(newline.as_bytes());
    }
    let text = escaped(text.trim_end());
    let lines: Vec<&str> = text.lines().collect();
    file.extend_from_slice(format!("## {title}{newline}{newline}{}{newline}", lines.join(newline)).as_bytes());
    close_what_is_open(&mut file, newline);
    file
}

pub(super) fn newline(bytes: &[u8]) -> &'static str {
    match bytes.iter().position(|byte| *byte == b'\n') {
        Some(end) if end > 0 && bytes[end - 1] == b'\r' => "\r\n",
        Some(_) | None => "\n",
    }
}

fn close_what_is_open(file: &mut Vec<u8>, newline: &str) {
    let end = ENDS.iter().find(|end| {
        let line = if end.is_empty() { String::new() } else { format!("{end}{newline}") };
        let whole = format!("{}{line}{newline}", String::from_utf8_lossy(file));
        headings(&format!("{whole}## x\n")).last() == Some(&whole.len())
    });
    if let Some(end) = end.filter(|end| !end.is_empty()) {
        file.extend_from_slice(format!("{end}{newline}").as_bytes());
    }
}

/// Where the `## ` headings of `text` begin that make sections.
fn headings(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut depth = 0usize;
    for (event, range) in Parser::new_ext(text, Options::empty()).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { level: HeadingLevel::H2, .. })
                if depth == 0 && text[range.start..].starts_with("##") =>
            {
                found.push(range.start);
            }
            Event::Start(Tag::BlockQuote(_) | Tag::List(_)) => depth += 1,
            Event::End(TagEnd::BlockQuote(_) | TagEnd::List(_)) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    found
}

fn escaped(text: &str) -> String {
    let mut escaped = text.to_owned();
    for start in headings(text).into_iter().rev() {
        escaped.insert(start, '\\');
    }
    escaped
}
