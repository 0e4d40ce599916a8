//! One at a time for each of many things: a thread that works on one holds its turn, and the others go on.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::background::locked;

#[derive(Debug, Default)]
pub(crate) struct KeyedTurns {
    taken: Mutex<BTreeMap<String, Arc<Mutex<()>>>>,
}

impl KeyedTurns {
    pub(crate) fn of(&self, name: &str) -> Arc<Mutex<()>> {
        let mut taken = locked(&self.taken);
        taken.retain(|_, turn| Arc::strong_count(turn) > 1);
        taken.entry(name.to_owned()).or_default().clone()
    }
}
