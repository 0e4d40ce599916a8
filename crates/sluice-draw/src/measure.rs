//! How wide text is on a terminal, and what of it may be shown at all.
//!
//! It never lets a control character through: a name must not move the cursor of whoever looks at the picture.

/// `text` on one line: control characters and line ends become spaces, marks that reorder text are dropped.
pub(crate) fn clean(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if c.is_control() || c == '\u{2028}' || c == '\u{2029}' => {
                if !cleaned.ends_with(' ') {
                    cleaned.push(' ');
                }
            }
            '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => {}
            '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {}
            c => cleaned.push(c),
        }
    }
    cleaned.trim().to_owned()
}

/// The columns that `c` takes on a terminal.
pub(crate) fn char_width(c: char) -> usize {
    match u32::from(c) {
        0x0300..=0x036f | 0x0483..=0x0489 | 0x0591..=0x05bd | 0x064b..=0x065f | 0x0900..=0x0902 => 0,
        0x0e31 | 0x0e34..=0x0e3a | 0x0e47..=0x0e4e | 0x1ab0..=0x1aff | 0x20d0..=0x20f0 | 0xfe00..=0xfe0f => 0,
        0x1100..=0x115f | 0x2e80..=0x303e | 0x3041..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff => 2,
        0xfe30..=0xfe6f | 0xff00..=0xff60 | 0xffe0..=0xffe6 | 0x1f300..=0x1faff | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

/// The columns that `text` takes on a terminal.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

/// `text` in at most `limit` columns, with `…` for what was cut off.
pub(crate) fn clip(text: &str, limit: usize) -> String {
    if width(text) <= limit {
        return text.to_owned();
    }
    let (mut kept, mut used) = (String::new(), 1);
    for c in text.chars() {
        used += char_width(c);
        if used > limit {
            break;
        }
        kept.push(c);
    }
    let mut kept = kept.trim_end().to_owned();
    if limit > 0 {
        kept.push('…');
    }
    kept
}

/// `text` in lines of at most `limit` columns, broken at spaces, and at most `lines` of them.
pub(crate) fn wrap(text: &str, limit: usize, lines: usize) -> Vec<String> {
    let mut wrapped: Vec<String> = Vec::new();
    let mut used = 0;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let needed = used + 1 + width(word);
        let full = wrapped.len() >= lines.max(1);
        match wrapped.last_mut() {
            // The last line takes all that is left, and is clipped.
            Some(line) if needed <= limit || full => {
                line.push(' ');
                line.push_str(word);
                used = needed;
            }
            _ => {
                wrapped.push(word.to_owned());
                used = width(word);
            }
        }
    }
    wrapped.iter().map(|line| clip(line, limit)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_moves_the_cursor() {
        assert_eq!(clean("a\u{1b}[31m\r\nb\u{202e}c\t"), "a [31m bc");
    }

    #[test]
    fn widths_are_columns() {
        assert_eq!((width("né"), width("ne\u{301}"), width("日本"), width("⇄")), (2, 2, 4, 1));
        assert_eq!(clip("日本語", 5), "日本…");
        assert_eq!(clip("abc", 3), "abc");
    }

    #[test]
    fn lines_break_at_spaces_and_end() {
        assert_eq!(wrap("a.result == 'PASS' && b", 12, 3), ["a.result ==", "'PASS' && b"]);
        assert_eq!(wrap("one two three four", 5, 2), ["one", "two…"]);
        assert_eq!(wrap("incomprehensibilities", 8, 2), ["incompr…"]);
    }
}
