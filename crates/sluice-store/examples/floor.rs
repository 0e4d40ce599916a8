//! How far the store is from the floor: `cargo run --release -p sluice-store --example floor`.
//!
//! Everything is measured in one run on one disk, so the ratios mean something where the numbers do not. Says what it
//! measured and judges nothing.

#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on should say where")]

use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use sluice_store::testing::Cluster;
use sluice_store::{Append, Card, Effect, Event, Header, Query, RowKey, Store, StreamId, Writer};

/// How long each line is measured.
const TIME: Duration = Duration::from_secs(1);
/// How many streams take part in a measurement.
const STREAMS: u64 = 2_000;

fn main() {
    let folder = tempfile::tempdir_in(std::env::args().nth(1).unwrap_or_else(|| ".".to_owned())).unwrap();
    let mut table = Vec::new();
    let mut measure = |what: &str, each: u64, work: &mut dyn FnMut()| {
        work();
        let (start, mut done) = (Instant::now(), 0);
        while start.elapsed() < TIME {
            work();
            done += each;
        }
        let rate = done as f64 / start.elapsed().as_secs_f64();
        table.push((what.to_owned(), rate));
    };

    let mut file = File::create(folder.path().join("plain")).unwrap();
    measure("fdatasync of an appended 4 KiB block", 1, &mut || {
        file.write_all(&[7; 4096]).unwrap();
        file.sync_data().unwrap();
    });
    let bare = Connection::open(folder.path().join("bare.db")).unwrap();
    bare.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE t (a INTEGER PRIMARY KEY, b BLOB)",
    )
    .unwrap();
    measure("bare SQLite FULL commit", 1, &mut || {
        bare.prepare_cached("INSERT INTO t (b) VALUES (?1)").unwrap().execute([[7_u8; 400]]).unwrap();
    });
    let sqlite = Store::open(&format!("sqlite:{}", folder.path().join("store.db").display())).unwrap();
    ours("SQLite", &sqlite, &mut measure);
    beside_ended("SQLite", &sqlite, &mut measure);
    let cluster = Cluster::start();
    let address = cluster.database();
    let postgres = Store::open(&address).unwrap();
    cluster.execute(&address, "CREATE TABLE bare (a bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, b bytea)");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let client = runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(&address, tokio_postgres::NoTls).await.unwrap();
        drop(tokio::spawn(connection));
        client
    });
    let insert = runtime.block_on(client.prepare("INSERT INTO bare (b) VALUES ($1)")).unwrap();
    measure("bare PostgreSQL commit of one row", 1, &mut || {
        runtime.block_on(client.execute(&insert, &[&[7_u8; 400].as_slice()])).unwrap();
    });
    ours("PostgreSQL", &postgres, &mut measure);
    beside_ended("PostgreSQL", &postgres, &mut measure);
    print(&table);
}

/// Measures something that is done so many times by each call, and remembers it under a name.
type Measure<'a> = dyn FnMut(&str, u64, &mut dyn FnMut()) + 'a;

fn ours(kind: &str, store: &Store, measure: &mut Measure<'_>) {
    let mut writer = store.writer().unwrap();
    writer.own("floor", Duration::from_secs(3600)).unwrap();
    let mut versions = vec![0_u64; STREAMS as usize];
    let mut next = 0;
    for size in [1, 16, 64, 256, 1024] {
        measure(&format!("{kind}: appends in batches of {size}"), size, &mut || {
            let batch = (0..size).map(|_| {
                next = (next + 1) % STREAMS as usize;
                let append = step(next, versions[next]);
                versions[next] += 2;
                append
            });
            let batch = batch.collect();
            run(&mut *writer, batch);
        });
    }
}

/// Whether what is asked of open streams depends on how many have ended.
fn beside_ended(kind: &str, store: &Store, measure: &mut Measure<'_>) {
    let mut writer = store.writer().unwrap();
    writer.own("floor", Duration::from_secs(3600)).unwrap();
    let mut reader = store.reader().unwrap();
    let lists = [
        ("open", Query { open: Some(true), limit: 50, ..Query::default() }),
        ("of a kind", Query { kind: Some("run".to_owned()), limit: 50, ..Query::default() }),
        ("of a group", Query { group: Some("project".to_owned()), limit: 50, ..Query::default() }),
    ];
    let mut ended = 0;
    for most in [100, 100_000] {
        while ended < most {
            let end = |at: usize| {
                let mut append = step(1_000_000 + at, 0);
                (append.header.card.open, append.effects) = (false, Vec::new());
                append.header.card.status = "ended".to_owned();
                append
            };
            let count = (most - ended).min(1_000);
            run(&mut *writer, (ended..ended + count).map(end).collect());
            ended += count;
        }
        for (what, query) in &lists {
            measure(&format!("{kind}: list {what}, {ended} ended"), 1, &mut || {
                assert_eq!(reader.list(query).unwrap().items.len(), 50);
            });
        }
        measure(&format!("{kind}: first 50 open streams, {ended} ended"), 1, &mut || {
            assert_eq!(reader.open_streams(None, 50).unwrap().len(), 50);
        });
        let stream = step(7, 0).stream;
        measure(&format!("{kind}: load, {ended} ended"), 1, &mut || {
            assert!(reader.load(&stream).unwrap().is_some());
        });
    }
}

fn run(writer: &mut dyn Writer, batch: Vec<Append>) {
    assert!(writer.append(&batch).unwrap().iter().all(Result::is_ok));
}

/// What a step of a run costs the store: two events, the header, two rows, an effect in and an effect out.
fn step(stream: usize, version: u64) -> Append {
    let event = |kind: &str| Event {
        kind: kind.to_owned(),
        version: 1,
        time: 1_700_000_000_000,
        actor: "engine".to_owned(),
        correlation: "run-01jabcdefghjkmnpqrstvwxyz0".to_owned(),
        caused_by: None,
        data: vec![b'x'; 80],
    };
    let card = Card {
        kind: "run".to_owned(),
        status: "running".to_owned(),
        group: "project".to_owned(),
        title: "a run that is measured".to_owned(),
        open: true,
        created: stream as i64,
        updated: version as i64,
    };
    let name = StreamId::new(format!("run-01jabcdefghjkmnpqrst{stream:06}"));
    let mut append = Append::new(
        name,
        version,
        vec![event("step-completed"), event("step-started")],
        Header { card, data: vec![b'h'; 120] },
    );
    let at = (version / 2 % 10) as u32;
    append.rows = vec![(RowKey(at, 0), Some(vec![b'r'; 100])), (RowKey(at + 1, 0), Some(vec![b'r'; 100]))];
    append.effects = vec![Effect { id: format!("step-{version}"), kind: "run-step".to_owned(), data: vec![b'e'; 60] }];
    if version >= 2 {
        append.settled = vec![format!("step-{}", version - 2)];
    }
    append
}

fn print(table: &[(String, f64)]) {
    let of = |what: &str| table.iter().find(|(name, _)| name == what).map(|(_, rate)| *rate);
    let floor = of("bare SQLite FULL commit").unwrap_or(f64::NAN);
    println!("{:<48} {:>12} {:>10} {:>26}", "what", "per second", "µs each", "per bare SQLite commit");
    for (what, rate) in table {
        println!("{what:<48} {rate:>12.0} {:>10.1} {:>25.2}×", 1e6 / rate, rate / floor);
    }
}
