//! Checks of histories and of the log of all streams.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{StoreOpener, event, id, last, one, owner};
use crate::{Append, Cursor, Event, LARGEST_PAGE, LoggedEvent, Query};

/// An append of several events, each telling its number.
fn several(stream: &str, expected: u64, count: u64) -> Append {
    let mut append = one(stream, expected);
    append.events = (1..=count).map(|at| told(expected + at)).collect();
    append
}

fn told(number: u64) -> Event {
    Event { data: number.to_le_bytes().to_vec(), ..event("told") }
}

/// Any page size, starting inside an append or beyond the end.
pub fn history_comes_in_pages(place: StoreOpener<'_>) {
    let (mut writer, mut reader) = owner(place);
    writer.append(&[several("s", 0, 3), several("t", 0, 5), several("s", 3, 1), several("s", 4, 6)]).unwrap();
    let whole: Vec<(u64, Event)> = (1..=10).map(|number| (number, told(number))).collect();
    assert_eq!(reader.history(&id("s"), 0, 100).unwrap(), whole);
    for size in 1..=11_usize {
        let mut read: Vec<(u64, Event)> = Vec::new();
        loop {
            let after = read.last().map_or(0, |(number, _)| *number);
            let page = reader.history(&id("s"), after, size).unwrap();
            assert!(page.len() <= size);
            if page.is_empty() {
                break;
            }
            read.extend(page);
        }
        assert_eq!(read, whole, "in pages of {size}");
    }
    assert_eq!(reader.history(&id("s"), 10, 5).unwrap(), []);
    assert_eq!(reader.history(&id("s"), u64::MAX, 5).unwrap(), []);
    assert_eq!(reader.history(&id("s"), 0, 0).unwrap(), []);
    assert_eq!(reader.history(&id("nobody"), 0, 5).unwrap(), []);
}

/// A history is whole however long it is and wherever one starts: a store may find old events in another way than the
/// latest, and the way must not show. Another writer takes over in between, and a stream of the middle is forgotten.
pub fn long_histories_are_whole(place: StoreOpener<'_>) {
    const APPENDS: u64 = 300;
    let (mut writer, mut reader) = owner(place);
    let mut versions = [0_u64; 3];
    for at in 0..APPENDS {
        let which = (at % 3) as usize;
        let append = several(&format!("s{which}"), versions[which], at % 4 + 1);
        versions[which] = append.version();
        assert_eq!(writer.append(&[append]).unwrap(), [Ok(versions[which])]);
        if at % 41 == 0 {
            drop(writer);
            (writer, reader) = owner(place);
        }
        if at == 100 {
            assert_eq!(writer.append(&[last("gone", 0)]).unwrap(), [Ok(1)]);
            assert_eq!(writer.forget(&[id("gone")]).unwrap(), 1);
        }
        let (after, until) = (versions[which].saturating_sub(at % 7), versions[which]);
        let latest: Vec<(u64, Event)> = (after + 1..=until).map(|number| (number, told(number))).collect();
        assert_eq!(reader.history(&id(&format!("s{which}")), after, 100).unwrap(), latest, "after {at} appends");
    }
    for (which, version) in versions.into_iter().enumerate() {
        for after in (0..version).step_by(17) {
            let whole: Vec<(u64, Event)> = (after + 1..=version).map(|number| (number, told(number))).collect();
            assert_eq!(reader.history(&id(&format!("s{which}")), after, 10_000).unwrap(), whole, "after {after}");
        }
    }
    assert_eq!(reader.history(&id("gone"), 0, 9).unwrap(), []);
}

/// The order of the log is that of the batches and of the appends in them.
pub fn the_log_comes_in_pages_and_in_order(place: StoreOpener<'_>) {
    let (mut writer, mut reader) = owner(place);
    writer.append(&[several("b", 0, 2), several("a", 0, 1)]).unwrap();
    writer.append(&[several("a", 1, 3), several("a", 0, 9), several("b", 2, 1)]).unwrap();
    let expected = [("b", 1), ("b", 2), ("a", 1), ("a", 2), ("a", 3), ("a", 4), ("b", 3)];
    for size in 1..=8 {
        let mut read: Vec<LoggedEvent> = Vec::new();
        loop {
            let page = reader.log(read.last().map_or(Cursor(0), |it| it.cursor), size).unwrap();
            assert!(page.len() <= size);
            if page.is_empty() {
                break;
            }
            read.extend(page);
        }
        let found: Vec<_> = read.iter().map(|it| (it.stream.as_str(), it.number)).collect();
        assert_eq!(found, expected, "in pages of {size}");
        assert!(read.iter().all(|it| it.event == told(it.number)));
        assert!(read.is_sorted_by(|a, b| a.cursor < b.cursor));
    }
    assert_eq!(reader.log(Cursor(u64::MAX), 5).unwrap(), []);
    assert_eq!(Some(reader.end().unwrap()), reader.log(Cursor(0), 9).unwrap().last().map(|it| it.cursor));
}

/// A page ends early where its events are large, and never before it has one.
pub fn a_page_of_the_log_is_bounded_in_bytes(place: StoreOpener<'_>) {
    let (mut writer, mut reader) = owner(place);
    let large = |stream: &str| {
        let mut append = last(stream, 0);
        append.events[0].data = vec![7; LARGEST_PAGE + 1];
        append
    };
    writer.append(&[large("a"), last("gone", 0), large("b"), one("c", 0), large("d")]).unwrap();
    // Where something was forgotten a page begins with a row that was read before.
    writer.forget(&[id("gone")]).unwrap();
    let mut read: Vec<LoggedEvent> = Vec::new();
    loop {
        let page = reader.log(read.last().map_or(Cursor(0), |it| it.cursor), 9).unwrap();
        if page.is_empty() {
            break;
        }
        assert!(page.iter().filter(|it| it.event.data.len() >= LARGEST_PAGE).count() <= 2, "{}", page.len());
        read.extend(page);
    }
    let streams: Vec<_> = read.iter().map(|it| it.stream.as_str()).collect();
    assert_eq!(streams, ["a", "b", "c", "d"]);
}

/// Readers that follow the log while it grows see every event once and in order.
pub fn the_log_has_no_gaps_while_it_grows(place: StoreOpener<'_>) {
    const BATCHES: u64 = 60;
    let (mut writer, _) = owner(place);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let followers: Vec<_> = (1..=2_usize)
            .map(|follower| {
                let (done, mut reader) = (&done, place().reader().unwrap());
                scope.spawn(move || {
                    let mut read: Vec<LoggedEvent> = Vec::new();
                    loop {
                        let finished = done.load(Ordering::SeqCst);
                        let page = reader.log(read.last().map_or(Cursor(0), |it| it.cursor), 7 * follower).unwrap();
                        if page.is_empty() && finished {
                            return read;
                        }
                        read.extend(page);
                    }
                })
            })
            .collect();
        let mut stored = Vec::new();
        for batch in 0..BATCHES {
            let appends: Vec<Append> = (0..5).map(|stream| several(&format!("s{stream}"), batch * 2, 2)).collect();
            stored.extend(
                appends.iter().flat_map(|it| [(it.stream.clone(), batch * 2 + 1), (it.stream.clone(), batch * 2 + 2)]),
            );
            assert!(writer.append(&appends).unwrap().iter().all(Result::is_ok));
        }
        done.store(true, Ordering::SeqCst);
        for follower in followers {
            let read = follower.join().unwrap();
            let found: Vec<_> = read.into_iter().map(|it| (it.stream, it.number)).collect();
            assert!(found == stored, "{} events read of {}", found.len(), stored.len());
        }
    });
}

/// A cursor stays good when the end of the log is forgotten: what comes next comes after it.
pub fn places_in_the_log_are_never_given_twice(place: StoreOpener<'_>) {
    let (mut writer, mut reader) = owner(place);
    writer.append(&[one("a", 0), last("b", 0)]).unwrap();
    let end = reader.log(Cursor(0), 9).unwrap().last().unwrap().cursor;
    assert_eq!(writer.forget(&[id("b")]).unwrap(), 1);
    drop((writer, reader));
    let (mut writer, mut reader) = owner(place);
    writer.append(&[one("c", 0)]).unwrap();
    let after = reader.log(end, 9).unwrap();
    assert_eq!(after.iter().map(|it| it.stream.as_str()).collect::<Vec<_>>(), ["c"]);
}

/// A store with nothing in it.
pub fn empty_stores_answer(place: StoreOpener<'_>) {
    let mut reader = place().reader().unwrap();
    assert_eq!(reader.load(&id("s")).unwrap(), None);
    assert_eq!(reader.summary(&id("s")).unwrap(), None);
    assert_eq!(reader.history(&id("s"), 0, 9).unwrap(), []);
    assert_eq!(reader.log(Cursor::default(), 9).unwrap(), []);
    assert_eq!(reader.end().unwrap(), Cursor::default());
    assert_eq!(reader.open_streams(None, 9).unwrap(), []);
    let page = reader.list(&Query::default()).unwrap();
    assert_eq!((page.items, page.next), (Vec::new(), None));
}
