//! One engine for a home: it holds the lock of the home's file while it runs.

pub use sluice_os::lock::{FileLock, FileLockError};
