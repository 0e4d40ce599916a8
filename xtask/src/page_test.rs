//! `cargo xtask page-test`: drives the page in Chromium, by `xtask/page/check.mjs`.

use std::process::ExitCode;

use crate::page_scripts::play;
use crate::said;
use crate::served_home::{built, target};

pub fn main() -> ExitCode {
    said(built().and_then(|program| play("check.mjs", program, &target().join("page-test/pictures"), &[])))
}
