//! What every store must do, as one suite that all of them pass.
//!
//! Each check is a function over a [`StoreOpener`]: somewhere a store stands that was empty at the beginning. The macro
//! [`conformance!`](crate::conformance!) makes a test of every check. Nothing here knows which store it looks at.

#![expect(clippy::unwrap_used, reason = "a check that cannot go on should say where")]

mod appending;
mod listing;
mod model;
mod owning;
mod reading;

pub use appending::*;
pub use listing::*;
pub use model::*;
pub use owning::*;
pub use reading::*;

use std::time::Duration;

use crate::{Append, Card, Digest, Effect, Event, Header, Reader, Store, StreamId, Writer};

/// Where a store stands; opening it twice gives the same store.
pub type StoreOpener<'a> = &'a dyn Fn() -> Store;

/// Makes a test of every check: `conformance!(place)`, where `place()` gives a guard and a function to open its store.
#[macro_export]
macro_rules! conformance {
    ($place:path) => {
        $crate::conformance!(@ $place:
            a_stream_is_created_and_appended_to, a_conflict_says_what_was_found, a_conflict_spoils_no_other,
            appends_of_a_batch_build_on_each_other, rows_are_written_and_removed, effects_are_settled_and_held,
            timers_are_set_and_cleared, blobs_are_kept_once, everything_survives_reopening, large_payloads_survive,
            any_text_survives, an_empty_batch_is_nothing, a_wrong_batch_is_refused_whole,
            history_comes_in_pages, long_histories_are_whole, the_log_comes_in_pages_and_in_order,
            a_page_of_the_log_is_bounded_in_bytes, the_log_has_no_gaps_while_it_grows,
            places_in_the_log_are_never_given_twice, empty_stores_answer,
            open_streams_come_in_pages, streams_are_found_by_how_they_begin, ended_streams_stay_open_until_nothing_is_left, lists_are_filtered,
            lists_come_in_pages, forgetting_takes_everything, what_is_open_is_not_forgotten,
            blobs_go_with_their_last_stream, ten_thousand_streams,
            a_writer_must_own, owners_change_and_the_old_one_is_refused, an_owner_keeps_its_epoch,
            the_same_name_takes_over_at_once, a_store_is_not_taken_from_its_owner, a_released_store_is_free,
            random_batches_agree_with_the_model);
    };
    (@ $place:path: $($check:ident),* $(,)?) => {
        $(
            #[test]
            fn $check() {
                let (_guard, open) = $place();
                $crate::conformance::$check(&open);
            }
        )*
    };
}

/// A time to own a store for that no test outlives.
const LONG: Duration = Duration::from_secs(3600);

fn owner(place: StoreOpener<'_>) -> (Box<dyn Writer>, Box<dyn Reader>) {
    let store = place();
    let mut writer = store.writer().unwrap();
    writer.own("owner", LONG).unwrap();
    (writer, store.reader().unwrap())
}

fn id(name: &str) -> StreamId {
    StreamId::new(name)
}

fn event(kind: &str) -> Event {
    Event {
        kind: kind.to_owned(),
        version: 1,
        time: 1_700_000_000_000,
        actor: "tester".to_owned(),
        correlation: "c-1".to_owned(),
        caused_by: None,
        data: kind.as_bytes().to_vec(),
    }
}

fn card(created: i64) -> Card {
    Card {
        kind: "run".to_owned(),
        status: "running".to_owned(),
        group: "home".to_owned(),
        title: "a title".to_owned(),
        open: true,
        created,
        updated: created,
    }
}

fn one(stream: &str, expected: u64) -> Append {
    let header = Header { card: card(expected as i64), data: format!("{stream} {expected}").into_bytes() };
    Append::new(id(stream), expected, vec![event("happened")], header)
}

fn last(stream: &str, expected: u64) -> Append {
    let mut append = one(stream, expected);
    append.header.card.open = false;
    append.header.card.status = "ended".to_owned();
    append
}

fn effect(id: &str) -> Effect {
    Effect { id: id.to_owned(), kind: "start".to_owned(), data: format!("do {id}").into_bytes() }
}

fn digest(byte: u8) -> Digest {
    Digest([byte; 32])
}

/// A generator of numbers that gives the same ones for the same seed on every machine (SplitMix64).
struct SeededNumbers(u64);

impl SeededNumbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }
}
