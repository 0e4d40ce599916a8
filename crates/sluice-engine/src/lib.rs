//! The loop.

pub mod codec;
