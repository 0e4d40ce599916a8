//! The table of routes: for each what it is for, what it takes and what it answers, beside the function that does it. The
//! router and the document that describes it are both made of this, so that neither can have what the other has not.

use std::sync::Arc;

use axum::Router;
use axum::handler::Handler;
use axum::http::StatusCode;
use axum::routing::{MethodFilter, on};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use sluice_home::service::Who;

use crate::run::App;

/// Describes a type.
pub(crate) type Describe = fn(&mut SchemaGenerator) -> Schema;

/// How something is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Post,
    Patch,
    Delete,
}

impl Method {
    /// As documents write it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Method::Get => "get",
            Method::Post => "post",
            Method::Patch => "patch",
            Method::Delete => "delete",
        }
    }

    fn filter(self) -> MethodFilter {
        match self {
            Method::Get => MethodFilter::GET,
            Method::Post => MethodFilter::POST,
            Method::Patch => MethodFilter::PATCH,
            Method::Delete => MethodFilter::DELETE,
        }
    }
}

/// Who may ask. The guard and the home decide it; this says it, and a test holds them together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum For {
    /// Everybody, without a token.
    Everybody,
    /// Everybody who has a token.
    Readers,
    /// Workers and persons.
    Workers,
    /// A session about its own work, and persons.
    Agents,
    /// Persons.
    Persons,
}

impl For {
    /// The scopes of tokens that are enough.
    pub(crate) fn scopes(self) -> &'static [&'static str] {
        match self {
            For::Everybody => &[],
            For::Readers => &["read", "worker", "agent", "person"],
            For::Workers => &["worker", "person"],
            For::Agents => &["agent", "person"],
            For::Persons => &["person"],
        }
    }

    /// Whether that is enough for somebody to ask, whatever they say.
    pub(crate) fn allows(self, who: &Who) -> bool {
        let is_among = match self {
            For::Everybody | For::Readers => true,
            For::Workers => matches!(who, Who::Worker { .. }),
            For::Agents => matches!(who, Who::Session { .. } | Who::Step { .. }),
            For::Persons => false,
        };
        is_among || who.is_person()
    }
}

/// What a request is answered with when it is done.
#[derive(Clone, Copy)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    /// The media type; none when there is no body.
    pub(crate) form: Option<&'static str>,
    /// What JSON looks like.
    pub(crate) describe: Option<Describe>,
}

/// One way to ask for something.
#[derive(Clone, Copy)]
pub(crate) struct Operation {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) summary: &'static str,
    /// The part of the API that it belongs to.
    pub(crate) tag: &'static str,
    pub(crate) who: For,
    pub(crate) takes: Option<Describe>,
    pub(crate) reads: Option<Describe>,
    /// A part of the path, and the words that it can be.
    pub(crate) words: Option<(&'static str, &'static [&'static str])>,
    pub(crate) answer: Answer,
    /// It makes something new, and can be asked for under a key.
    pub(crate) creates: bool,
}

impl Operation {
    fn new(method: Method, path: &'static str, summary: &'static str, who: For) -> Self {
        let answer = Answer { status: StatusCode::OK, form: None, describe: None };
        Operation { method, path, summary, tag: "", who, takes: None, reads: None, words: None, answer, creates: false }
    }

    /// The body of the request.
    pub(crate) fn takes<T: JsonSchema>(mut self) -> Self {
        self.takes = Some(SchemaGenerator::subschema_for::<T>);
        self
    }

    /// What follows the question mark.
    pub(crate) fn reads<T: JsonSchema>(mut self) -> Self {
        self.reads = Some(T::json_schema);
        self
    }

    /// A part of the path is one of these words.
    pub(crate) fn words(mut self, name: &'static str, words: &'static [&'static str]) -> Self {
        self.words = Some((name, words));
        self
    }

    /// The body of the answer.
    pub(crate) fn answers<T: JsonSchema>(mut self) -> Self {
        self.answer.form = Some("application/json");
        self.answer.describe = Some(SchemaGenerator::subschema_for::<T>);
        self
    }

    /// An answer that is not one JSON document.
    pub(crate) fn answers_as(mut self, form: &'static str) -> Self {
        self.answer.form = Some(form);
        self
    }

    /// Another status than 200.
    pub(crate) fn with(mut self, status: StatusCode) -> Self {
        self.answer.status = status;
        self
    }

    /// It makes something new.
    pub(crate) fn creates(mut self) -> Self {
        self.creates = true;
        self
    }

    /// Others than the method suggests may ask.
    pub(crate) fn for_(mut self, who: For) -> Self {
        self.who = who;
        self
    }
}

/// Looks at something.
pub(crate) fn get(path: &'static str, summary: &'static str) -> Operation {
    Operation::new(Method::Get, path, summary, For::Readers)
}

/// Does something.
pub(crate) fn post(path: &'static str, summary: &'static str) -> Operation {
    Operation::new(Method::Post, path, summary, For::Persons)
}

/// Changes something.
pub(crate) fn patch(path: &'static str, summary: &'static str) -> Operation {
    Operation::new(Method::Patch, path, summary, For::Persons)
}

/// Ends something.
pub(crate) fn delete(path: &'static str, summary: &'static str) -> Operation {
    Operation::new(Method::Delete, path, summary, For::Persons)
}

/// Routes, and what is said about them.
pub(crate) struct Table {
    router: Router<Arc<App>>,
    operations: Vec<Operation>,
    tag: &'static str,
}

impl Table {
    /// A part of the API that has this name.
    pub(crate) fn new(tag: &'static str) -> Self {
        Table { router: Router::new(), operations: Vec::new(), tag }
    }

    /// With one more way to ask, and who answers.
    pub(crate) fn add<H, T>(mut self, operation: Operation, handler: H) -> Self
    where
        H: Handler<T, Arc<App>>,
        T: 'static,
    {
        self.router = self.router.route(operation.path, on(operation.method.filter(), handler));
        self.operations.push(Operation { tag: self.tag, ..operation });
        self
    }

    /// With those of another part.
    pub(crate) fn merge(mut self, other: Table) -> Self {
        self.router = self.router.merge(other.router);
        self.operations.extend(other.operations);
        self
    }

    /// Everything that can be asked for.
    pub(crate) fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// The router.
    pub(crate) fn router(self) -> Router<Arc<App>> {
        self.router
    }
}
