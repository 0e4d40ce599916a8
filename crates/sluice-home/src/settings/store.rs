//! What a store that cannot be used means to those who ask.

use sluice_api::problem::Problem;
use sluice_store::StoreError;

use crate::undone::described;

pub(crate) fn closed(error: &StoreError) -> Problem {
    match error {
        StoreError::Address(_) => Problem::bad_request(described(error)),
        // Whoever opens a store asks once.
        StoreError::Unavailable { place, why, source, .. } => {
            Problem::unavailable(format!("the store {place} {why}: {source}"))
        }
        StoreError::Owned { by, remaining } => {
            let seconds = remaining.as_secs() + 1;
            let message =
                format!("another engine ({by}) owns the store, for {seconds} seconds after its last sign of life");
            Problem::unavailable(message)
                .hint("one engine at a time works on a store: end that one, or wait until it is gone")
        }
        StoreError::LostOwnership => {
            let message = "another engine has taken the store over: this one ends, and so do its agents and scripts";
            Problem::unavailable(message)
                .hint("what is stored goes on there; start this one again when that one has ended")
        }
        other => Problem::unavailable(described(other)),
    }
}
