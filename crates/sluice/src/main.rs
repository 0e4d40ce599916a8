//! `sluice`: reads the arguments, runs the command, and answers with its exit code. Nothing is decided here.

mod args;
mod command;
mod engine;
mod output;
mod pages;
mod places;
mod table;

use std::process::ExitCode;

fn main() -> ExitCode {
    match args::read() {
        Ok((command, output)) => output.finish(command::run(command, output)),
        Err(answered) => answered,
    }
}
