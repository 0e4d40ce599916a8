//! Who may write, decided the same way by all three stores.
//!
//! Pure: each store reads this under its own lock, changes it and writes it back, by its own clock.

use std::time::Duration;

use crate::StoreError;

/// The owner as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Owner {
    /// How often the owner changed. 0: there never was one.
    pub(crate) epoch: u64,
    /// Who owns the store; nobody when it was released.
    pub(crate) name: Option<String>,
    /// Until when no other can take it, in milliseconds since 1970.
    pub(crate) until: i64,
}

impl Owner {
    /// Takes the store for `name`, whose writer last had the epoch `mine`.
    pub(crate) fn take(&mut self, mine: Option<u64>, name: &str, now: i64, ttl: Duration) -> Result<u64, StoreError> {
        if mine != Some(self.epoch) {
            if let Some(by) = self.name.as_ref().filter(|by| *by != name)
                && self.until > now
            {
                let remaining = Duration::from_millis(self.until.abs_diff(now));
                return Err(StoreError::Owned { by: by.clone(), remaining });
            }
            self.epoch += 1;
        }
        self.name = Some(name.to_owned());
        self.until = now.saturating_add(i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX));
        Ok(self.epoch)
    }
}
