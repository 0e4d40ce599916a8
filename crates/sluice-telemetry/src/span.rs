//! A span: something that took its time. It never holds what was said, only what was asked for and how it went.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use crate::queue::SpanQueue;

/// The most letters of a value that are told.
const LONGEST_VALUE: usize = 256;

/// What is said about a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpanValue {
    /// A text. Of a long one only its beginning is told.
    Text(String),
    /// A number.
    Number(i64),
}

impl From<&str> for SpanValue {
    fn from(text: &str) -> Self {
        SpanValue::Text(text.chars().take(LONGEST_VALUE).collect())
    }
}

impl From<u32> for SpanValue {
    fn from(number: u32) -> Self {
        SpanValue::Number(number.into())
    }
}

impl From<usize> for SpanValue {
    fn from(number: usize) -> Self {
        SpanValue::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

/// Whose work a span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpanKind {
    /// Sluice's own.
    Internal,
    /// Somebody asked for it over HTTP.
    Server,
}

/// What is told of a span when it has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SpanRecord {
    pub(crate) trace: [u8; 16],
    pub(crate) id: [u8; 8],
    pub(crate) parent: Option<[u8; 8]>,
    pub(crate) name: Cow<'static, str>,
    pub(crate) kind: SpanKind,
    pub(crate) values: Vec<(&'static str, SpanValue)>,
    pub(crate) failed: bool,
    /// Nanoseconds since 1970.
    pub(crate) began: u64,
    pub(crate) ended: u64,
}

struct OpenSpan {
    queue: Arc<SpanQueue>,
    since: Instant,
    record: SpanRecord,
}

/// Something that goes on. It ends when it is dropped.
#[must_use = "a span ends when it is dropped"]
pub struct TraceSpan(Option<Box<OpenSpan>>);

impl TraceSpan {
    pub(crate) fn new(queue: Option<&Arc<SpanQueue>>, name: &'static str) -> TraceSpan {
        let open = queue.and_then(|queue| {
            let mut random = [0; 24];
            // Without an id it cannot be told from others.
            getrandom::fill(&mut random).ok()?;
            let (id, trace) = random.split_first_chunk::<8>()?;
            let record = SpanRecord {
                trace: trace.try_into().ok()?,
                id: *id,
                parent: None,
                name: name.into(),
                kind: SpanKind::Internal,
                values: Vec::new(),
                failed: false,
                began: now(),
                ended: 0,
            };
            Some(Box::new(OpenSpan { queue: queue.clone(), since: Instant::now(), record }))
        });
        TraceSpan(open)
    }

    /// Somebody asked for it over HTTP, in this way and under this route; `traceparent` is what they sent as that header.
    /// Whoever says there that their own trace is not recorded gets none here either.
    pub fn request(mut self, method: &str, route: &str, traceparent: Option<&str>) -> TraceSpan {
        let Some(open) = &mut self.0 else { return self };
        open.record.name = format!("{method} {route}").into();
        open.record.kind = SpanKind::Server;
        if let Some(parent) = traceparent.and_then(TraceParent::read) {
            (open.record.trace, open.record.parent) = (parent.trace, Some(parent.id));
            if !parent.is_recorded {
                self.0 = None;
            }
        }
        self.with("http.request.method", method).with("http.route", route)
    }

    /// Says something about it: an id, a word, a count. Never a secret, and never what somebody said.
    pub fn with(mut self, key: &'static str, value: impl Into<SpanValue>) -> TraceSpan {
        self.set(key, value);
        self
    }

    /// Says something about it that was not known when it began.
    pub fn set(&mut self, key: &'static str, value: impl Into<SpanValue>) {
        if let Some(open) = &mut self.0 {
            open.record.values.push((key, value.into()));
        }
    }

    /// How it went, in one word.
    pub fn outcome(&mut self, word: &'static str, failed: bool) {
        self.set("sluice.outcome", word);
        if failed {
            self.fail();
        }
    }

    /// It did not go well.
    pub fn fail(&mut self) {
        if let Some(open) = &mut self.0 {
            open.record.failed = true;
        }
    }
}

impl Drop for TraceSpan {
    fn drop(&mut self) {
        if let Some(open) = self.0.take() {
            let OpenSpan { queue, since, mut record } = *open;
            // The clock of the system may be set meanwhile; this one may not.
            let took = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
            record.ended = record.began.saturating_add(took);
            queue.push(record);
        }
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Whose part a request is, by the header `traceparent` of the W3C.
#[derive(Debug, PartialEq, Eq)]
struct TraceParent {
    trace: [u8; 16],
    id: [u8; 8],
    is_recorded: bool,
}

impl TraceParent {
    /// What the header says; `None` when it makes no sense, and then it is as if it was not there.
    fn read(text: &str) -> Option<TraceParent> {
        let mut parts = text.split('-');
        let (version, trace, id, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let [version] = hex(version)?;
        // A later version may say more at the end.
        if version == 0xff || (version == 0 && parts.next().is_some()) {
            return None;
        }
        let (trace, id, [flags]) = (hex(trace)?, hex(id)?, hex(flags)?);
        let is_nobody = trace == [0; 16] || id == [0; 8];
        (!is_nobody).then_some(TraceParent { trace, id, is_recorded: flags & 1 == 1 })
    }
}

fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let is_hex = text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    if text.len() != 2 * N || !is_hex {
        return None;
    }
    let mut bytes = [0; N];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_is_taken_or_is_as_if_it_was_not_there() {
        let (trace, id) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
        let read = |text: &str| TraceParent::read(text).map(|it| (it.trace[0], it.id[0], it.is_recorded));
        assert_eq!(read(&format!("00-{trace}-{id}-01")), Some((0x0a, 0xb7, true)));
        assert_eq!(read(&format!("00-{trace}-{id}-00")), Some((0x0a, 0xb7, false)));
        assert_eq!(read(&format!("cc-{trace}-{id}-01-and-more")), Some((0x0a, 0xb7, true)));
        let nobody = "0".repeat(32);
        for wrong in [
            String::new(),
            "00".into(),
            format!("00-{trace}-{id}"),
            format!("00-{trace}-{id}-01-more"),
            format!("ff-{trace}-{id}-01"),
            format!("00-{nobody}-{id}-01"),
            format!("00-{}-{id}-01", trace.to_uppercase()),
            format!("00-{}-{id}-01", "é".repeat(16)),
        ] {
            assert_eq!(read(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn without_a_collector_a_span_is_nothing() {
        let mut span = TraceSpan::new(None, "step").request("GET", "/", Some("nonsense")).with("key", "value");
        span.outcome("failed", true);
        assert!(span.0.is_none());
    }
}
