//! Who may write, decided the same way by all three stores.
//!
//! Pure: each store reads this under its own lock, changes it and writes it back, by its own clock.

use std::time::Duration;

use crate::{Ownership, StoreError};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoreOwner {
    /// How often the owner changed. 0: there never was one.
    pub(crate) epoch: u64,
    /// Who owns the store, or owned it last.
    pub(crate) name: Option<String>,
    /// Until when no other can take it, in milliseconds since 1970.
    pub(crate) until: i64,
}

impl StoreOwner {
    /// Takes the store for `name`, whose writer has the epoch `mine`. A writer whose epoch has passed is never given
    /// another: what its owner knows about the store may be old.
    pub(crate) fn take(
        &mut self,
        mine: Option<u64>,
        name: &str,
        now: i64,
        ttl: Duration,
    ) -> Result<Ownership, StoreError> {
        if mine.is_some_and(|mine| mine != self.epoch) {
            return Err(StoreError::LostOwnership);
        }
        if mine.is_none() {
            if let Some(by) = self.name.as_ref().filter(|by| *by != name)
                && self.until > now
            {
                let remaining = Duration::from_millis(self.until.abs_diff(now));
                return Err(StoreError::Owned { by: by.clone(), remaining });
            }
            self.epoch += 1;
        }
        let before = self.name.replace(name.to_owned());
        self.until = now.saturating_add(i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX));
        Ok(Ownership { epoch: self.epoch, ttl, before })
    }

    /// Whoever has this epoch gives the store up. Its name stays: the next owner may want to know whose work it takes up.
    pub(crate) fn release(&mut self, epoch: u64) {
        if epoch == self.epoch {
            self.until = 0;
        }
    }
}
