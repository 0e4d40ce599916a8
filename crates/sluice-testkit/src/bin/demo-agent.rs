//! The scripted agent by itself, for tests of this crate. People start it as `sluice demo-agent`.

use std::process::ExitCode;

fn main() -> ExitCode {
    sluice_testkit::agent::main(std::env::args_os().skip(1), std::env::vars_os())
}
