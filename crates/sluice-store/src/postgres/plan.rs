//! A batch as what will be different afterwards: one entry per stream, row, effect and timer, whatever led to it.
//!
//! PostgreSQL is given whole columns, and a statement cannot touch a row twice. So the appends of a batch are played
//! here, in order, before anything is sent. Pure: reads versions, sends nothing.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Append, Conflict, Digest, Effect, Lease, RowKey};

pub(super) enum OutboxChange<'a> {
    /// It leaves, if it is there.
    Gone,
    Put(&'a Effect, Option<&'a Lease>),
    /// If it is there, it is held so.
    Held(Option<&'a Lease>),
}

#[derive(Default)]
pub(super) struct BatchPlan<'a> {
    pub(super) answers: Vec<Result<u64, Conflict>>,
    /// The appends that are stored, in order.
    pub(super) stored: Vec<&'a Append>,
    /// The last append of each stream: its header is the one that stays.
    pub(super) streams: BTreeMap<&'a str, &'a Append>,
    pub(super) rows: BTreeMap<(&'a str, RowKey), Option<&'a [u8]>>,
    pub(super) effects: BTreeMap<(&'a str, &'a str), OutboxChange<'a>>,
    pub(super) timers: BTreeMap<(&'a str, &'a str), Option<i64>>,
    pub(super) blobs: BTreeMap<Digest, &'a [u8]>,
    pub(super) uses: BTreeSet<(&'a str, Digest)>,
}

impl<'a> BatchPlan<'a> {
    /// Plays a batch. `versions` knows the streams that exist; `settled` answers appends that are stored already.
    pub(super) fn of(
        batch: &'a [Append],
        mut versions: BTreeMap<String, u64>,
        mut settled: impl FnMut(&Append) -> Option<u64>,
    ) -> BatchPlan<'a> {
        let mut plan = BatchPlan::default();
        for append in batch {
            if let Some(version) = settled(append) {
                plan.answers.push(Ok(version));
                continue;
            }
            let version = versions.entry(append.stream.0.clone()).or_default();
            if *version != append.expected {
                let (stream, expected) = (append.stream.clone(), append.expected);
                plan.answers.push(Err(Conflict { stream, expected, found: *version }));
                continue;
            }
            *version = append.version();
            plan.answers.push(Ok(*version));
            plan.play(append);
        }
        plan
    }

    /// How many events are stored.
    pub(super) fn events(&self) -> i64 {
        self.stored.iter().map(|append| append.events.len() as i64).sum()
    }

    fn play(&mut self, append: &'a Append) {
        let stream = append.stream.as_str();
        self.stored.push(append);
        self.streams.insert(stream, append);
        for (key, row) in &append.rows {
            self.rows.insert((stream, *key), row.as_deref());
        }
        for id in &append.settled {
            self.effects.insert((stream, id), OutboxChange::Gone);
        }
        for effect in &append.effects {
            self.effects.insert((stream, &effect.id), OutboxChange::Put(effect, None));
        }
        for (id, lease) in &append.leases {
            let state = self.effects.entry((stream, id)).or_insert(OutboxChange::Held(None));
            match state {
                OutboxChange::Gone => {}
                OutboxChange::Put(_, held) | OutboxChange::Held(held) => *held = lease.as_ref(),
            }
        }
        for (key, due) in &append.timers {
            self.timers.insert((stream, key), *due);
        }
        for (digest, body) in &append.blobs {
            self.blobs.entry(*digest).or_insert(body);
            self.uses.insert((stream, *digest));
        }
    }
}
