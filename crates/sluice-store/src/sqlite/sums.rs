//! The checksums of a SQLite store: SQLite notices damaged structure, not damaged content.
//!
//! Each covers what it belongs to with its key, so that nothing can stand in the place of another.

use crate::{Effect, Header, Lease, RowKey, StreamId};

pub(super) fn sum(parts: &[&[u8]]) -> i64 {
    let mut hasher = crc32fast::Hasher::new();
    parts.iter().for_each(|part| hasher.update(part));
    i64::from(hasher.finalize())
}

/// The checksum of a header, with its stream, its version and its card.
pub(super) fn header_sum(stream: &StreamId, version: u64, header: &Header) -> i64 {
    let card = &header.card;
    sum(&[
        stream.as_str().as_bytes(),
        &version.to_le_bytes(),
        card.kind.as_bytes(),
        card.status.as_bytes(),
        card.group.as_bytes(),
        card.title.as_bytes(),
        &[u8::from(card.open)],
        &card.created.to_le_bytes(),
        &card.updated.to_le_bytes(),
        &header.data,
    ])
}

/// The checksum of a row, with its key.
pub(super) fn row_sum(stream: i64, key: RowKey, data: &[u8]) -> i64 {
    sum(&[&stream.to_le_bytes(), &key.0.to_le_bytes(), &key.1.to_le_bytes(), data])
}

/// The checksum of an effect, with its key. Who holds it is not in it, because that changes alone.
pub(super) fn effect_sum(stream: i64, effect: &Effect) -> i64 {
    sum(&[&stream.to_le_bytes(), effect.id.as_bytes(), effect.kind.as_bytes(), &effect.data])
}

/// The checksum of who holds an effect, with its key.
pub(super) fn lease_sum(stream: i64, effect: &str, lease: &Lease) -> i64 {
    sum(&[&stream.to_le_bytes(), effect.as_bytes(), lease.holder.as_bytes(), &lease.until.to_le_bytes()])
}

pub(super) fn timer_sum(stream: i64, key: &str, due: i64) -> i64 {
    sum(&[&stream.to_le_bytes(), key.as_bytes(), &due.to_le_bytes()])
}

/// Where a row of the log stands, and what it holds.
pub(super) struct LogRow {
    pub(super) position: i64,
    pub(super) stream: i64,
    pub(super) first: i64,
    pub(super) count: i64,
}

impl LogRow {
    /// The checksum of all of it. The events have one of their own at their end.
    pub(super) fn sum(&self, events: &[u8]) -> i64 {
        let own = events.last_chunk::<4>().copied().unwrap_or_default();
        let numbers = [self.position, self.stream, self.first, self.count].map(i64::to_le_bytes);
        sum(&[&numbers[0], &numbers[1], &numbers[2], &numbers[3], &own])
    }
}
