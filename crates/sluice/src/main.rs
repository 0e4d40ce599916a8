//! `sluice`: reads the arguments, runs the command, and answers with its exit code. Nothing is decided here.

mod args;
mod command;
mod engine;
mod output;
mod pages;
mod places;
mod table;

use std::process::ExitCode;

use rustix::fs::Mode;
use rustix::process::umask;

fn main() -> ExitCode {
    not_for_everybody();
    sluice_api::client::when_silent(output::say);
    match args::read() {
        Ok((command, output)) => output.finish(command::run(command, output)),
        Err(answered) => answered,
    }
}

/// Whoever lets everybody write what they make does not mean the files of a home and of an agent.
fn not_for_everybody() {
    let mask = umask(Mode::empty());
    umask(if mask.contains(Mode::WOTH) { mask } else { mask | Mode::WGRP | Mode::WOTH });
}
