//! Routes in the words of one design document each. The engine underneath knows tasks, runs and workers only.

pub(crate) mod coven;
pub(crate) mod crabitat;
pub(crate) mod vermas;
