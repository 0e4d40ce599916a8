//! `cargo xtask bench page`: how long the page takes with many tasks and a long run, and what open pages cost the engine, by
//! `xtask/page/timings.mjs`. It asserts no time. `bench/page.md` shows a run.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::page_scripts::play;
use crate::served_home::target;
use crate::{root, said};

/// The flags with a number, in the order in which the script takes them, and what they are unless given.
const COUNTS: [(&str, u32); 4] = [("--tasks", 5000), ("--steps", 1000), ("--pages", 100), ("--seconds", 15)];
/// The flag with the program that is measured.
const PROGRAM: &str = "--program";

pub fn main(rest: &[&str]) -> ExitCode {
    let wanted = asked(rest).ok_or_else(|| {
        let flags: Vec<String> = COUNTS.iter().map(|(flag, usual)| format!("[{flag} N ({usual})]")).collect();
        format!("cargo xtask bench page {} [{PROGRAM} PATH]", flags.join(" "))
    });
    said(wanted.and_then(|(counts, program)| {
        let program = program.map_or_else(released, Ok)?;
        play("timings.mjs", program, &target().join("page-bench"), &[("PAGE_COUNTS", counts)])
    }))
}

/// The counts, as the script takes them, and the program if one is named.
fn asked(rest: &[&str]) -> Option<(String, Option<PathBuf>)> {
    let (mut counts, mut program) = (COUNTS.map(|(_, usual)| usual), None);
    for pair in rest.chunks(2) {
        let [flag, value] = pair else { return None };
        match COUNTS.iter().position(|(name, _)| name == flag) {
            Some(place) => counts[place] = value.parse().ok()?,
            None if *flag == PROGRAM => program = Some(PathBuf::from(value)),
            None => return None,
        }
    }
    Some((counts.map(|count| count.to_string()).join(","), program))
}

/// The program as a user has it.
fn released() -> Result<PathBuf, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built =
        Command::new(cargo).current_dir(root()).args(["build", "--release", "--quiet", "--package", "sluice"]).status();
    match built {
        Ok(status) if status.success() => Ok(target().join("release/sluice")),
        _ => Err("`sluice` cannot be built".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_stand_in_the_order_of_the_script() {
        let program = Some(PathBuf::from("/bin/sluice"));
        assert_eq!(asked(&[]), Some(("5000,1000,100,15".to_owned(), None)));
        let given = ["--pages", "7", "--program", "/bin/sluice", "--tasks", "1"];
        assert_eq!(asked(&given), Some(("1,1000,7,15".to_owned(), program)));
        assert_eq!(asked(&["--tasks"]), None);
        assert_eq!(asked(&["--tasks", "many"]), None);
        assert_eq!(asked(&["--windows", "7"]), None);
    }
}
