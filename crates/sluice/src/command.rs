//! What each command does.

mod check;
mod graph;
mod workflow;

use crate::args::Command;
use crate::output::{Exit, Failure, Output};

pub(crate) fn run(command: Command, output: Output) -> Result<Exit, Failure> {
    match command {
        Command::Check(arguments) => check::run(&arguments, output),
        Command::Graph(arguments) => graph::run(&arguments, output),
        Command::Workflow(arguments) => workflow::run(&arguments, output),
    }
}
