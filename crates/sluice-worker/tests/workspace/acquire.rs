//! acquire
