//! What each command does.

mod attended;
mod check;
mod config;
mod dashboard;
mod follow;
mod graph;
mod harness;
mod harness_check;
mod harness_setup;
mod home;
mod inbox;
mod inner;
mod open;
mod process;
mod project;
mod run;
mod serve;
mod task;
mod task_moves;
mod token;
mod wait;
mod watch;
mod work;
mod worker;
mod workflow;
mod workspace;

use crate::args::{CliCommand, NotifyCommand};
use std::process::ExitCode;

use crate::output::{CliFailure, CliOutput};

pub(crate) fn run(command: CliCommand, output: CliOutput) -> Result<ExitCode, CliFailure> {
    let exit = match command {
        CliCommand::Check(arguments) => check::run(&arguments, output),
        CliCommand::Graph(arguments) => graph::run(&arguments, output),
        CliCommand::Workflow(arguments) => workflow::run(&arguments, output),
        CliCommand::Project(arguments) => project::run(arguments, output),
        CliCommand::Task(arguments) => task::run(arguments, output),
        CliCommand::Workspace(arguments) => workspace::run(arguments, output),
        CliCommand::Start(arguments) => run::start(arguments, output),
        CliCommand::Run(arguments) => run::run(arguments, output),
        CliCommand::Process(arguments) => process::run(arguments, output),
        CliCommand::Step(arguments) => run::step(arguments, output),
        CliCommand::Dashboard(arguments) => dashboard::dashboard(&arguments, output),
        CliCommand::Status(arguments) => dashboard::status(&arguments, output),
        CliCommand::Inbox(arguments) => inbox::inbox(&arguments, output),
        CliCommand::Answer(arguments) => inbox::answer(arguments, output),
        CliCommand::Notify(NotifyCommand::Test {}) => inbox::test_channels(output),
        CliCommand::Events(arguments) => home::events(&arguments, output),
        CliCommand::Doctor(arguments) => home::doctor(&arguments, output),
        CliCommand::Config(arguments) => config::run(&arguments, output),
        CliCommand::Harness(arguments) => harness::run(&arguments, output),
        CliCommand::Backup(arguments) => home::backup(&arguments, output),
        CliCommand::Restore(arguments) => home::restore(&arguments, output),
        CliCommand::Serve(arguments) => serve::run(arguments, output),
        CliCommand::Open(arguments) => open::run(&arguments, output),
        CliCommand::Worker(arguments) => worker::run(arguments, output),
        CliCommand::Token(arguments) => token::run(arguments, output),
        CliCommand::Stop(_) => home::stop(output),
        CliCommand::Completions(arguments) => home::completions(&arguments, output),
        CliCommand::Skill(arguments) => home::skill(&arguments, output),
        CliCommand::Inner(arguments) => return inner::run(arguments),
    };
    exit.map(ExitCode::from)
}
