//! By what spans are known to one another: whose trace a span is part of, and what led to it.

use std::cell::Cell;

use sha2::{Digest, Sha256};

/// A span as others name it: its trace, and itself in that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanContext {
    pub(crate) trace: [u8; 16],
    pub(crate) id: [u8; 8],
}

impl SpanContext {
    /// The root of all that is done for a stream, which is a task or a run. It is made of the stream's name, so that every
    /// engine and every worker finds the same one and nothing of it is stored.
    pub fn root_of(stream: &str) -> SpanContext {
        let sum: [u8; 32] = Sha256::digest(stream.as_bytes()).into();
        let mut context = SpanContext { trace: [0; 16], id: [0; 8] };
        context.trace.copy_from_slice(&sum[..16]);
        context.id.copy_from_slice(&sum[16..24]);
        context
    }
}

thread_local! {
    /// What leads to what is begun on this thread.
    static CAUSE: Cell<Option<SpanContext>> = const { Cell::new(None) };
}

/// Does something, and what it starts on this thread says that `cause` led to it.
pub fn caused_by<T>(cause: Option<SpanContext>, act: impl FnOnce() -> T) -> T {
    /// Puts the cause from before back, also after a panic: threads are used again.
    struct ContextRestore(Option<SpanContext>);
    impl Drop for ContextRestore {
        fn drop(&mut self) {
            CAUSE.set(self.0);
        }
    }
    let _restore = ContextRestore(CAUSE.replace(cause));
    act()
}

/// What leads to what is begun on this thread, if that is known.
pub(crate) fn cause() -> Option<SpanContext> {
    CAUSE.get()
}

/// Whose part a request is, by the header `traceparent` of the W3C.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TraceParent {
    pub(crate) context: SpanContext,
    pub(crate) is_recorded: bool,
}

impl TraceParent {
    /// What the header says; `None` when it makes no sense, and then it is as if it was not there.
    pub(crate) fn read(text: &str) -> Option<TraceParent> {
        let mut parts = text.split('-');
        let (version, trace, id, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let [version] = hex(version)?;
        // A later version may say more at the end.
        if version == 0xff || (version == 0 && parts.next().is_some()) {
            return None;
        }
        let (trace, id, [flags]) = (hex(trace)?, hex(id)?, hex(flags)?);
        let is_nobody = trace == [0; 16] || id == [0; 8];
        (!is_nobody).then_some(TraceParent { context: SpanContext { trace, id }, is_recorded: flags & 1 == 1 })
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
        let read =
            |text: &str| TraceParent::read(text).map(|it| (it.context.trace[0], it.context.id[0], it.is_recorded));
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
    fn a_stream_has_one_root_for_good() {
        let root = SpanContext::root_of("run/k3f9abcdef");
        assert_eq!(root, SpanContext::root_of("run/k3f9abcdef"));
        assert_ne!(root.trace, SpanContext::root_of("task/k3f9abcdef").trace);
        // Traces of engines before this one go on: this must not change.
        assert_eq!(format!("{:02x?}", &root.trace[..2]), "[7d, fa]");
    }

    #[test]
    fn a_cause_holds_as_long_as_something_is_done_also_if_that_panics() {
        let [outer, inner] = ["task/a", "task/b"].map(|name| Some(SpanContext::root_of(name)));
        caused_by(outer, || {
            assert_eq!(caused_by(inner, cause), inner);
            let panicked = std::panic::catch_unwind(|| caused_by(inner, || panic!("on purpose")));
            assert!(panicked.is_err());
            assert_eq!(cause(), outer);
        });
        assert_eq!(cause(), None);
    }
}
