//! leak
