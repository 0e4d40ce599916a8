//! The newest events, made ready once for all who follow: the end of the log, in memory.
//!
//! Whoever keeps up takes them from here; whoever has fallen further behind, or comes from far back, reads the stored log
//! until they have caught up. So nobody misses anything, and five hundred who follow cost little more than one.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, RwLock};

use axum::body::Bytes;
use serde_json::Value;
use sluice_store::Cursor;

use crate::run::App;

/// Events that are kept ready.
const MOST_READY: usize = 10_000;
/// Events that are read at once.
pub(crate) const PAGE: usize = 500;

/// An event, in every form that it is told in.
pub(crate) struct Told {
    pub(crate) cursor: Cursor,
    pub(crate) event: Value,
    /// As a line of JSON, without its end.
    pub(crate) line: Bytes,
    /// As a server-sent event.
    pub(crate) sent: Bytes,
}

impl Told {
    pub(crate) fn new(cursor: Cursor, event: Value) -> Arc<Told> {
        let line = event.to_string();
        let sent = Bytes::from(sent(Some(cursor), &event, &line));
        Arc::new(Told { cursor, event, line: line.into(), sent })
    }
}

/// An event as it is sent, under its number.
pub(crate) fn sent(cursor: Option<Cursor>, event: &Value, line: &str) -> String {
    let id = cursor.map(|cursor| format!("id: {}\n", cursor.0)).unwrap_or_default();
    let kind: String = event["type"].as_str().unwrap_or("message").chars().filter(|it| !it.is_control()).collect();
    format!("{id}event: {kind}\ndata: {line}\n\n")
}

/// The end of the log.
#[derive(Default)]
pub(crate) struct Feed(RwLock<Ready>);

#[derive(Default)]
struct Ready {
    /// Everything after this is here; nothing is, while nobody follows.
    from: Option<Cursor>,
    events: VecDeque<Arc<Told>>,
}

impl Feed {
    /// What comes after a place, at most a page; `None` if that is further back than this goes.
    pub(crate) fn after(&self, place: Cursor) -> Option<Vec<Arc<Told>>> {
        let ready = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if ready.from.is_none_or(|from| place < from) {
            return None;
        }
        let start = ready.events.partition_point(|told| told.cursor <= place);
        Some(ready.events.iter().skip(start).take(PAGE).cloned().collect())
    }

    /// Takes up what is new, while somebody follows.
    pub(crate) fn refresh(&self, app: &App) {
        if !app.has_followers() {
            *self.0.write().unwrap_or_else(PoisonError::into_inner) = Ready::default();
            return;
        }
        loop {
            let last = {
                let ready = self.0.read().unwrap_or_else(PoisonError::into_inner);
                ready.events.back().map(|told| told.cursor).or(ready.from)
            };
            let Some(last) = last else {
                let Ok(end) = app.service.ground().tasks.end_of_log() else { return };
                self.0.write().unwrap_or_else(PoisonError::into_inner).from = Some(end);
                return;
            };
            let Ok(page) = app.service.events(last, PAGE) else { return };
            let is_all = page.len() < PAGE;
            self.add(page.into_iter().map(|(cursor, event)| Told::new(cursor, event)).collect());
            if is_all {
                return;
            }
        }
    }

    fn add(&self, events: Vec<Arc<Told>>) {
        let mut ready = self.0.write().unwrap_or_else(PoisonError::into_inner);
        ready.events.extend(events);
        let excess = ready.events.len().saturating_sub(MOST_READY);
        let last = ready.events.drain(..excess).next_back().map(|told| told.cursor);
        ready.from = last.or(ready.from);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn numbers(feed: &Feed, place: u64) -> Option<Vec<u64>> {
        feed.after(Cursor(place)).map(|all| all.iter().map(|told| told.cursor.0).collect())
    }

    #[test]
    fn an_event_is_told_in_its_own_name_and_place() {
        let told = Told::new(Cursor(7), json!({ "type": "workflow.step.started", "seq": 7 }));
        let line = r#"{"type":"workflow.step.started","seq":7}"#;
        assert_eq!(told.sent, format!("id: 7\nevent: workflow.step.started\ndata: {line}\n\n"));
        assert_eq!(told.line, line);
    }

    #[test]
    fn whoever_comes_from_further_back_than_is_ready_is_sent_to_the_log() {
        let feed = Feed::default();
        assert_eq!(numbers(&feed, 0), None);
        feed.0.write().unwrap().from = Some(Cursor(4));
        assert_eq!(numbers(&feed, 3), None);
        assert_eq!(numbers(&feed, 4), Some(vec![]));
        feed.add((5..8).map(|number| Told::new(Cursor(number), json!({}))).collect());
        assert_eq!(numbers(&feed, 4), Some(vec![5, 6, 7]));
        assert_eq!(numbers(&feed, 6), Some(vec![7]));
        let many = u64::try_from(MOST_READY).unwrap();
        feed.add((8..8 + many).map(|number| Told::new(Cursor(number), json!({}))).collect());
        assert_eq!(numbers(&feed, 6), None);
        assert_eq!(numbers(&feed, 7).unwrap().len(), PAGE);
    }
}
