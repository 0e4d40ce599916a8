//! How long a text may be that somebody says about work. What is only told is cut, and says so; what is read by machines
//! is never cut.

/// Bytes of one line of progress.
pub const LONGEST_PROGRESS: usize = 4 << 10;
/// Bytes of a summary, or of why something failed.
pub const LONGEST_SUMMARY: usize = 256 << 10;
/// Bytes of a word that conditions read, or of a name.
pub const LONGEST_WORD: usize = 4 << 10;
/// Bytes of the value that a step gives.
pub const LONGEST_VALUE: usize = 4 << 20;

/// A text of at most so many bytes, and a little more: what is left out of its middle is counted.
pub fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(most / 2);
    let tail = text.ceil_char_boundary(text.len() - most / 2);
    format!("{}\n[{} bytes left out]\n{}", &text[..head], tail - head, &text[tail..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_says_so() {
        assert_eq!(cut("short", 5), "short");
        assert_eq!(cut("abcdefghij", 4), "ab\n[6 bytes left out]\nij");
        assert_eq!(cut("ééééé", 5), "é\n[6 bytes left out]\né");
    }
}
