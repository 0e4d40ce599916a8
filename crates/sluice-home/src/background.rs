//! Threads, timers and turns: how the engine does many things at once, and none twice at the same time.

pub(crate) mod lane;
pub(crate) mod later;
pub(crate) mod threads;
pub(crate) mod turns;
