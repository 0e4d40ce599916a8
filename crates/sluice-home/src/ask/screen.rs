//! What stands on the terminals of agents, and when the steps of a run began and ended. It only looks.

use std::time::Duration;

use sluice_api::problem::Problem;
use sluice_api::screen::{Screen, ScreenCursor};
use sluice_api::timeline::Timeline;
use sluice_core::recipe::StepId;
use sluice_engine::host::EngineClock;
use sluice_os::session::SessionId;

use super::Service;
use crate::home::session_id;
use crate::read::attempts::AttemptLog;
use crate::read::runs::RunSnapshot;

impl Service {
    /// The terminal of a task's agent: of the one at work, else of the newest there was.
    pub fn task_screen(&self, id: &str) -> Result<Screen, Problem> {
        let seen = self.home.tasks.find(id)?;
        // The reviewer first: it is the one that is at work.
        let living = seen.living().next_back().and_then(|agent| session_id(&seen.id, agent.id).ok());
        Ok(self.screen(living.or_else(|| self.newest_session(&seen))))
    }

    /// The terminal of an agent of a run: of one at work, else of the newest there was; of one step, or of any.
    pub fn run_screen(&self, id: &str, step: Option<&str>) -> Result<Screen, Problem> {
        let seen = self.run(id)?;
        let step = step.map(|name| seen.step(name)).transpose()?;
        Ok(self.screen(self.session_of_run(&seen, step)))
    }

    /// When each attempt of each step of a run began and ended.
    pub fn run_timeline(&self, id: &str) -> Result<Timeline, Problem> {
        let seen = self.run(id)?;
        let log = AttemptLog::of(&self.home.tasks, &seen)?;
        Ok(log.timeline(&seen, self.home.clock.now().0))
    }

    fn screen(&self, session: Option<SessionId>) -> Screen {
        let Some(session) = session else { return Screen::default() };
        let sessions = &self.home.context.sessions;
        let alive = sessions.is_living(&session);
        // One that is gone since has nothing to show.
        let shown = sessions.look(&session).unwrap_or_default();
        // What is recorded has no secrets; what a window shows may have.
        let text = self.home.context.clean().text(&shown.lines.join("\n"));
        Screen {
            session: Some(session.to_string()),
            alive,
            columns: shown.columns,
            rows: shown.rows,
            lines: text.lines().map(str::to_owned).collect(),
            cursor: shown.cursor.filter(|_| alive).map(|(row, column)| ScreenCursor { row, column }),
        }
    }

    fn session_of_run(&self, seen: &RunSnapshot, step: Option<StepId>) -> Option<SessionId> {
        let sessions = &self.home.context.sessions;
        let begins = match step {
            Some(step) => format!("{}.{}.", seen.id, step.0),
            None => format!("{}.", seen.id),
        };
        let of_run = |id: &SessionId| id.as_str().starts_with(&begins);
        let still = |id: &SessionId| sessions.still_for(id).unwrap_or(Duration::MAX);
        let newest = |all: Vec<SessionId>| all.into_iter().filter(of_run).min_by_key(still);
        newest(sessions.living()).or_else(|| newest(sessions.list().unwrap_or_default()))
    }
}
