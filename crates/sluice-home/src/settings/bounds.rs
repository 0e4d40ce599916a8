//! How long a text may be that somebody says about work. What is only told is cut, and says so; what is read by machines
//! is never cut.

pub use sluice_api::work::{LONGEST_PROGRESS, LONGEST_SUMMARY, LONGEST_VALUE, LONGEST_WORD};

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
