//! The skills that tell agents how to work with Sluice, put where agent programs look for them.

use std::path::Path;

use sluice_api::problem::Problem;
use sluice_os::file::{Durability, write_atomically};
use sluice_os::harness::{Harness, Harnesses, SKILLS};

/// Installs the skills for a harness, or for all whose folder is there; gives the files that were written.
pub fn install(user_home: &Path, harness: Option<&str>) -> Result<Vec<String>, Problem> {
    let known = Harnesses::builtin();
    let chosen: Vec<&Harness> = match harness {
        Some(name) => vec![known.get(name).map_err(|error| Problem::not_found(error.to_string()))?],
        None => known.iter().filter(|it| is_present(user_home, it)).collect(),
    };
    let mut written = Vec::new();
    for harness in &chosen {
        for skill in &SKILLS {
            let Some(file) = harness.skill_path(user_home, skill) else { continue };
            let failed = |why: String| Problem::fault(format!("{} cannot be written: {why}", file.display()));
            file.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(|error| failed(error.to_string()))?;
            write_atomically(&file, skill.text.as_bytes(), Durability::Synced)
                .map_err(|error| failed(error.to_string()))?;
            written.push(file.display().to_string());
        }
    }
    written.dedup();
    match (written.is_empty(), harness) {
        (false, _) => Ok(written),
        (true, Some(name)) => Err(Problem::not_found(format!("`{name}` has no folder for skills that is known here"))
            .hint("copy the files of `skills/` to where it looks")),
        (true, None) => Err(Problem::not_found("no agent program with a folder for skills was found")
            .hint("name one: --harness claude")),
    }
}

/// Whether the person has used this agent program: its folder is there.
fn is_present(user_home: &Path, harness: &Harness) -> bool {
    let folder = harness.skills_folder.as_deref().map(Path::new);
    folder.and_then(|folder| folder.components().next()).is_some_and(|first| user_home.join(first).is_dir())
}
