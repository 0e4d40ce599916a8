//! The rules an append must keep before any store looks at it, the same for all three.
//!
//! Breaking one is a mistake of the program, not of a person, so the whole batch is refused. Never looks at what is
//! stored.

use crate::{Append, StoreError};

/// The most bytes one append may hold.
pub const MAX_APPEND_BYTES: usize = 64 << 20;
/// The most bytes a batch may hold: below what one message to PostgreSQL can carry.
pub const MAX_BATCH_BYTES: usize = 256 << 20;

pub(crate) fn admit(batch: &[Append]) -> Result<(), StoreError> {
    let mut total = 0;
    for append in batch {
        let misuse = |what: &str| StoreError::Misuse(format!("{what}, in an append to stream {}", append.stream));
        if append.events.is_empty() {
            return Err(misuse("no events"));
        }
        if append.stream.0.is_empty() {
            return Err(misuse("a stream without a name"));
        }
        // PostgreSQL cannot keep this character in a text; a store that can would make the three differ.
        if texts(append).any(|text| text.contains('\0')) {
            return Err(misuse("a text with a NUL character"));
        }
        if append.version() > i64::MAX as u64 {
            return Err(misuse("an expected version that no stream can have"));
        }
        let size = size(append);
        total += size;
        if size > MAX_APPEND_BYTES {
            return Err(misuse(&format!("{size} bytes, more than {MAX_APPEND_BYTES}")));
        }
    }
    if total > MAX_BATCH_BYTES {
        return Err(StoreError::Misuse(format!("{total} bytes in one batch, more than {MAX_BATCH_BYTES}")));
    }
    Ok(())
}

/// Every text that a store keeps as text; those of events are kept as bytes.
fn texts(append: &Append) -> impl Iterator<Item = &str> {
    let card = &append.header.card;
    [append.stream.as_str(), &card.kind, &card.status, &card.group, &card.title]
        .into_iter()
        .chain(append.effects.iter().flat_map(|it| [it.id.as_str(), it.kind.as_str()]))
        .chain(append.settled.iter().map(String::as_str))
        .chain(append.leases.iter().map(|(id, _)| id.as_str()))
        .chain(append.leases.iter().filter_map(|(_, lease)| lease.as_ref()).map(|it| it.holder.as_str()))
        .chain(append.timers.iter().map(|(key, _)| key.as_str()))
}

fn size(append: &Append) -> usize {
    let events = append.events.iter().map(|it| it.data.len() + it.kind.len() + it.actor.len() + it.correlation.len());
    let rows = append.rows.iter().filter_map(|(_, row)| row.as_ref()).map(Vec::len);
    let effects = append.effects.iter().map(|it| it.data.len());
    let blobs = append.blobs.iter().map(|(_, body)| body.len());
    append.header.data.len()
        + append.header.card.title.len()
        + events.chain(rows).chain(effects).chain(blobs).sum::<usize>()
}
