//! The table of routes: for each what it is for, what it takes and what it answers, beside the function that does it. The
//! router and the document that describes it are both made of this, so that neither can have what the other has not.

use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRequest, Path, Query, State};
use axum::handler::Handler;
use axum::http::{Method, StatusCode};
use axum::routing::{MethodFilter, on};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use sluice_api::Problem;
use sluice_home::ask::{Requester, Service};

use crate::answer::Said;
use crate::app::{App, ask};
use crate::caller::RequestCaller;

pub(crate) type DescribeType = fn(&mut SchemaGenerator) -> Schema;

/// Who may ask. The guard and the home decide it; this says it, and a test holds them together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RouteAudience {
    Everybody,
    /// Everybody who has a token.
    Readers,
    /// Callers with the scope worker or person.
    Workers,
    /// A session about its own work, and persons.
    Agents,
    Persons,
}

impl RouteAudience {
    pub(crate) fn scopes(self) -> &'static [&'static str] {
        match self {
            RouteAudience::Everybody => &[],
            RouteAudience::Readers => &["read", "worker", "agent", "person"],
            RouteAudience::Workers => &["worker", "person"],
            RouteAudience::Agents => &["agent", "person"],
            RouteAudience::Persons => &["person"],
        }
    }

    /// Whether that is enough for a caller to ask, whatever they say.
    pub(crate) fn allows(self, who: &Requester) -> bool {
        let is_among = match self {
            RouteAudience::Everybody | RouteAudience::Readers => true,
            RouteAudience::Workers => matches!(who, Requester::Worker { .. }),
            RouteAudience::Agents => matches!(who, Requester::Session { .. } | Requester::Step { .. }),
            RouteAudience::Persons => false,
        };
        is_among || who.is_person()
    }
}

/// What a request is answered with when it is done.
#[derive(Clone, Copy)]
pub(crate) struct RouteAnswer {
    pub(crate) status: StatusCode,
    /// The media type; none when there is no body.
    pub(crate) form: Option<&'static str>,
    pub(crate) describe: Option<DescribeType>,
}

#[derive(Clone)]
pub(crate) struct RouteOperation {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) summary: &'static str,
    /// The part of the API that it belongs to.
    pub(crate) tag: &'static str,
    pub(crate) who: RouteAudience,
    pub(crate) takes: Option<DescribeType>,
    pub(crate) reads: Option<DescribeType>,
    /// A part of the path, and the words that it can be.
    pub(crate) words: Option<(&'static str, &'static [&'static str])>,
    pub(crate) answer: RouteAnswer,
    /// It makes something new, and can be asked for under a key.
    pub(crate) creates: bool,
}

impl RouteOperation {
    fn new(method: Method, path: &'static str, summary: &'static str, who: RouteAudience) -> Self {
        let answer = RouteAnswer { status: StatusCode::OK, form: None, describe: None };
        RouteOperation {
            method,
            path,
            summary,
            tag: "",
            who,
            takes: None,
            reads: None,
            words: None,
            answer,
            creates: false,
        }
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

    pub(crate) fn with(mut self, status: StatusCode) -> Self {
        self.answer.status = status;
        self
    }

    /// It makes something new. A question that takes the name of that says so by itself.
    pub(crate) fn creates(mut self) -> Self {
        self.creates = true;
        self
    }

    /// Others than the method suggests may ask.
    pub(crate) fn for_(mut self, who: RouteAudience) -> Self {
        self.who = who;
        self
    }
}

pub(crate) fn get(path: &'static str, summary: &'static str) -> RouteOperation {
    RouteOperation::new(Method::GET, path, summary, RouteAudience::Readers)
}

pub(crate) fn post(path: &'static str, summary: &'static str) -> RouteOperation {
    RouteOperation::new(Method::POST, path, summary, RouteAudience::Persons)
}

pub(crate) fn put(path: &'static str, summary: &'static str) -> RouteOperation {
    RouteOperation::new(Method::PUT, path, summary, RouteAudience::Persons)
}

pub(crate) fn patch(path: &'static str, summary: &'static str) -> RouteOperation {
    RouteOperation::new(Method::PATCH, path, summary, RouteAudience::Persons)
}

pub(crate) fn delete(path: &'static str, summary: &'static str) -> RouteOperation {
    RouteOperation::new(Method::DELETE, path, summary, RouteAudience::Persons)
}

/// What a question takes of its request. The document is made of it, and so is what the question is given.
pub(crate) trait RouteInput {
    fn describe(operation: RouteOperation) -> RouteOperation {
        operation
    }
}

impl RouteInput for () {}

/// The path of a route names its parts.
impl<T> RouteInput for Path<T> {}

impl<T: JsonSchema> RouteInput for Query<T> {
    fn describe(operation: RouteOperation) -> RouteOperation {
        operation.reads::<T>()
    }
}

impl<T: JsonSchema> RouteInput for Said<T> {
    fn describe(operation: RouteOperation) -> RouteOperation {
        operation.takes::<T>()
    }
}

impl<A: RouteInput, B: RouteInput> RouteInput for (A, B) {
    fn describe(operation: RouteOperation) -> RouteOperation {
        B::describe(A::describe(operation))
    }
}

pub(crate) type RouteQuestion<In, A> = fn(&Service, &Requester, In) -> Result<A, Problem>;

pub(crate) struct RouteTable {
    router: Router<Arc<App>>,
    operations: Vec<RouteOperation>,
    tag: &'static str,
}

impl RouteTable {
    pub(crate) fn new(tag: &'static str) -> Self {
        RouteTable { router: Router::new(), operations: Vec::new(), tag }
    }

    /// With one more way to ask, and who answers.
    pub(crate) fn add<H, T>(mut self, operation: RouteOperation, handler: H) -> Self
    where
        H: Handler<T, Arc<App>>,
        T: 'static,
    {
        let method = MethodFilter::try_from(operation.method.clone()).expect("a method that axum knows");
        self.router = self.router.route(operation.path, on(method, handler));
        self.operations.push(RouteOperation { tag: self.tag, ..operation });
        self
    }

    /// With one more question to the home. What it takes and answers says the question itself.
    pub(crate) fn ask<M, In, A>(self, operation: RouteOperation, question: RouteQuestion<In, A>) -> Self
    where
        M: 'static,
        In: FromRequest<Arc<App>, M> + RouteInput + Send + 'static,
        A: Serialize + JsonSchema + 'static,
    {
        let operation = In::describe(operation).answers::<A>();
        let done = operation.answer.status;
        let answer = async move |State(app): State<Arc<App>>, caller: RequestCaller, input: In| {
            let mut answer = ask(app, caller, move |service, who| question(service, who, input)).await;
            if answer.status() == StatusCode::OK {
                *answer.status_mut() = done;
            }
            answer
        };
        self.add(operation, answer)
    }

    pub(crate) fn merge(mut self, other: RouteTable) -> Self {
        self.router = self.router.merge(other.router);
        self.operations.extend(other.operations);
        self
    }

    pub(crate) fn operations(&self) -> &[RouteOperation] {
        &self.operations
    }

    pub(crate) fn router(self) -> Router<Arc<App>> {
        self.router
    }
}
