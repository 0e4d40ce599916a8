//! What the tests of sessions run in place of `sluice shim`.

use std::process::ExitCode;

fn main() -> ExitCode {
    sluice_os::shim::main(std::env::args_os().skip(2))
}
