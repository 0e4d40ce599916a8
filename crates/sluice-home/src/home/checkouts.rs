//! Main checkouts as they were when a session began, to tell afterwards whether something outside its worktree was
//! touched. What the engine itself does there on a person's command is nobody's leak.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use sluice_os::git::Repository;
use sluice_os::leak::CheckoutSnapshot;
use sluice_os::session::SessionId;

use crate::background::locked;
use crate::background::turns::KeyedTurns;

#[derive(Default)]
pub(crate) struct CheckoutSnapshots {
    seen: Mutex<BTreeMap<SessionId, (PathBuf, CheckoutSnapshot)>>,
    /// Held while the engine itself changes one: no thread compares that one meanwhile.
    changing: KeyedTurns,
}

impl CheckoutSnapshots {
    fn turn(&self, repository: &Repository) -> Arc<Mutex<()>> {
        self.changing.of(&repository.common().to_string_lossy())
    }

    /// Notes what the main checkout looks like before a session begins.
    pub(crate) fn remember(&self, session: &SessionId, repository: &Repository) {
        let snapshot = CheckoutSnapshot::take(repository);
        locked(&self.seen).insert(session.clone(), (repository.common().to_owned(), snapshot));
    }

    /// What has changed since, that was not the engine's own doing. It is told once.
    pub(crate) fn differences(&self, session: &SessionId, repository: &Repository) -> Vec<String> {
        let turn = self.turn(repository);
        let _unchanged = locked(&turn);
        let before = locked(&self.seen).remove(session);
        before.map_or_else(Vec::new, |(_, before)| before.difference(&CheckoutSnapshot::take(repository)))
    }

    /// Does something that may change the main checkout, on the engine's own account. Nothing that waits for another
    /// machine: others wait for it.
    pub(crate) fn change<T>(&self, repository: &Repository, act: impl FnOnce() -> T) -> T {
        let turn = self.turn(repository);
        let _changing = locked(&turn);
        let before = CheckoutSnapshot::take(repository);
        let done = act();
        let after = CheckoutSnapshot::take(repository);
        let mut seen = locked(&self.seen);
        let concerned = seen.values_mut().filter(|(common, _)| common == repository.common());
        concerned.for_each(|(_, snapshot)| snapshot.absorb(&before, &after));
        done
    }
}
