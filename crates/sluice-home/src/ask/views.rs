//! Views of the board that a person has saved. They are one small file of the home, written whole or not at all.

use sluice_api::board::{LONGEST_VIEW_FILTER, LONGEST_VIEW_NAME, MOST_VIEWS, SavedView, Views};
use sluice_api::problem::Problem;
use sluice_os::file::{Durability, write_atomically};

use super::{Requester, Service};

impl Service {
    /// The views that are saved; none in a home in which none were.
    pub fn views(&self) -> Result<Views, Problem> {
        let file = self.home.context.places.views();
        let unread = |why: String| {
            Problem::fault(format!("{} cannot be read: {why}", file.display()))
                .hint("remove it, or save the views anew: `PUT /v1/views`")
        };
        match std::fs::read(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| unread(error.to_string())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Views::default()),
            Err(error) => Err(unread(error.to_string())),
        }
    }

    /// Saves views in place of all that there were.
    pub fn save_views(&self, who: &Requester, wanted: Views) -> Result<Views, Problem> {
        who.must_be_person("saving views")?;
        must_fit(&wanted)?;
        let file = self.home.context.places.views();
        let bytes = serde_json::to_vec_pretty(&wanted).map_err(|error| Problem::fault(error.to_string()))?;
        let unwritten =
            |error: std::io::Error| Problem::unavailable(format!("{} cannot be written: {error}", file.display()));
        write_atomically(&file, &bytes, Durability::Synced).map_err(unwritten)?;
        Ok(wanted)
    }
}

fn must_fit(wanted: &Views) -> Result<(), Problem> {
    let refuse = |why: String| Err(Problem::bad_request(why));
    if wanted.views.len() > MOST_VIEWS {
        return refuse(format!("at most {MOST_VIEWS} views are saved, and these are {}", wanted.views.len()));
    }
    for SavedView { name, project, filter, .. } in &wanted.views {
        if name.trim().is_empty() || name.chars().count() > LONGEST_VIEW_NAME || name.chars().any(char::is_control) {
            return refuse(format!("the name of a view is one line of 1 to {LONGEST_VIEW_NAME} characters"));
        }
        let texts = [Some(filter), project.as_ref()];
        if texts.into_iter().flatten().any(|text| text.chars().count() > LONGEST_VIEW_FILTER) {
            return refuse(format!(
                "the filter and the project of a view have at most {LONGEST_VIEW_FILTER} characters"
            ));
        }
    }
    Ok(())
}
