//! What a project says about making its worktrees ready: what is refused, and what an empty text means.

use std::path::Path;

use sluice_api::problem::Problem;
use sluice_api::project::Project;
use sluice_os::git::GitError;
use sluice_os::workspace::must_stay_inside;

/// Bytes of a command.
const LONGEST_COMMAND: usize = 32 << 10;
/// So many paths of one kind a project names.
const MOST_PATHS: usize = 200;
/// Bytes of a path.
const LONGEST_PATH: usize = 1000;

/// Takes empty texts for nothing, and refuses commands and paths that cannot be used.
pub(super) fn check(project: &mut Project) -> Result<(), Problem> {
    for (key, command) in [("setup", &mut project.setup), ("teardown", &mut project.teardown)] {
        *command = command.take().filter(|text| !text.trim().is_empty());
        if let Some(text) = command {
            check_command(key, text)?;
        }
    }
    let main = Path::new(&project.path);
    let lists = [("setup_when", &mut project.setup_when), ("copy", &mut project.copy), ("link", &mut project.link)];
    for (key, paths) in lists {
        paths.retain(|path| !path.trim().is_empty());
        if paths.len() > MOST_PATHS {
            return Err(Problem::bad_request(format!("`{key}` names {} paths, and {MOST_PATHS} at most", paths.len())));
        }
        for path in paths.iter() {
            check_path(key, path)?;
            must_stay_inside(main, path).map_err(|error| match error {
                GitError::OutsidePath { path, why } if key == "setup_when" => {
                    Problem::bad_request(format!("`{path}` is no file of a worktree: {why}"))
                }
                error => Problem::bad_request(error.to_string()),
            })?;
        }
    }
    Ok(())
}

fn check_command(key: &str, command: &str) -> Result<(), Problem> {
    if command.len() > LONGEST_COMMAND || command.contains('\0') {
        let message = format!("`{key}` is longer than {LONGEST_COMMAND} bytes, or has a NUL in it");
        return Err(Problem::bad_request(message).hint("put the command into a script of the repository"));
    }
    Ok(())
}

fn check_path(key: &str, path: &str) -> Result<(), Problem> {
    if path.len() > LONGEST_PATH || path.chars().any(char::is_control) {
        let message = format!("a path of `{key}` is longer than {LONGEST_PATH} bytes, or has control characters");
        return Err(Problem::bad_request(message).hint("name a path relative to the checkout"));
    }
    Ok(())
}
