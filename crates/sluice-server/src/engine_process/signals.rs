//! Signals for those who run in the foreground and are not an engine.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

/// Calls `told` whenever a signal asks this process to end, from now on and for good.
pub fn each_signal(mut told: impl FnMut() + Send + 'static) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // They are caught before this returns: none is missed.
    let (mut terminate, mut interrupt) = {
        let _inside = runtime.enter();
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)
    };
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        runtime.block_on(async {
            loop {
                tokio::select! {
                    _ = terminate.recv() => told(),
                    _ = interrupt.recv() => told(),
                }
            }
        });
    })?;
    Ok(())
}
