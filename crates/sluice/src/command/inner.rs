//! What Sluice calls itself with: the engine in the background, the process around an agent, the scripted agent.

use std::process::ExitCode;

use sluice_server::Engine;

use crate::args::Inner;
use crate::engine::{READY, make_home, places, with_few_heaps};
use crate::output::{Exit, Failure, print};

pub(crate) fn run(arguments: Inner) -> Result<ExitCode, Failure> {
    match arguments {
        Inner::Engine => engine().map(ExitCode::from),
        Inner::Shim { arguments } => Ok(sluice_worker::shim::main(arguments)),
        Inner::DemoAgent { arguments } => Ok(sluice_testkit::agent::main(arguments, std::env::vars_os())),
    }
}

/// Runs the engine until it is told to end or has nothing to do. Whoever started it reads a line: that it listens, or
/// why it does not, and then perhaps a second with the way out.
fn engine() -> Result<Exit, Failure> {
    with_few_heaps();
    let places = places()?;
    make_home(&places)?;
    let store = std::env::var("SLUICE_STORE").ok().filter(|address| !address.is_empty());
    sluice_server::run(&places, Engine { store, network: None }, || print(&format!("{READY}\n"))).map_err(
        |problem| {
            let lines = std::iter::once(&problem.message).chain(&problem.hint);
            lines.for_each(|line| print(&format!("{}\n", line.replace('\n', " "))));
            Failure::from(problem)
        },
    )?;
    Ok(Exit::Done)
}
