//! What a program printed, kept up to a limit: its beginning and its end.

use std::collections::VecDeque;

/// What a program printed. What does not fit is left out of the middle, and counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// The beginning; everything, if nothing was left out.
    pub head: Vec<u8>,
    /// How many bytes after the beginning were left out.
    pub omitted: u64,
    /// The end, if something was left out.
    pub tail: Vec<u8>,
}

impl Captured {
    /// The whole as text; a line says where something was left out. Bytes that are not UTF-8 are replaced.
    pub fn text(&self) -> String {
        let head = String::from_utf8_lossy(&self.head);
        if self.omitted == 0 {
            return head.into_owned();
        }
        let tail = String::from_utf8_lossy(&self.tail);
        format!("{head}\n[{} bytes left out]\n{tail}", self.omitted)
    }
}

/// Keeps what is pushed: the first half of the limit as it comes, and the last half of it.
pub(super) struct Capture {
    half: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    seen: u64,
}

impl Capture {
    pub(super) fn new(limit: usize) -> Self {
        Self { half: limit / 2, head: Vec::new(), tail: VecDeque::new(), seen: 0 }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.seen += bytes.len() as u64;
        let (to_head, to_tail) = bytes.split_at(bytes.len().min(self.half - self.head.len()));
        self.head.extend_from_slice(to_head);
        self.tail.extend(&to_tail[to_tail.len().saturating_sub(self.half)..]);
        let surplus = self.tail.len().saturating_sub(self.half);
        self.tail.drain(..surplus);
    }

    pub(super) fn finish(mut self) -> Captured {
        let omitted = self.seen - self.head.len() as u64 - self.tail.len() as u64;
        let tail: Vec<u8> = self.tail.into();
        if omitted > 0 {
            return Captured { head: self.head, omitted, tail };
        }
        self.head.extend(tail);
        Captured { head: self.head, omitted: 0, tail: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(limit: usize, pieces: &[&str]) -> String {
        let mut capture = Capture::new(limit);
        for piece in pieces {
            capture.push(piece.as_bytes());
        }
        capture.finish().text()
    }

    #[test]
    fn the_middle_is_left_out() {
        assert_eq!(captured(8, &["abcd", "ef", "gh"]), "abcdefgh");
        assert_eq!(captured(8, &["abc", "defghi"]), "abcd\n[1 bytes left out]\nfghi");
        assert_eq!(captured(8, &["abcdefghijkl", "m"]), "abcd\n[5 bytes left out]\njklm");
        assert_eq!(captured(0, &["abc"]), "\n[3 bytes left out]\n");
        assert_eq!(captured(8, &[]), "");
    }
}
