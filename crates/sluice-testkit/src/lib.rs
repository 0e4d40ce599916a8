//! A scripted agent in place of a model: it does what it is told, for real, and misbehaves on demand.
