//! Boards that were just made, for pages that ask again: many windows that show the same board cost little more than one.
//! With a board the parts of pages are kept that were made of it, also compressed.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use sluice_api::Problem;
use sluice_api::attention::Attention;
use sluice_api::board::Board;
use sluice_home::ask::Service;

/// How long a board is good while nothing happens: terminals move without events.
const GOOD_FOR: Duration = Duration::from_secs(1);
/// The most projects whose boards are kept.
const MOST_KEPT: usize = 16;

/// The most parts of pages that are kept with one board: one for each filter and scope.
const MOST_PARTS: usize = 64;

/// A board, and the parts of pages that show it.
pub(crate) struct SharedBoard {
    pub(crate) board: Board,
    pub(crate) attention: Vec<Attention>,
    parts: Mutex<BTreeMap<String, BoardPart>>,
}

/// A part of a page as it is sent. Nothing in it is one visitor's own.
#[derive(Clone)]
pub(crate) struct BoardPart {
    pub(crate) text: Bytes,
    pub(crate) zipped: Bytes,
}

impl SharedBoard {
    /// What was made under a key, or is made now.
    pub(crate) fn part(
        &self,
        key: String,
        make: impl FnOnce(&SharedBoard) -> Result<String, Problem>,
    ) -> Result<BoardPart, Problem> {
        // While one is made all others wait for it, and then take it.
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = parts.get(&key) {
            return Ok(made.clone());
        }
        let text = make(self)?;
        let unzipped =
            |error: std::io::Error| Problem::fault(format!("a part of the page cannot be compressed: {error}"));
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text.as_bytes()).map_err(unzipped)?;
        let zipped = encoder.finish().map_err(unzipped)?;
        let made = BoardPart { text: text.into(), zipped: zipped.into() };
        if parts.len() >= MOST_PARTS {
            parts.clear();
        }
        parts.insert(key, made.clone());
        Ok(made)
    }
}

#[derive(Default)]
pub(crate) struct BoardCache(Mutex<BTreeMap<Option<String>, KeptBoard>>);

struct KeptBoard {
    board: Arc<SharedBoard>,
    made: Instant,
    /// What had happened by then.
    news: u64,
}

impl BoardCache {
    /// The board of a project, or of all. `news` changes with everything that happens; without `again` it is made anew.
    pub(crate) fn get(
        &self,
        service: &Service,
        project: Option<String>,
        news: u64,
        again: bool,
    ) -> Result<Arc<SharedBoard>, Problem> {
        // While one is made all others wait for it, and then take it.
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let good = kept.get(&project).filter(|it| again && it.news == news && it.made.elapsed() < GOOD_FOR);
        if let Some(good) = good {
            return Ok(good.board.clone());
        }
        let made = Instant::now();
        let (board, attention) = (service.board(project.as_deref())?, service.attention()?);
        let board = Arc::new(SharedBoard { board, attention, parts: Mutex::default() });
        if kept.len() >= MOST_KEPT {
            kept.clear();
        }
        kept.insert(project, KeptBoard { board: board.clone(), made, news });
        Ok(board)
    }
}
