//! Other programs that get the terminal for a while: tmux, an editor, `sluice doctor`. The dashboard comes back when they end.

use std::io::{Read, Write, stdin, stdout};
use std::process::{Command, Stdio};

use crate::terminal::PersonTerminal;

/// The editor where neither `$VISUAL` nor `$EDITOR` names one.
const EDITOR: &str = "vi";

/// Attaches to the session of a task, as `sluice task attach` does. Gives what went wrong.
pub(crate) fn attach(screen: &mut PersonTerminal, id: &str) -> Option<String> {
    let run = || -> std::io::Result<(bool, String)> {
        let mut child =
            Command::new(std::env::current_exe()?).args(["task", "attach", id]).stderr(Stdio::piped()).spawn()?;
        let mut said = String::new();
        child.stderr.take().map(|mut stderr| stderr.read_to_string(&mut said)).transpose()?;
        Ok((child.wait()?.success(), said))
    };
    match screen.lend(run) {
        Ok(Ok((true, _))) => None,
        Ok(Ok((false, said))) => Some(said.lines().next().unwrap_or("the session could not be shown").to_owned()),
        Ok(Err(error)) | Err(error) => Some(format!("the session cannot be shown: {error}")),
    }
}

/// Opens a folder in the editor of the person. Gives what went wrong.
pub(crate) fn edit(screen: &mut PersonTerminal, folder: &str) -> Option<String> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let line = set("VISUAL").or_else(|| set("EDITOR")).unwrap_or_else(|| EDITOR.to_owned());
    // An editor may be named with arguments: `code --wait`.
    let mut words = line.split_whitespace();
    let program = words.next().unwrap_or(EDITOR);
    let mut command = Command::new(program);
    command.args(words).arg(".").current_dir(folder);
    match screen.lend(|| command.status()) {
        Ok(Ok(status)) if status.success() => None,
        Ok(Ok(status)) => Some(format!("{program} in {folder}: {status}")),
        Ok(Err(error)) | Err(error) => Some(format!("{program} cannot be run in {folder}: {error}")),
    }
}

/// Runs `sluice doctor`, and waits for a key after it.
pub(crate) fn doctor(screen: &mut PersonTerminal) -> Option<String> {
    let run = || -> std::io::Result<()> {
        Command::new(std::env::current_exe()?).arg("doctor").status()?;
        print!("\nEnter: back to the dashboard ");
        stdout().flush()?;
        stdin().read_line(&mut String::new())?;
        Ok(())
    };
    match screen.lend(run) {
        Ok(Ok(())) => None,
        Ok(Err(error)) | Err(error) => Some(format!("doctor cannot be run: {error}")),
    }
}
