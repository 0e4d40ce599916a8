//! TASK.md of a task as it is now, and as it was whenever it was read: what one agent overwrote is still there.

use serde_json::Value;
use sluice_api::problem::Problem;
use sluice_api::task::{FileVersion, TaskFile};
use sluice_core::id::TaskId;
use sluice_engine::loader::{pin, written_digest};

use super::Service;
use crate::settings::clock::written;

const READ: &str = "artifact.read";

impl Service {
    /// What stands below the frontmatter: now, or in the version with this number.
    pub fn file(&self, id: &str, version: Option<usize>) -> Result<TaskFile, Problem> {
        let seen = self.home.tasks.find(id)?;
        let now = match version {
            Some(_) => None,
            None => Some(self.home.read_file(&seen)?.body),
        };
        let versions = self.versions(&seen.id)?;
        let (version, body) = match (now, version) {
            (Some(body), _) => {
                let digest = pin(&body).to_string();
                let kept = versions.iter().rev().find(|kept| kept.digest == digest);
                (kept.map(|kept| kept.version), body)
            }
            (None, number) => {
                let number = number.unwrap_or_default();
                let none = || {
                    Problem::not_found(format!("TASK.md of task {} has no version {number}", seen.id))
                        .hint("`sluice task file ID --list` shows them")
                };
                let kept = versions.iter().find(|kept| kept.version == number).ok_or_else(none)?;
                let lost = || Problem::fault(format!("version {number} of TASK.md is not in the store any more"));
                let digest = written_digest(&kept.digest).ok_or_else(lost)?;
                (Some(number), self.home.tasks.blob(&digest)?.ok_or_else(lost)?)
            }
        };
        Ok(TaskFile { version, text: String::from_utf8_lossy(&body).into_owned(), versions })
    }

    /// The bodies that were kept, each as often as it was new.
    fn versions(&self, id: &TaskId) -> Result<Vec<FileVersion>, Problem> {
        let history = self.home.tasks.task_history(id)?;
        let read = history.iter().filter(|(_, event)| event.kind == READ);
        let versions = read.zip(1..).map(|((_, event), version)| {
            let facts: Value = serde_json::from_slice(&event.data).unwrap_or_default();
            FileVersion {
                version,
                time: written(event.time),
                bytes: facts["bytes"].as_u64().unwrap_or_default(),
                digest: facts["digest"].as_str().unwrap_or_default().to_owned(),
            }
        });
        Ok(versions.collect())
    }
}
