//! Checks of lists, of what recovery finds, and of forgetting.

use super::{SeededNumbers, StoreOpener, digest, effect, id, last, one, owner};
use crate::{Append, Cursor, Order, PageKey, Query, Reader, RowKey, StreamId, StreamSummary};

fn open_in_pages(reader: &mut dyn Reader, size: usize) -> Vec<StreamId> {
    let mut found: Vec<StreamId> = Vec::new();
    loop {
        let page = reader.open_streams(found.last(), size).unwrap();
        if page.is_empty() {
            return found;
        }
        found.extend(page);
    }
}

fn list_in_pages(reader: &mut dyn Reader, query: &Query) -> Vec<StreamSummary> {
    let (mut found, mut query) = (Vec::new(), query.clone());
    loop {
        let page = reader.list(&query).unwrap();
        assert!(page.items.len() <= query.limit);
        found.extend(page.items);
        match page.next {
            Some(next) => query.after = Some(next),
            None => return found,
        }
    }
}

/// By name, ended ones too; letters that a pattern would take for something else are letters.
pub fn streams_are_found_by_how_they_begin(place: StoreOpener<'_>) {
    let (mut writer, mut reader) = owner(place);
    let names = ["ab", "abc", "abd", "ac", "a%c", "a_c", "b", "é"];
    for name in names {
        writer.append(&[one(name, 0)]).unwrap();
    }
    let mut found = |begins: &str, limit| {
        let found = reader.named(begins, limit).unwrap();
        found.into_iter().map(|it| it.0).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(found("ab", 9), "ab abc abd");
    assert_eq!(found("ab", 2), "ab abc");
    assert_eq!(found("abc", 9), "abc");
    assert_eq!(found("a%", 9), "a%c");
    assert_eq!(found("a_", 9), "a_c");
    assert_eq!(found("é", 9), "é");
    assert_eq!(found("x", 9), "");
    assert_eq!(found("", 9), "a%c a_c ab abc abd ac b é");
}

/// By name, whatever the size of the page.
pub fn open_streams_come_in_pages(place: StoreOpener<'_>) {
    let (mut writer, mut reader) = owner(place);
    let names: Vec<String> = (0..23).map(|at| format!("s{:02}", at * 7 % 23)).collect();
    let batch = names.iter().map(|name| if name.ends_with('3') { last(name, 0) } else { one(name, 0) });
    writer.append(&batch.collect::<Vec<_>>()).unwrap();
    let mut expected: Vec<StreamId> = names.iter().filter(|it| !it.ends_with('3')).map(StreamId::new).collect();
    expected.sort();
    for size in [1, 2, 5, 100] {
        assert_eq!(open_in_pages(&mut *reader, size), expected, "in pages of {size}");
    }
}

/// An effect or a timer that is left keeps an ended stream in sight.
pub fn ended_streams_stay_open_until_nothing_is_left(place: StoreOpener<'_>) {
    let (mut writer, mut reader) = owner(place);
    let (mut first, mut second) = (last("s", 0), one("t", 0));
    first.effects = vec![effect("e")];
    first.timers = vec![("t".to_owned(), Some(1))];
    second.effects = vec![effect("e")];
    writer.append(&[first, second]).unwrap();
    let mut open = || reader.open_streams(None, 9).unwrap().into_iter().map(|it| it.0).collect::<Vec<_>>();
    assert_eq!(open(), ["s", "t"]);
    let mut settle = last("s", 1);
    settle.settled = vec!["e".to_owned()];
    writer.append(&[settle]).unwrap();
    assert_eq!(open(), ["s", "t"]);
    let (mut clear, end) = (last("s", 2), last("t", 1));
    clear.timers = vec![("t".to_owned(), None)];
    writer.append(&[clear, end]).unwrap();
    assert_eq!(open(), ["t"]);
    let mut settle = last("t", 2);
    settle.settled = vec!["e".to_owned()];
    let mut again = last("s", 3);
    again.effects = vec![effect("f")];
    writer.append(&[settle, again]).unwrap();
    assert_eq!(open(), ["s"]);
    writer.append(&[one("t", 3)]).unwrap();
    assert_eq!(open(), ["s", "t"]);
}

/// Streams of two kinds, three groups, several statuses, created in no order.
fn assorted() -> Vec<Append> {
    let mut numbers = SeededNumbers(7);
    let assort = |at: u64| {
        let mut append = one(&format!("s{at:03}"), 0);
        let card = &mut append.header.card;
        card.kind = ["run", "task"][numbers.below(2) as usize].to_owned();
        card.status = ["new", "running", "done"][numbers.below(3) as usize].to_owned();
        card.group = ["red", "green", "blue"][numbers.below(3) as usize].to_owned();
        card.open = card.status != "done" || numbers.one_in(5);
        card.created = numbers.below(40) as i64;
        append
    };
    (0..120).map(assort).collect()
}

/// Every combination of filters, in both orders.
pub fn lists_are_filtered(place: StoreOpener<'_>) {
    let (mut writer, mut reader) = owner(place);
    let appends = assorted();
    writer.append(&appends).unwrap();
    let options = |values: &[&str]| {
        let some = values.iter().map(|it| Some((*it).to_owned()));
        some.chain([None]).collect::<Vec<Option<String>>>()
    };
    for kind in options(&["run", "task", "none"]) {
        for status in options(&["new", "done"]) {
            for group in options(&["red", "blue"]) {
                for open in [None, Some(true), Some(false)] {
                    let (kind, status, group) = (kind.clone(), status.clone(), group.clone());
                    let query = Query { kind, status, group, open, limit: 7, ..Query::default() };
                    assert_list(&mut *reader, &appends, &query);
                    assert_list(&mut *reader, &appends, &Query { order: Order::Oldest, ..query });
                }
            }
        }
    }
}

fn assert_list(reader: &mut dyn Reader, appends: &[Append], query: &Query) {
    let is = |wanted: &Option<String>, found: &String| wanted.as_ref().is_none_or(|wanted| wanted == found);
    let matching = appends.iter().filter(|it| {
        let card = &it.header.card;
        is(&query.kind, &card.kind)
            && is(&query.status, &card.status)
            && is(&query.group, &card.group)
            && query.open.is_none_or(|open| open == card.open)
    });
    let summary = |it: &Append| StreamSummary { stream: it.stream.clone(), version: 1, card: it.header.card.clone() };
    let mut expected: Vec<StreamSummary> = matching.map(summary).collect();
    expected.sort_by_key(|it| PageKey { created: it.card.created, stream: it.stream.clone() });
    if query.order == Order::Newest {
        expected.reverse();
    }
    assert_eq!(list_in_pages(reader, query), expected, "{query:?}");
}

/// Pages join without gap or overlap, also where streams were created at the same time or change in between.
pub fn lists_come_in_pages(place: StoreOpener<'_>) {
    let (mut writer, mut reader) = owner(place);
    let appends = assorted();
    writer.append(&appends).unwrap();
    for limit in [1, 2, 50, 119, 120, 121] {
        for order in [Order::Newest, Order::Oldest] {
            assert_list(&mut *reader, &appends, &Query { order, limit, ..Query::default() });
        }
    }
    let first = reader.list(&Query { limit: 60, ..Query::default() }).unwrap();
    let mut changed = one(first.items[3].stream.as_str(), 1);
    changed.header.card.created = first.items[3].card.created;
    changed.header.card.updated = 1_000_000;
    writer.append(&[changed]).unwrap();
    let second = reader.list(&Query { limit: 100, after: first.next, ..Query::default() }).unwrap();
    assert_eq!((second.items.len(), second.next), (60, None));
    assert!(reader.list(&Query { limit: 0, ..Query::default() }).unwrap().items.is_empty());
}

/// Events, rows, header, card: nothing is left, and the name is free.
pub fn forgetting_takes_everything(place: StoreOpener<'_>) {
    let (mut writer, mut reader) = owner(place);
    let mut first = one("s", 0);
    first.rows = vec![(RowKey(1, 1), Some(vec![1]))];
    first.effects = vec![effect("e")];
    let mut end = last("s", 1);
    end.settled = vec!["e".to_owned()];
    writer.append(&[first, end, one("t", 0), last("u", 0)]).unwrap();
    assert_eq!(writer.forget(&[id("s"), id("nobody"), id("u"), id("s")]).unwrap(), 2);
    assert_eq!(reader.load(&id("s")).unwrap(), None);
    assert_eq!(reader.history(&id("s"), 0, 9).unwrap(), []);
    let log: Vec<_> = reader.log(Cursor(0), 9).unwrap().into_iter().map(|it| it.stream.0).collect();
    assert_eq!(log, ["t"]);
    assert_eq!(reader.list(&Query::default()).unwrap().items.len(), 1);
    assert_eq!(writer.append(&[one("s", 2), one("s", 0)]).unwrap()[1], Ok(1));
    assert_eq!(reader.load(&id("s")).unwrap().unwrap().rows, []);
}

/// Open streams, and ended ones with something left, stay.
pub fn what_is_open_is_not_forgotten(place: StoreOpener<'_>) {
    let (mut writer, mut reader) = owner(place);
    let mut left = last("t", 0);
    left.timers = vec![("t".to_owned(), Some(1))];
    writer.append(&[one("s", 0), left]).unwrap();
    assert_eq!(writer.forget(&[id("s"), id("t")]).unwrap(), 0);
    assert_eq!(reader.open_streams(None, 9).unwrap().len(), 2);
    assert_eq!(writer.append(&[one("s", 1)]).unwrap(), [Ok(2)]);
}

/// A body that two streams brought goes with the second of them.
pub fn blobs_go_with_their_last_stream(place: StoreOpener<'_>) {
    let (mut writer, mut reader) = owner(place);
    let (mut first, mut second) = (last("s", 0), last("t", 0));
    first.blobs = vec![(digest(1), b"shared".to_vec()), (digest(2), b"own".to_vec())];
    second.blobs = vec![(digest(1), b"shared".to_vec())];
    writer.append(&[first, second]).unwrap();
    assert_eq!(writer.forget(&[id("s")]).unwrap(), 1);
    assert!(reader.blob(&digest(1)).unwrap().is_some());
    assert_eq!(reader.blob(&digest(2)).unwrap(), None);
    assert_eq!(writer.forget(&[id("t")]).unwrap(), 1);
    assert_eq!(reader.blob(&digest(1)).unwrap(), None);
}

/// Many streams, most of them ended.
pub fn ten_thousand_streams(place: StoreOpener<'_>) {
    let (mut writer, mut reader) = owner(place);
    let names: Vec<String> = (0..10_000).map(|at| format!("run-{at:05}")).collect();
    for (chunk, names) in (0..).zip(names.chunks(500)) {
        let make = |(at, name): (i64, &String)| {
            let mut append = if at % 100 == 0 { one(name, 0) } else { last(name, 0) };
            append.header.card.created = chunk * 500 + at;
            append
        };
        let answers = writer.append(&(0..).zip(names).map(make).collect::<Vec<_>>()).unwrap();
        assert!(answers.iter().all(|it| *it == Ok(1)));
    }
    assert_eq!(open_in_pages(&mut *reader, 33).len(), 100);
    let open = Query { open: Some(true), limit: 10, ..Query::default() };
    let page = reader.list(&open).unwrap();
    assert_eq!(page.items[0].stream, id("run-09900"));
    assert_eq!(list_in_pages(&mut *reader, &open).len(), 100);
    let all = Query { limit: 3_000, order: Order::Oldest, ..Query::default() };
    let found = list_in_pages(&mut *reader, &all);
    assert!(found.iter().map(|it| it.stream.as_str()).eq(names.iter().map(String::as_str)));
}
