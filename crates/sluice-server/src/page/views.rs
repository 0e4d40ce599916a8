//! Saved views of the board: the same that the dashboard has on its keys 1 to 9. A view is a filter with a name; the page
//! shows each as a link, saves the present filter, and forgets the view that is shown.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use sluice_api::board::{BoardGroup, LONGEST_VIEW_NAME, MOST_VIEWS, SavedView, Views};
use sluice_home::ask::{Requester, Service};

use super::act::unknown;
use super::form::{Fields, SentForm};
use super::frame::AddressQuery;
use super::wording::address;
use crate::app::App;

/// The saved views as the board shows them.
#[derive(Default)]
pub(super) struct ViewsShown {
    pub(super) views: Vec<ViewLink>,
    /// The filter can be saved: it is one, it is no view yet, and there is room for it.
    pub(super) can_save: bool,
    /// The filter, which a form carries.
    pub(super) filter: SavedView,
    pub(super) longest_name: usize,
}

pub(super) struct ViewLink {
    pub(super) name: String,
    pub(super) link: String,
    pub(super) is_here: bool,
}

/// What the address of a board filters by.
pub(super) fn filter_of(query: &AddressQuery) -> SavedView {
    SavedView {
        name: String::new(),
        project: query.get("project").map(str::to_owned),
        groups: query.all("group").filter_map(BoardGroup::read).collect(),
        filter: query.get("q").unwrap_or_default().to_owned(),
    }
}

impl ViewsShown {
    pub(super) fn new(saved: Views, query: &AddressQuery) -> ViewsShown {
        let filter = filter_of(query);
        let is_here = |view: &SavedView| SavedView { name: String::new(), ..view.clone() } == filter;
        let is_known = saved.views.iter().any(is_here);
        let has_room = saved.views.len() < MOST_VIEWS;
        let link = |view: SavedView| ViewLink { link: link(&view, query), is_here: is_here(&view), name: view.name };
        let is_filter = filter != SavedView::default();
        ViewsShown {
            can_save: is_filter && !is_known && has_room,
            views: saved.views.into_iter().map(link).collect(),
            longest_name: LONGEST_VIEW_NAME,
            filter,
        }
    }
}

fn link(view: &SavedView, query: &AddressQuery) -> String {
    let mut pairs: Vec<(&str, &str)> = query.get("view").map(|look| ("view", look)).into_iter().collect();
    pairs.extend(view.project.as_deref().map(|project| ("project", project)));
    pairs.extend(view.groups.iter().map(|group| ("group", group.word())));
    pairs.extend(Some(("q", view.filter.as_str())).filter(|(_, words)| !words.is_empty()));
    address("/", &pairs)
}

/// `POST /page/views`: saves the filter under a name, or forgets a view. A view that is saved again keeps its place.
pub(super) async fn change(State(app): State<Arc<App>>, form: SentForm) -> Response {
    let change = |service: &Service, who: &Requester, fields: &Fields| {
        let (word, name) = (fields.need("act")?, fields.need("name")?);
        let mut saved = service.views()?;
        match word.as_str() {
            "save_view" => keep(&mut saved, named(name, fields)),
            "forget_view" => saved.views.retain(|view| view.name != name),
            _ => return Err(unknown(&word)),
        }
        service.save_views(who, saved)?;
        Ok(fields.back_with(&word))
    };
    form.ask(&app, change).await
}

fn named(name: String, fields: &Fields) -> SavedView {
    SavedView {
        name,
        project: fields.get("project").map(str::to_owned),
        groups: fields.all("group").filter_map(BoardGroup::read).collect(),
        filter: fields.get("q").unwrap_or_default().to_owned(),
    }
}

fn keep(saved: &mut Views, view: SavedView) {
    match saved.views.iter_mut().find(|it| it.name == view.name) {
        Some(old) => *old = view,
        None => saved.views.push(view),
    }
}

#[cfg(test)]
mod tests {
    use super::super::frame::Frame;
    use super::*;

    fn view(name: &str, project: Option<&str>, groups: &[BoardGroup], filter: &str) -> SavedView {
        SavedView {
            name: name.to_owned(),
            project: project.map(str::to_owned),
            groups: groups.to_vec(),
            filter: filter.to_owned(),
        }
    }

    fn query(pairs: &[(&str, &str)]) -> AddressQuery {
        Frame::sample(true, pairs, &[]).query
    }

    #[test]
    fn a_view_is_a_link_and_the_one_that_is_shown_is_marked() {
        let groups = [BoardGroup::NeedsYou, BoardGroup::ReadyToMerge];
        let saved = Views { views: vec![view("mine", Some("co<b>"), &groups, "a b"), view("queue", None, &[], "q")] };
        let at = [("view", "columns"), ("q", "a b"), ("group", "needs_you"), ("group", "ready_to_merge")];
        let shown = ViewsShown::new(saved.clone(), &query(&[&at[..], &[("project", "co<b>")]].concat()));
        let links: Vec<_> = shown.views.iter().map(|it| (it.link.as_str(), it.is_here)).collect();
        let first = "/?view=columns&project=co%3Cb%3E&group=needs_you&group=ready_to_merge&q=a%20b";
        assert_eq!(links, [(first, true), ("/?view=columns&q=q", false)]);
        assert!(!shown.can_save, "it is saved already");
        assert!(ViewsShown::new(saved.clone(), &query(&[("q", "else")])).can_save);
        assert!(!ViewsShown::new(saved, &query(&[])).can_save, "everything is no view");
        let full = Views { views: (0..MOST_VIEWS).map(|number| view(&number.to_string(), None, &[], "")).collect() };
        assert!(!ViewsShown::new(full, &query(&[("q", "else")])).can_save, "there is no room");
    }

    #[test]
    fn a_view_that_is_saved_again_keeps_its_place() {
        let mut saved = Views { views: vec![view("a", None, &[], "1"), view("b", None, &[], "2")] };
        keep(&mut saved, view("a", None, &[], "3"));
        keep(&mut saved, view("c", None, &[], "4"));
        let all: Vec<_> = saved.views.iter().map(|it| (it.name.as_str(), it.filter.as_str())).collect();
        assert_eq!(all, [("a", "3"), ("b", "2"), ("c", "4")]);
    }
}
