//! What each command does.

mod check;
mod follow;
mod graph;
mod home;
mod inner;
mod process;
mod project;
mod run;
mod serve;
mod task;
mod token;
mod worker;
mod workflow;
mod workspace;

use crate::args::Command;
use std::process::ExitCode;

use crate::output::{Failure, Output};

pub(crate) fn run(command: Command, output: Output) -> Result<ExitCode, Failure> {
    let exit = match command {
        Command::Check(arguments) => check::run(&arguments, output),
        Command::Graph(arguments) => graph::run(&arguments, output),
        Command::Workflow(arguments) => workflow::run(&arguments, output),
        Command::Project(arguments) => project::run(arguments, output),
        Command::Task(arguments) => task::run(arguments, output),
        Command::Workspace(arguments) => workspace::run(arguments, output),
        Command::Start(arguments) => run::start(arguments, output),
        Command::Run(arguments) => run::run(arguments, output),
        Command::Process(arguments) => process::run(arguments, output),
        Command::Step(arguments) => run::step(arguments, output),
        Command::Inbox(_) => run::inbox(output),
        Command::Answer(arguments) => run::answer(arguments, output),
        Command::Events(arguments) => home::events(&arguments, output),
        Command::Doctor(arguments) => home::doctor(&arguments, output),
        Command::Backup(arguments) => home::backup(&arguments, output),
        Command::Restore(arguments) => home::restore(&arguments, output),
        Command::Serve(arguments) => serve::run(arguments, output),
        Command::Worker(arguments) => worker::run(arguments, output),
        Command::Token(arguments) => token::run(arguments, output),
        Command::Stop(_) => home::stop(output),
        Command::Completions(arguments) => home::completions(&arguments, output),
        Command::Skill(arguments) => home::skill(&arguments, output),
        Command::Inner(arguments) => return inner::run(arguments),
    };
    exit.map(ExitCode::from)
}
