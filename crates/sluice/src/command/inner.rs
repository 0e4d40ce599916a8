//! What Sluice calls itself with: the engine in the background, the process around an agent, the scripted agent; and what
//! agent programs call: their hooks.

mod hook;

use std::process::ExitCode;

use sluice_server::EngineOptions;

use crate::args::InnerCommand;
use crate::engine::{READY, make_home, places, with_few_heaps};
use crate::output::{CliExit, CliFailure, print};

pub(crate) fn run(arguments: InnerCommand) -> Result<ExitCode, CliFailure> {
    match arguments {
        InnerCommand::Engine => engine().map(ExitCode::from),
        InnerCommand::Shim { arguments } => Ok(sluice_os::shim::main(arguments)),
        InnerCommand::Hook { arguments } => {
            hook::tell(&arguments);
            Ok(ExitCode::SUCCESS)
        }
        InnerCommand::DemoAgent { arguments } => Ok(sluice_testkit::agent::main(arguments, std::env::vars_os())),
    }
}

/// Runs the engine until it is told to end or has nothing to do. Whoever started it reads a line: that it listens, or
/// why it does not, and then perhaps a second with the way out.
fn engine() -> Result<CliExit, CliFailure> {
    with_few_heaps();
    let places = places()?;
    make_home(&places)?;
    let store = std::env::var("SLUICE_STORE").ok().filter(|address| !address.is_empty());
    sluice_server::run(&places, EngineOptions { store, network: None }, || print(&format!("{READY}\n"))).map_err(
        |problem| {
            let lines = std::iter::once(&problem.message).chain(&problem.hint);
            lines.for_each(|line| print(&format!("{}\n", line.replace('\n', " "))));
            CliFailure::from(problem)
        },
    )?;
    Ok(CliExit::Done)
}
