//! Checks of what an append does. Never of what a list or the log makes of it.

use super::{StoreOpener, digest, effect, event, id, last, one, owner};
use crate::{Conflict, Cursor, Lease, RowKey, StoreError};

/// A stream comes to be with its first append, and grows.
pub fn a_stream_is_created_and_appended_to(place: StoreOpener<'_>) {
    let (mut writer, mut reader) = owner(place);
    assert_eq!(reader.load(&id("s")).unwrap(), None);
    let mut first = one("s", 0);
    first.events.push(event("second"));
    assert_eq!(writer.append(&[first.clone()]).unwrap(), [Ok(2)]);
    let stored = reader.load(&id("s")).unwrap().unwrap();
    assert_eq!((stored.version, stored.header), (2, first.header));
    let mut next = one("s", 2);
    next.header.card.title = "another".to_owned();
    assert_eq!(writer.append(&[next.clone()]).unwrap(), [Ok(3)]);
    let stored = reader.load(&id("s")).unwrap().unwrap();
    assert_eq!((stored.version, stored.header), (3, next.header));
    assert!(stored.rows.is_empty() && stored.effects.is_empty() && stored.timers.is_empty());
}

/// Too many, too few, not there, there already.
pub fn a_conflict_says_what_was_found(place: StoreOpener<'_>) {
    let (mut writer, _) = owner(place);
    let conflict = |stream: &str, expected, found| Err(Conflict { stream: id(stream), expected, found });
    assert_eq!(writer.append(&[one("s", 0)]).unwrap(), [Ok(1)]);
    assert_eq!(writer.append(&[one("s", 0)]).unwrap(), [conflict("s", 0, 1)]);
    assert_eq!(writer.append(&[one("s", 5)]).unwrap(), [conflict("s", 5, 1)]);
    assert_eq!(writer.append(&[one("t", 1)]).unwrap(), [conflict("t", 1, 0)]);
}

/// What conflicts leaves no trace, and its neighbours are stored.
pub fn a_conflict_spoils_no_other(place: StoreOpener<'_>) {
    let (mut writer, mut reader) = owner(place);
    writer.append(&[one("s", 0)]).unwrap();
    let mut bad = last("s", 7);
    bad.rows.push((RowKey(1, 1), Some(b"row".to_vec())));
    bad.effects.push(effect("e"));
    bad.timers.push(("t".to_owned(), Some(5)));
    bad.blobs.push((digest(1), b"body".to_vec()));
    let before = reader.load(&id("s")).unwrap();
    let answers = writer.append(&[one("a", 0), bad, one("b", 0)]).unwrap();
    assert_eq!(answers.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
    assert_eq!(reader.load(&id("s")).unwrap(), before);
    assert_eq!(reader.blob(&digest(1)).unwrap(), None);
    assert_eq!(reader.load(&id("b")).unwrap().unwrap().version, 1);
    let log: Vec<_> = reader.log(Cursor(0), 10).unwrap().into_iter().map(|it| it.stream.0).collect();
    assert_eq!(log, ["s", "a", "b"]);
}

/// Later appends of a batch see the earlier ones of the same stream, also after a conflict.
pub fn appends_of_a_batch_build_on_each_other(place: StoreOpener<'_>) {
    let (mut writer, mut reader) = owner(place);
    let mut batch = vec![one("s", 0), one("s", 1), one("s", 1), one("s", 2), one("t", 1), one("t", 0)];
    batch[0].rows = vec![(RowKey(1, 0), Some(vec![1])), (RowKey(2, 0), Some(vec![2]))];
    batch[0].effects = vec![effect("a"), effect("b")];
    batch[0].timers = vec![("t".to_owned(), Some(1))];
    batch[1].rows = vec![(RowKey(1, 0), None), (RowKey(2, 0), Some(vec![3]))];
    batch[1].settled = vec!["a".to_owned()];
    batch[1].leases = vec![("b".to_owned(), Some(Lease { holder: "w".to_owned(), until: 9 }))];
    batch[3].effects = vec![effect("a")];
    batch[3].timers = vec![("t".to_owned(), None), ("u".to_owned(), Some(2))];
    let answers = writer.append(&batch).unwrap();
    let found: Vec<_> = answers.into_iter().map(|it| it.map_err(|conflict| conflict.found)).collect();
    assert_eq!(found, [Ok(1), Ok(2), Err(2), Ok(3), Err(0), Ok(1)]);
    let stored = reader.load(&id("s")).unwrap().unwrap();
    assert_eq!(stored.rows, [(RowKey(2, 0), vec![3])]);
    let effects: Vec<_> = stored.effects.iter().map(|it| (it.effect.id.as_str(), it.lease.is_some())).collect();
    assert_eq!(effects, [("a", false), ("b", true)]);
    assert_eq!(stored.timers, [("u".to_owned(), 2)]);
    assert_eq!(stored.header, one("s", 2).header);
}

/// Rows come back by key; removing what is not there does nothing.
pub fn rows_are_written_and_removed(place: StoreOpener<'_>) {
    let (mut writer, mut reader) = owner(place);
    let mut first = one("s", 0);
    first.rows = [(2, 0), (1, u32::MAX), (1, 3), (u32::MAX, 0)]
        .map(|(major, minor)| (RowKey(major, minor), Some(vec![major as u8, minor as u8])))
        .to_vec();
    let mut second = one("s", 1);
    second.rows = vec![(RowKey(2, 0), Some(Vec::new())), (RowKey(1, 3), None), (RowKey(9, 9), None)];
    assert_eq!(writer.append(&[first, one("t", 0)]).unwrap(), [Ok(1), Ok(1)]);
    assert_eq!(writer.append(&[second]).unwrap(), [Ok(2)]);
    let rows = reader.load(&id("s")).unwrap().unwrap().rows;
    let expected = [(RowKey(1, u32::MAX), vec![1, 255]), (RowKey(2, 0), vec![]), (RowKey(u32::MAX, 0), vec![255, 0])];
    assert_eq!(rows, expected);
    assert!(reader.load(&id("t")).unwrap().unwrap().rows.is_empty());
}

/// The outbox: in, held, freed, replaced, out. Each stream has its own.
pub fn effects_are_settled_and_held(place: StoreOpener<'_>) {
    let (mut writer, mut reader) = owner(place);
    let (mut first, mut other) = (one("s", 0), one("t", 0));
    first.effects = vec![effect("b"), effect("a"), effect("c")];
    other.effects = vec![effect("a")];
    writer.append(&[first, other]).unwrap();
    let lease = |holder: &str| Some(Lease { holder: holder.to_owned(), until: 77 });
    let mut hold = one("s", 1);
    hold.leases = vec![("a".to_owned(), lease("w1")), ("b".to_owned(), lease("w2")), ("zz".to_owned(), lease("w3"))];
    writer.append(&[hold]).unwrap();
    let stored = reader.load(&id("s")).unwrap().unwrap();
    assert_eq!(stored.effects.iter().map(|it| it.effect.id.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!(stored.effects[0].effect, effect("a"));
    assert_eq!(stored.effects.into_iter().map(|it| it.lease).collect::<Vec<_>>(), [lease("w1"), lease("w2"), None]);
    let mut settle = one("s", 2);
    settle.settled = vec!["a".to_owned(), "nothing".to_owned()];
    settle.leases = vec![("b".to_owned(), None)];
    settle.effects = vec![effect("d")];
    writer.append(&[settle]).unwrap();
    let stored = reader.load(&id("s")).unwrap().unwrap();
    assert_eq!(stored.effects.iter().map(|it| it.effect.id.as_str()).collect::<Vec<_>>(), ["b", "c", "d"]);
    assert!(stored.effects.iter().all(|it| it.lease.is_none()));
    let mut again = one("t", 1);
    again.settled = vec!["a".to_owned()];
    again.effects = vec![effect("a")];
    again.leases = vec![("a".to_owned(), lease("w"))];
    writer.append(&[again]).unwrap();
    let stored = reader.load(&id("t")).unwrap().unwrap();
    assert_eq!(stored.effects.into_iter().map(|it| it.lease).collect::<Vec<_>>(), [lease("w")]);
}

/// Timers are set, moved and cleared.
pub fn timers_are_set_and_cleared(place: StoreOpener<'_>) {
    let (mut writer, mut reader) = owner(place);
    let mut first = one("s", 0);
    first.timers = vec![("b".to_owned(), Some(i64::MAX)), ("a".to_owned(), Some(-1)), ("x".to_owned(), None)];
    writer.append(&[first]).unwrap();
    let timers = reader.load(&id("s")).unwrap().unwrap().timers;
    assert_eq!(timers, [("a".to_owned(), -1), ("b".to_owned(), i64::MAX)]);
    let mut second = one("s", 1);
    second.timers = vec![("b".to_owned(), None), ("a".to_owned(), Some(7))];
    writer.append(&[second]).unwrap();
    assert_eq!(reader.load(&id("s")).unwrap().unwrap().timers, [("a".to_owned(), 7)]);
}

/// A body that is there already is kept.
pub fn blobs_are_kept_once(place: StoreOpener<'_>) {
    let (mut writer, mut reader) = owner(place);
    let (mut first, mut second) = (one("s", 0), one("t", 0));
    first.blobs = vec![(digest(1), b"one".to_vec()), (digest(2), Vec::new())];
    second.blobs = vec![(digest(1), b"ignored".to_vec())];
    writer.append(&[first.clone(), second]).unwrap();
    first.expected = 1;
    assert_eq!(writer.append(&[first]).unwrap(), [Ok(2)]);
    assert_eq!(reader.blob(&digest(1)).unwrap().as_deref(), Some(&b"one"[..]));
    assert_eq!(reader.blob(&digest(2)).unwrap().as_deref(), Some(&b""[..]));
    assert_eq!(reader.blob(&digest(3)).unwrap(), None);
}

/// Another opening of the store finds everything, and goes on.
pub fn everything_survives_reopening(place: StoreOpener<'_>) {
    let (mut writer, mut reader) = owner(place);
    let mut first = one("s", 0);
    first.rows = vec![(RowKey(1, 2), Some(b"row".to_vec()))];
    first.effects = vec![effect("e")];
    first.leases = vec![("e".to_owned(), Some(Lease { holder: "w".to_owned(), until: 3 }))];
    first.timers = vec![("t".to_owned(), Some(4))];
    first.blobs = vec![(digest(9), b"blob".to_vec())];
    writer.append(&[first]).unwrap();
    let before = reader.load(&id("s")).unwrap();
    let log = reader.log(Cursor(0), 10).unwrap();
    drop((writer, reader));
    let (mut writer, mut reader) = owner(place);
    assert_eq!(reader.load(&id("s")).unwrap(), before);
    assert_eq!(reader.log(Cursor(0), 10).unwrap(), log);
    assert_eq!(reader.blob(&digest(9)).unwrap().as_deref(), Some(&b"blob"[..]));
    assert_eq!(writer.append(&[one("s", 0), one("s", 1)]).unwrap()[1], Ok(2));
}

/// Five megabytes, in every place that takes bytes.
pub fn large_payloads_survive(place: StoreOpener<'_>) {
    let (mut writer, mut reader) = owner(place);
    let large: Vec<u8> = (0..5 << 20).map(|at: u32| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let mut append = one("s", 0);
    append.events[0].data.clone_from(&large);
    append.header.data.clone_from(&large);
    append.rows = vec![(RowKey(1, 1), Some(large.clone()))];
    append.effects = vec![effect("e")];
    append.effects[0].data.clone_from(&large);
    append.blobs = vec![(digest(5), large.clone())];
    writer.append(&[append.clone()]).unwrap();
    let stored = reader.load(&id("s")).unwrap().unwrap();
    assert!(stored.header == append.header, "the header changed");
    assert!(stored.rows == [(RowKey(1, 1), large.clone())], "the row changed");
    assert!(stored.effects[0].effect == append.effects[0], "the effect changed");
    assert!(reader.blob(&digest(5)).unwrap() == Some(large), "the blob changed");
    assert!(reader.history(&id("s"), 0, 1).unwrap() == [(1, append.events.remove(0))], "the event changed");
}

/// Texts come back as they were: any script, quotes, line ends, the empty one.
pub fn any_text_survives(place: StoreOpener<'_>) {
    let (mut writer, mut reader) = owner(place);
    let texts = ["", "größe", "任务-🚰", "it's \"quoted\" \\ {a,b} %", "two\r\nlines\t", "\u{202e}rtl\u{feff}"];
    for (created, text) in (0..).zip(texts) {
        let name = format!("task-{text}");
        let mut append = one(&name, 0);
        append.header.card.created = created;
        for field in [
            &mut append.header.card.kind,
            &mut append.header.card.status,
            &mut append.header.card.group,
            &mut append.header.card.title,
        ] {
            text.clone_into(field);
        }
        append.events[0].caused_by = Some(text.to_owned());
        append.events[0].actor = text.to_owned();
        append.effects = vec![effect(text)];
        append.leases = vec![(text.to_owned(), Some(Lease { holder: text.to_owned(), until: 0 }))];
        append.timers = vec![(text.to_owned(), Some(0))];
        assert_eq!(writer.append(&[append.clone()]).unwrap(), [Ok(1)]);
        let stored = reader.load(&id(&name)).unwrap().unwrap();
        assert_eq!(stored.header, append.header);
        assert_eq!(stored.effects[0].effect, append.effects[0]);
        assert_eq!(stored.effects[0].lease, append.leases[0].1);
        assert_eq!(stored.timers, [(text.to_owned(), 0)]);
        assert_eq!(reader.history(&id(&name), 0, 9).unwrap(), [(1, append.events.remove(0))]);
    }
    assert_eq!(reader.open_streams(None, 100).unwrap().len(), texts.len());
}

/// Nothing to store is stored at once.
pub fn an_empty_batch_is_nothing(place: StoreOpener<'_>) {
    let (mut writer, mut reader) = owner(place);
    assert_eq!(writer.append(&[]).unwrap(), []);
    assert_eq!(writer.forget(&[]).unwrap(), 0);
    assert_eq!(reader.log(Cursor(0), 1).unwrap(), []);
}

/// A mistake of the program is refused before anything is written.
pub fn a_wrong_batch_is_refused_whole(place: StoreOpener<'_>) {
    let (mut writer, mut reader) = owner(place);
    let wrong: [fn(&mut crate::Append); 4] = [
        |it| it.events.clear(),
        |it| it.stream.0.clear(),
        |it| it.header.card.title.push('\0'),
        |it| it.header.data = vec![0; crate::MAX_APPEND_BYTES + 1],
    ];
    for change in wrong {
        let mut append = one("t", 0);
        change(&mut append);
        let answer = writer.append(&[one("s", 0), append]);
        assert!(matches!(answer, Err(StoreError::Misuse(_))), "{answer:?}");
    }
    assert_eq!(reader.load(&id("s")).unwrap(), None);
    assert_eq!(writer.append(&[one("s", 0)]).unwrap(), [Ok(1)]);
}
