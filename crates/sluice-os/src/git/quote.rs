//! Paths as git writes them: bytes, quoted as in C where they must be text.
//!
//! Never lossy: a path of any bytes comes back as it was.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The path in double quotes, in ASCII.
pub(crate) fn quote(path: &[u8]) -> String {
    let mut text = String::from("\"");
    for byte in path {
        match byte {
            b'"' => text.push_str("\\\""),
            b'\\' => text.push_str("\\\\"),
            0x20..=0x7e => text.push(char::from(*byte)),
            _ => text.push_str(&format!("\\{byte:03o}")),
        }
    }
    text.push('"');
    text
}

/// The path that was quoted; nothing if it was not.
pub(crate) fn unquote(text: &str) -> Option<Vec<u8>> {
    let mut rest = text.strip_prefix('"')?.strip_suffix('"')?.bytes();
    let mut path = Vec::new();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            path.push(byte);
            continue;
        }
        match rest.next()? {
            escaped @ (b'"' | b'\\') => path.push(escaped),
            first @ b'0'..=b'3' => {
                let digits = [first, rest.next()?, rest.next()?];
                path.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 8).ok()?);
            }
            _ => return None,
        }
    }
    Some(path)
}

/// The path for a message: as it is if that is harmless, else quoted.
pub(crate) fn shown(path: &[u8]) -> String {
    match std::str::from_utf8(path) {
        Ok(text) if !text.chars().any(|it| it.is_control() || it == '"' || it == '\\') => text.to_owned(),
        _ => quote(path),
    }
}

/// The first of some names for a message, and how many more there are.
pub(crate) fn first_of(mut names: Vec<String>, most: usize) -> String {
    let more = names.len().saturating_sub(most);
    names.truncate(most);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    names.join(", ") + &rest
}

pub(crate) fn path_of(folder: &Path, path: &[u8]) -> PathBuf {
    folder.join(OsStr::from_bytes(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_comes_back() {
        let all: Vec<u8> = (1..=255).collect();
        for path in [b"plain".as_slice(), b"\"q\"", b"a\\n", b"a\nb", "käse".as_bytes(), &[0xff, 0xfe], &all, b""] {
            assert_eq!(unquote(&quote(path)).as_deref(), Some(path));
        }
        for broken in ["", "\"", "plain", "\"\\x\"", "\"\\9\"", "\"\\1\""] {
            assert_eq!(unquote(broken), None, "{broken}");
        }
        assert_eq!(shown("käse".as_bytes()), "käse");
        assert_eq!(shown(b"a\nb"), "\"a\\012b\"");
    }
}
