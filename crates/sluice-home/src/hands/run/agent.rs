//! Agents of a run: where they work, and what is made of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sluice_core::lifecycle::Permissions as Allowed;
use sluice_core::run::Perform;
use sluice_worker::listing::Listing;
use sluice_worker::session::{Failure, SessionId};

use super::{order, workspace};
use crate::ground::Ground;
use crate::projects::described;
use crate::runs::SeenRun;
use crate::undone::{Failed, Undone};
use crate::workbench::{Order, Performed, Work};

/// An agent that does the work of a step, or of a part of it.
pub(super) fn work(ground: &Arc<Ground>, seen: &SeenRun, wanted: &Perform, name: &str, prompt: &str) -> Performed {
    if !workspace::wants_own(seen, wanted) {
        let done = agent(ground, seen, wanted, name, prompt, Path::new(seen.folder()), wanted.permissions);
        workspace::save(ground, seen, wanted)?;
        return done;
    }
    let own = workspace::own(ground, seen, wanted, name)?;
    // The folder that it is told is the one that it works in.
    let prompt = prompt.replace(seen.folder(), &own.folder.display().to_string());
    let done = agent(ground, seen, wanted, name, &prompt, &own.folder, wanted.permissions);
    match done {
        Ok(outcome) => match own.merge(ground, seen, wanted) {
            Ok(()) => Ok(outcome),
            Err(Undone::Failed(failed)) => Err(Failed { outcome: Box::new(outcome), ..failed }.into()),
            Err(unavailable) => Err(unavailable),
        },
        Err(Undone::Failed(failed)) => {
            own.discard(seen);
            Err(failed.into())
        }
        // It is asked for again, and then finds this worktree.
        Err(unavailable) => Err(unavailable),
    }
}

/// An arbiter: it sees a copy of the work, and that the work itself is as it was is looked at afterwards.
pub(super) fn judge(ground: &Arc<Ground>, seen: &SeenRun, wanted: &Perform, name: &str, prompt: &str) -> Performed {
    if !workspace::has_worktree(seen) {
        return judge_in_place(ground, seen, wanted, name, prompt);
    }
    let pool = workspace::pool_of(ground, &seen.state.given)?;
    let standing = || pool.repository().standing(Path::new(seen.folder())).map_err(Undone::by);
    // One that an earlier engine sent may have touched the work by now: the work was committed before it began.
    let is_adopted = !matches!(ground.sessions.adopt(&SessionId::new(name)?), Err(Failure::Unknown(_)));
    let (found, was_touched) = standing().map(|(head, dirty)| (head, is_adopted && dirty))?;
    let copy = workspace::own(ground, seen, wanted, name)?;
    let before = standing()?;
    let done = agent(ground, seen, wanted, name, prompt, &copy.folder, Allowed::Reduced);
    copy.discard(seen);
    if standing()? == before && !was_touched {
        return done;
    }
    let branch = format!("sluice/arbiter-{}", name.replace('.', "-"));
    let work = if was_touched { &found } else { &before.0 };
    let put_back = pool.repository().put_back(Path::new(seen.folder()), work, &branch);
    Err(Undone::from(match put_back {
        Ok(()) => format!(
            "the arbiter changed the work, which it may not; the work was put back, and what it changed is on `{branch}`"
        ),
        Err(error) => {
            format!("the arbiter changed the work, which it may not, and it cannot be put back: {}", described(&error))
        }
    }))
}

/// An arbiter outside git: there is no copy for it, but whether the folder is as it was is looked at afterwards.
fn judge_in_place(ground: &Arc<Ground>, seen: &SeenRun, wanted: &Perform, name: &str, prompt: &str) -> Performed {
    let folder = Path::new(seen.folder());
    let listed = || Listing::of(folder, ground.places.home()).map_err(Undone::at("cannot look at", folder));
    let before = listed()?;
    let done = agent(ground, seen, wanted, name, prompt, folder, Allowed::Reduced);
    let differs = before.differs(&listed()?);
    match differs.first() {
        None => done,
        Some(first) => Err(Undone::from(format!(
            "the arbiter changed the work, which it may not: {} ({} in all); outside git it cannot be put back",
            first.display(),
            differs.len()
        ))),
    }
}

fn agent(
    ground: &Arc<Ground>,
    seen: &SeenRun,
    wanted: &Perform,
    name: &str,
    prompt: &str,
    folder: &Path,
    permissions: Allowed,
) -> Performed {
    let work = Work::Agent { prompt: prompt.to_owned() };
    let order = order(&seen.setting(), wanted, name, PathBuf::from(folder), work);
    ground.perform(&Order { permissions, ..order })
}
