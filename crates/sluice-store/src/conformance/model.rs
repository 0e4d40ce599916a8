//! The store and the one in memory do the same random things, and must look the same afterwards.
//!
//! Everything comes from the seed, which a failure names.

use super::{SeededNumbers, StoreOpener, card, digest, event, id, owner};
use crate::memory::Memory;
use crate::{Append, Cursor, Effect, Event, Header, Lease, Order, Query, Reader, RowKey, Store, StreamId};

const SEEDS: u64 = 12;
const ROUNDS: u64 = 25;
const STREAMS: u64 = 9;

/// Random batches with conflicts, reopening, forgetting and changes of owner.
pub fn random_batches_agree_with_the_model(place: StoreOpener<'_>) {
    for seed in 1..=SEEDS {
        let mut numbers = SeededNumbers(seed);
        let memory = Store::from(Memory::new());
        let model = || memory.clone();
        let (mut expected, mut expected_reader) = owner(&model);
        let (mut writer, mut reader) = owner(place);
        // Each seed has streams of its own: the store is not empty after the first.
        let name = |at: u64| format!("seed-{seed:02}-{at}");
        let start = reader.log(Cursor(0), usize::MAX >> 1).unwrap().len();
        for round in 0..ROUNDS {
            let batch = batch(&mut numbers, &mut *expected_reader, &name);
            let answers = writer.append(&batch).unwrap();
            assert_eq!(answers, expected.append(&batch).unwrap(), "seed {seed}, round {round}");
            if numbers.one_in(6) {
                let streams: Vec<StreamId> = (0..STREAMS).map(|at| id(&name(at))).collect();
                let gone = writer.forget(&streams).unwrap();
                assert_eq!(gone, expected.forget(&streams).unwrap(), "seed {seed}, round {round}");
            }
            if numbers.one_in(6) {
                drop((writer, reader));
                (writer, reader) = owner(place);
            }
            let what = format!("seed {seed}, round {round}");
            compare(&mut *reader, &mut *expected_reader, seed, &name, &what);
        }
        let log = reader.log(Cursor(0), usize::MAX >> 1).unwrap();
        let found: Vec<_> = log.into_iter().skip(start).map(|it| (it.stream, it.number, it.event)).collect();
        let log = expected_reader.log(Cursor(0), usize::MAX >> 1).unwrap();
        let expected: Vec<_> = log.into_iter().map(|it| (it.stream, it.number, it.event)).collect();
        assert!(found == expected, "seed {seed}: the logs differ");
    }
}

fn compare(reader: &mut dyn Reader, expected: &mut dyn Reader, seed: u64, name: &dyn Fn(u64) -> String, what: &str) {
    for at in 0..STREAMS {
        let stream = id(&name(at));
        assert_eq!(reader.load(&stream).unwrap(), expected.load(&stream).unwrap(), "{what}, {stream}");
        assert_eq!(reader.summary(&stream).unwrap(), expected.summary(&stream).unwrap(), "{what}, {stream}");
        let (found, events) = (reader.history(&stream, at, 50).unwrap(), expected.history(&stream, at, 50).unwrap());
        assert!(found == events, "{what}: the histories of {stream} differ");
    }
    for byte in 0..6 {
        let digest = digest(byte ^ (seed as u8) << 3);
        assert_eq!(reader.blob(&digest).unwrap(), expected.blob(&digest).unwrap(), "{what}, {digest}");
    }
    let group = Some(format!("group {seed}"));
    for open in [None, Some(true), Some(false)] {
        for order in [Order::Newest, Order::Oldest] {
            let query = Query { group: group.clone(), open, order, limit: 100, ..Query::default() };
            assert_eq!(reader.list(&query).unwrap(), expected.list(&query).unwrap(), "{what}, {query:?}");
        }
    }
    let ours = |found: Vec<StreamId>| found.into_iter().filter(|it| it.0.starts_with(&name(0)[..8])).collect();
    let open: Vec<StreamId> = ours(reader.open_streams(None, 10_000).unwrap());
    assert_eq!(open, expected.open_streams(None, 10_000).unwrap(), "{what}");
}

fn batch(numbers: &mut SeededNumbers, model: &mut dyn Reader, name: &dyn Fn(u64) -> String) -> Vec<Append> {
    let mut batch: Vec<Append> = Vec::new();
    for _ in 0..numbers.below(12) {
        let stream = id(&name(numbers.below(STREAMS)));
        let stored = model.load(&stream).unwrap().map_or(0, |it| it.version);
        let before = batch.iter().rfind(|it| it.stream == stream).map_or(stored, Append::version);
        let expected = if numbers.one_in(5) { numbers.below(4) } else { before };
        batch.push(append(numbers, stream, expected));
    }
    batch
}

fn append(numbers: &mut SeededNumbers, stream: StreamId, expected: u64) -> Append {
    let seed: u8 = stream.0[5..7].parse().unwrap();
    let events = (0..1 + numbers.below(3)).map(|_| Event { data: bytes(numbers), ..event("random") }).collect();
    let mut card = card(i64::from(seed) * 1_000 + (expected / 4) as i64);
    card.group = format!("group {seed}");
    card.status = format!("status {}", numbers.below(3));
    card.open = !numbers.one_in(3);
    card.updated = numbers.below(1_000) as i64;
    let mut append = Append::new(stream, expected, events, Header { card, data: bytes(numbers) });
    for _ in 0..numbers.below(4) {
        let key = RowKey(numbers.below(3) as u32, numbers.below(2) as u32);
        let row = if numbers.one_in(3) { None } else { Some(bytes(numbers)) };
        append.rows.push((key, row));
    }
    for _ in 0..numbers.below(3) {
        let data = bytes(numbers);
        append.effects.push(Effect { id: some(numbers), kind: "kind".to_owned(), data });
    }
    append.settled.extend((0..numbers.below(4)).map(|_| some(numbers)));
    for _ in 0..numbers.below(3) {
        let lease = Lease { holder: some(numbers), until: numbers.below(100) as i64 };
        append.leases.push((some(numbers), if numbers.one_in(3) { None } else { Some(lease) }));
    }
    for _ in 0..numbers.below(3) {
        let due = if numbers.one_in(2) { None } else { Some(numbers.below(100) as i64) };
        append.timers.push((some(numbers), due));
    }
    if numbers.one_in(4) {
        append.blobs.push((digest(numbers.below(6) as u8 ^ seed << 3), bytes(numbers)));
    }
    append
}

/// One of few names, so that the same ones meet again.
fn some(numbers: &mut SeededNumbers) -> String {
    format!("n{}", numbers.below(4))
}

fn bytes(numbers: &mut SeededNumbers) -> Vec<u8> {
    let length = if numbers.one_in(20) { 9_000 } else { numbers.below(40) };
    (0..length).map(|_| numbers.next() as u8).collect()
}
