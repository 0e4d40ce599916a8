//! What the asker could do with a task now, and a person's yes and no. What each of them means is the core's decision.

use sluice_api::problem::Problem;
use sluice_api::task::{MergeShown, MergeTask, MoveBy, MoveShown, TaskAnswer};
use sluice_core::machine::Refusal;
use sluice_core::task::Evidence;
use sluice_core::task::choices::{Approval, MoveChoice, MoveTaker, approval, choices};
use sluice_core::task::input::WorkEvidence;
use sluice_engine::host::EngineClock;

use super::{Requester, Service};
use crate::home::engine::refused_of;
use crate::read::tasks::TaskSnapshot;

impl Service {
    /// The transitions from where a task stands, and whether the asker could take them now.
    pub(super) fn moves(&self, who: &Requester, seen: &TaskSnapshot) -> Vec<MoveShown> {
        if seen.lifecycle.state(seen.state.status).terminal {
            return Vec::new();
        }
        // Where the files cannot be read the gates say what they lack, and nothing can be merged.
        let evidence = self.home.glimpse(seen).unwrap_or_else(|problem| Evidence {
            work: WorkEvidence::Unreadable(problem.message),
            ..Evidence::default()
        });
        let barred = who.must_be_of(&seen.id).err();
        let found = choices(&seen.lifecycle, &seen.state, who.to(&seen.id), &evidence, self.home.clock.now());
        found.iter().map(|choice| move_shown(seen, choice, barred.as_ref())).collect()
    }

    /// Lets a task pass from where it stands: the merge where one leads to its end, else the only way on.
    pub fn approve(&self, who: &Requester, id: &str, message: Option<String>) -> Result<TaskAnswer, Problem> {
        who.must_be_person("approving")?;
        let seen = self.home.tasks.find(id)?;
        // A merge is written down before it is decided, and so are the words.
        let message = message.filter(|message| !message.trim().is_empty());
        let message = message.map(|message| self.home.context.clean().text(&message));
        let evidence = self.home.evidence(&seen)?;
        let approved = approval(&seen.lifecycle, &seen.state, &evidence, self.home.clock.now());
        match approved.map_err(|refusal| refused_of(seen.id.as_str(), &refusal))? {
            Approval::Merge => self.merge_saying(who, seen.id.as_str(), &MergeTask::default(), message),
            Approval::Move(to) => {
                let recorded = self.go(who, &seen, seen.lifecycle.state_name(to), message)?;
                self.settled(who, &seen.id, recorded)
            }
        }
    }

    /// Sends a task back to its worker, along the same transition as a request for changes.
    pub fn reject(&self, who: &Requester, id: &str, message: Option<String>) -> Result<TaskAnswer, Problem> {
        who.must_be_person("rejecting")?;
        self.send_back(who, id, message.unwrap_or_default())
    }
}

/// A transition as the asker sees it. One who may not change the task at all is told that of every transition.
fn move_shown(seen: &TaskSnapshot, choice: &MoveChoice, barred: Option<&Problem>) -> MoveShown {
    let told = |refusal: Option<&Refusal>| {
        let refused = refusal.map(|refusal| refused_of(seen.id.as_str(), refusal));
        barred.cloned().or(refused).map(|problem| (problem.message, problem.code)).unzip()
    };
    let (why, code) = told(choice.refusal.as_ref());
    let merge = choice.merge.as_ref().map(|merge| {
        let (why, code) = told(merge.refusal.as_ref());
        MergeShown { open: why.is_none(), why, code }
    });
    let by = match choice.taker {
        MoveTaker::Person => MoveBy::Person,
        MoveTaker::Agent => MoveBy::Agent,
        MoveTaker::Engine => MoveBy::Engine,
    };
    MoveShown { to: seen.lifecycle.state_name(choice.to).to_owned(), open: why.is_none(), why, code, by, merge }
}
