//! `cargo xtask sarif`: what `sluice check --format sarif` says of the broken examples, held to the rules of the code host that
//! most logs are uploaded to. A log that breaks them is refused there, or shown without half of what it says.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::root;
use crate::served_home::{built, run, target};

/// The program that knows the rules, from npm; it runs on Linux for x86-64.
const TOOL: &str = "@microsoft/sarif-multitool-linux@5.7.0";

/// Makes the log and has it judged.
pub fn main() -> ExitCode {
    match validate() {
        Ok(said) => {
            print!("{said}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("sarif: {why}");
            ExitCode::FAILURE
        }
    }
}

fn validate() -> Result<String, String> {
    let tool = tool()?;
    let log = target().join("sarif/broken.sarif");
    let checked = Command::new(built()?)
        .current_dir(root())
        .args(["check", "examples/broken", "--format", "sarif"])
        .output()
        .map_err(|error| format!("sluice cannot be started: {error}"))?;
    if checked.status.code() != Some(1) {
        return Err("the broken examples have no errors".into());
    }
    std::fs::write(&log, checked.stdout).map_err(|error| error.to_string())?;
    let mut judge = Command::new(tool);
    // It looks for a library of languages, which it does not need.
    judge.env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1").arg("validate").arg(&log);
    judge.args(["--rule-kind", "GHAS", "--level", "Error;Warning;Note", "--kind", "Fail;Open;Review"]);
    let said = judge.output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    match said.status.success() && !text.contains(": error ") && !text.contains(": warning ") {
        true => Ok(format!("{} is clean under the rules of GitHub\n", log.display())),
        false => Err(format!("{} breaks rules of GitHub:\n{text}", log.display())),
    }
}

/// The program, in a folder of its own, which is made when it is not there.
fn tool() -> Result<PathBuf, String> {
    let folder = target().join("sarif");
    let program = folder.join("node_modules/@microsoft/sarif-multitool-linux/Sarif.Multitool");
    let done = folder.join("done");
    if std::fs::read_to_string(&done).is_ok_and(|there| there == TOOL) {
        return Ok(program);
    }
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    eprintln!("installing {TOOL} from npm");
    run(Command::new("npm").current_dir(&folder).args(["install", "--silent", "--no-fund", "--no-audit", TOOL]))?;
    // Its package would do that itself, in a script that npm may be told not to run.
    run(Command::new("chmod").arg("u+x").arg(&program))?;
    std::fs::write(done, TOOL).map_err(|error| error.to_string())?;
    Ok(program)
}
