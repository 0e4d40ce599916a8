//! The readers of a store: as many as are needed at once, up to a limit, so that no read waits for another's.
//!
//! Each has a connection of its own, and all share the definitions that they have made.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use sluice_engine::loader::{DefinitionCache, Definitions, Loader};
use sluice_store::{Store, StoreError};

use crate::background::locked;

/// So many read at once: each is a connection, with a cache of its own.
const MOST_READERS: usize = 4;

pub(crate) struct ReaderPool {
    store: Store,
    definitions: Arc<DefinitionCache>,
    state: Mutex<ReaderPoolState>,
    returned: Condvar,
}

struct ReaderPoolState {
    /// The last that was used is used next: its cache is warm, and it knows best whether the store answers.
    idle: Vec<Loader>,
    /// How many there are, lent or idle.
    count: usize,
}

impl ReaderPool {
    /// A pool with its first reader, which it keeps.
    pub(crate) fn new(store: &Store, definitions: Arc<dyn Definitions>) -> Result<ReaderPool, StoreError> {
        let definitions = Arc::new(DefinitionCache::new(definitions));
        let first = Loader::sharing(store.reader()?, definitions.clone());
        let state = Mutex::new(ReaderPoolState { idle: vec![first], count: 1 });
        Ok(ReaderPool { store: store.clone(), definitions, state, returned: Condvar::new() })
    }

    /// Lends a reader until what is given is dropped. A thread borrows one at a time: it could wait for itself.
    pub(crate) fn lend(&self) -> LentReader<'_> {
        #[cfg(test)]
        LENT.set(LENT.get() + 1);
        let mut state = locked(&self.state);
        loop {
            if let Some(loader) = state.idle.pop() {
                return LentReader { pool: self, loader: Some(loader) };
            }
            if state.count < MOST_READERS {
                state.count += 1;
                drop(state);
                if let Ok(reader) = self.store.reader() {
                    let loader = Loader::sharing(reader, self.definitions.clone());
                    return LentReader { pool: self, loader: Some(loader) };
                }
                // The system or the server gives no connection more: those that there are must do.
                state = locked(&self.state);
                state.count -= 1;
                if !state.idle.is_empty() {
                    continue;
                }
            }
            state = self.returned.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
thread_local! {
    /// How often this thread has read something.
    pub(crate) static LENT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// A reader that is another's again when this is dropped.
pub(crate) struct LentReader<'a> {
    pool: &'a ReaderPool,
    /// There until it is dropped.
    loader: Option<Loader>,
}

impl Deref for LentReader<'_> {
    type Target = Loader;

    fn deref(&self) -> &Loader {
        self.loader.as_ref().expect("it is lent until this is dropped")
    }
}

impl DerefMut for LentReader<'_> {
    fn deref_mut(&mut self) -> &mut Loader {
        self.loader.as_mut().expect("it is lent until this is dropped")
    }
}

impl Drop for LentReader<'_> {
    fn drop(&mut self) {
        locked(&self.pool.state).idle.extend(self.loader.take());
        self.pool.returned.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::definitions::PinnedDefinitions;

    fn pool() -> ReaderPool {
        let store = Store::open("memory:").unwrap();
        ReaderPool::new(&store, Arc::new(PinnedDefinitions)).unwrap()
    }

    #[test]
    fn several_read_at_once_and_more_wait_for_one_that_is_given_back() {
        let pool = pool();
        let mut lent: Vec<LentReader<'_>> = (0..MOST_READERS).map(|_| pool.lend()).collect();
        let (got, has_got) = channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let end = pool.lend().reader().end().unwrap();
                got.send(end).unwrap();
            });
            assert!(has_got.recv_timeout(std::time::Duration::from_millis(20)).is_err());
            lent.pop();
            has_got.recv().unwrap();
        });
        drop(lent);
        assert_eq!(locked(&pool.state).idle.len(), MOST_READERS);
    }

    #[test]
    fn one_after_the_other_needs_one_reader() {
        let pool = pool();
        (0..9).for_each(|_| drop(pool.lend()));
        assert_eq!((locked(&pool.state).count, LENT.get()), (1, 9));
    }
}
