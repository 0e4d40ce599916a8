//! What a worker says on its connection: which attempt it speaks of, and the envelope of what is said back.
//!
//! A worker that only listens and reports need not say that it begins: its first word about a task that it was given does.

use std::sync::Arc;

use serde_json::Value;
use sluice_api::control::AttemptAnswer;
use sluice_api::problem::Problem;
use sluice_api::work::{ReplyEnvelope, StepStart, WorkerReply};

use sluice_core::id::{Dispatch, RunId};

use super::usual_name;
use crate::home::Home;
use crate::home::workers::Roster;
use crate::read::view::as_json;

/// What a message of a worker is about, as its envelope or its payload says.
#[derive(Clone, Copy, Debug, Default)]
pub struct MessageSubject<'a> {
    pub run: Option<&'a str>,
    pub task: Option<&'a str>,
}

impl Roster {
    /// The attempt that a worker speaks of. One that was given and has not begun begins with this.
    pub fn spoken_of(
        &self,
        home: &Arc<Home>,
        keeper: Option<&str>,
        worker: &str,
        about: MessageSubject<'_>,
    ) -> Result<String, Problem> {
        let held: Vec<(Dispatch, RunId, Option<String>)> = {
            let inner = self.inner();
            let own = inner.jobs.iter().filter(|(_, job)| job.worker.as_str() == worker);
            own.map(|(dispatch, job)| (*dispatch, job.mission.clone(), job.attempt.clone())).collect()
        };
        for (dispatch, mission, begun) in held {
            let name = begun.clone().unwrap_or_else(|| usual_name(&mission, dispatch));
            let (_, task) = self.about(home, dispatch)?;
            let is_it = about.run == Some(name.as_str()) || about.task == Some(task.as_str());
            match begun {
                _ if !is_it => {}
                // It has another name, so it is another attempt that the worker speaks of.
                Some(begun) if about.run.is_some_and(|run| run != begun) => {}
                Some(begun) => return Ok(begun),
                None if about.run.is_some_and(|run| self.is_over(run)) => {}
                None => {
                    let run_id = about.run.map_or(name, str::to_owned);
                    let start = StepStart {
                        run_id: Some(run_id.clone()),
                        mission_id: mission.into(),
                        task_id: task,
                        crab_id: worker.to_owned(),
                        burrow_path: None,
                    };
                    return self.start(home, keeper, &start).map(|_| run_id);
                }
            }
        }
        about.run.map(str::to_owned).ok_or_else(|| {
            Problem::bad_request("the message does not say which run it is about")
                .hint("say `run_id`, or the `task_id` of a task that you were assigned")
        })
    }

    pub fn reply(&self, home: &Home, said: &Value, kind: WorkerReply) -> Value {
        let [mission, task, run] = match &kind {
            WorkerReply::Ack(AttemptAnswer::Started(it)) => {
                [Some(it.mission_id.clone()), Some(it.task_id.clone()), Some(it.run_id.clone())]
            }
            WorkerReply::Ack(AttemptAnswer::Updated(it)) => [None, Some(it.task_id.clone()), Some(it.run_id.clone())],
            WorkerReply::Ack(AttemptAnswer::Ended(it)) => [None, it.task_id.clone(), Some(it.run_id.clone())],
            WorkerReply::Error(_) => [None, None, None],
        };
        let or_said = |told: Option<String>, key: &str| told.or_else(|| said[key].as_str().map(str::to_owned));
        let about = [or_said(mission, "mission_id"), or_said(task, "task_id"), or_said(run, "run_id")];
        as_json(&ReplyEnvelope { envelope: self.enveloped(home, about, kind), reply_to: said["message_id"].clone() })
    }
}
