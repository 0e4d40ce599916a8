//! Gives freed memory back to the system.
//!
//! The allocator of glibc keeps what was freed between two blocks that are in use: after a burst of runs an engine that needed
//! 6 MiB held 40. Only the allocator itself can give that back, by one function of C, and no safe crate offers it. Other
//! allocators were tried in its place (mimalloc, jemalloc): they held more, both under load and after it.
//!
//! This is the one crate that calls what Rust cannot check. Nothing else belongs here.

/// Gives back what is free. It takes each arena's lock in turn, for a millisecond or so: call it when little happens.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "the allocator is asked through a function of C")]
pub fn give_back() {
    // SAFETY: the function takes a number, touches no memory that is in use, and may be called from any thread.
    let _ = unsafe { libc::malloc_trim(0) };
}

/// Other allocators give memory back by themselves, or cannot be asked.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_back() {}
