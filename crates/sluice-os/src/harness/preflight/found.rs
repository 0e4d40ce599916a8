//! Where programs are that can be started, and what kind of file they are.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Bytes of a script that are read to learn who interprets it.
const FIRST_LINE: u64 = 128;
const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "ksh", "fish", "busybox"];

/// The program of this name, if it can be started from this folder with this PATH.
pub fn find_program(program: &str, path: Option<&str>, folder: &Path) -> Option<PathBuf> {
    let is_program =
        |path: &PathBuf| path.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0);
    // One with a `/` in it is taken as it is, and `join` does so for one that begins with it.
    let folders = match program.contains('/') {
        true => vec![folder.to_owned()],
        false => std::env::split_paths(path.unwrap_or_default()).collect(),
    };
    folders.into_iter().map(|folder| folder.join(program)).find(is_program)
}

/// Whether a program is a script for a shell. Such a script stands before the program as a rule, and may set variables and
/// folders for it that are seen nowhere else.
pub(super) fn is_shell_script(program: &Path) -> bool {
    let mut first = Vec::new();
    let read = File::open(program).and_then(|file| file.take(FIRST_LINE).read_to_end(&mut first));
    if read.is_err() {
        return true; // it may be anything
    }
    let text = String::from_utf8_lossy(&first);
    let Some(line) = text.strip_prefix("#!").and_then(|text| text.lines().next()) else { return false };
    let name = |word: &str| word.rsplit('/').next().unwrap_or_default().to_owned();
    let mut words = line.split_whitespace().map(name);
    let interpreter = words.next().unwrap_or_default();
    let interpreter = match interpreter.as_str() {
        "env" => words.find(|word| !word.starts_with('-') && !word.contains('=')).unwrap_or_default(),
        _ => interpreter,
    };
    SHELLS.contains(&interpreter.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_for_a_shell_is_known_by_its_first_line() {
        let folder = tempfile::tempdir().unwrap();
        for (first, is_shell) in [
            ("#!/bin/sh\n", true),
            ("#! /usr/bin/env bash\n", true),
            ("#!/usr/bin/env -S FOO=1 zsh -e\n", true),
            ("#!/usr/bin/env node\n", false),
            ("#!/usr/bin/awk -f\n", false),
            ("\x7fELF", false),
        ] {
            let path = folder.path().join("program");
            std::fs::write(&path, first).unwrap();
            assert_eq!(is_shell_script(&path), is_shell, "{first}");
        }
    }
}
