//! Checks of who may write. No clock is needed: an owner's time may be nothing, or more than a test has.

use std::time::Duration;

use super::{LONG, StoreOpener, id, one};
use crate::StoreError;

/// Nobody writes without owning.
pub fn a_writer_must_own(place: StoreOpener<'_>) {
    let mut writer = place().writer().unwrap();
    assert!(matches!(writer.append(&[one("s", 0)]), Err(StoreError::LostOwnership)));
    assert!(matches!(writer.forget(&[id("s")]), Err(StoreError::LostOwnership)));
    writer.release().unwrap();
    assert_eq!(place().reader().unwrap().load(&id("s")).unwrap(), None);
}

/// The epoch grows, the old owner is refused, and what the new one wrote stays.
pub fn owners_change_and_the_old_one_is_refused(place: StoreOpener<'_>) {
    let store = place();
    let (mut first, mut second) = (store.writer().unwrap(), store.writer().unwrap());
    let before = first.own("first", Duration::ZERO).unwrap();
    assert_eq!(first.append(&[one("s", 0)]).unwrap(), [Ok(1)]);
    let after = second.own("second", LONG).unwrap();
    assert!(after.epoch > before.epoch, "{before:?} {after:?}");
    assert!(matches!(first.append(&[one("s", 1)]), Err(StoreError::LostOwnership)));
    assert!(matches!(first.forget(&[id("s")]), Err(StoreError::LostOwnership)));
    assert_eq!(second.append(&[one("s", 1), one("t", 0)]).unwrap(), [Ok(2), Ok(1)]);
    second.own("second", Duration::ZERO).unwrap();
    // Nobody would stand in its way, but for what it remembers.
    assert!(matches!(first.own("first", LONG), Err(StoreError::LostOwnership)));
    assert!(matches!(first.append(&[one("s", 2)]), Err(StoreError::LostOwnership)));
    first.release().unwrap();
    let third = first.own("first", LONG).unwrap();
    assert!(third.epoch > after.epoch, "{after:?} {third:?}");
    assert_eq!([after.before.as_deref(), third.before.as_deref()], [Some("first"), Some("second")]);
    assert_eq!(first.append(&[one("s", 1), one("s", 2)]).unwrap()[1], Ok(3));
    assert_eq!(store.reader().unwrap().load(&id("s")).unwrap().unwrap().version, 3);
}

/// Owning again is keeping, even after the time was up, as long as nobody else took it.
pub fn an_owner_keeps_its_epoch(place: StoreOpener<'_>) {
    let mut writer = place().writer().unwrap();
    let first = writer.own("a", Duration::ZERO).unwrap();
    assert_eq!(writer.append(&[one("s", 0)]).unwrap(), [Ok(1)]);
    assert_eq!(writer.own("a", LONG).unwrap().epoch, first.epoch);
    assert_eq!(writer.own("a", LONG).unwrap().epoch, first.epoch);
    assert_eq!(writer.append(&[one("s", 1)]).unwrap(), [Ok(2)]);
}

/// A program that was started again does not wait for itself, and shuts its former self out.
pub fn the_same_name_takes_over_at_once(place: StoreOpener<'_>) {
    let store = place();
    let (mut first, mut second) = (store.writer().unwrap(), store.writer().unwrap());
    let before = first.own("a", LONG).unwrap();
    assert!(second.own("a", LONG).unwrap().epoch > before.epoch);
    assert!(matches!(first.append(&[one("s", 0)]), Err(StoreError::LostOwnership)));
    assert_eq!(second.append(&[one("s", 0)]).unwrap(), [Ok(1)]);
}

/// Whoever asks while another owns it is told whom to ask, and changes nothing.
pub fn a_store_is_not_taken_from_its_owner(place: StoreOpener<'_>) {
    let store = place();
    let (mut first, mut second) = (store.writer().unwrap(), store.writer().unwrap());
    first.own("first", LONG).unwrap();
    match second.own("second", LONG) {
        Err(StoreError::Owned { by, remaining }) => {
            assert_eq!(by, "first");
            assert!(remaining > LONG / 2 && remaining <= LONG, "{remaining:?}");
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(second.append(&[one("s", 0)]), Err(StoreError::LostOwnership)));
    assert_eq!(first.append(&[one("s", 0)]).unwrap(), [Ok(1)]);
}

/// A released store is free for anyone, at once.
pub fn a_released_store_is_free(place: StoreOpener<'_>) {
    let store = place();
    let (mut first, mut second) = (store.writer().unwrap(), store.writer().unwrap());
    let before = first.own("first", LONG).unwrap();
    first.release().unwrap();
    assert!(matches!(first.append(&[one("s", 0)]), Err(StoreError::LostOwnership)));
    let after = second.own("second", LONG).unwrap();
    assert!(after.epoch > before.epoch);
    assert_eq!((before.before, after.before.as_deref()), (None, Some("first")));
    first.release().unwrap();
    assert_eq!(second.append(&[one("s", 0)]).unwrap(), [Ok(1)]);
}
