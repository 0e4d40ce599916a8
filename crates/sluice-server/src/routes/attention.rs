//! The routes of what waits for a person: one list, and one way to answer.

use axum::extract::Path;
use sluice_api::attention::{AnswerAttention, AttentionList};

use crate::answer::Said;
use crate::table::{RouteTable, get, post};

pub(crate) fn table() -> RouteTable {
    RouteTable::new("attention")
        .ask(get("/v1/attention", "List everything that waits for a person, the oldest first"), |service, _, ()| {
            Ok(AttentionList { attention: service.attention()? })
        })
        .ask(post("/v1/notify/test", "Send a test message through every channel of `[notify]`"), |service, who, ()| {
            service.test_channels(who)
        })
        .ask(
            get("/v1/attention/{id}", "Show what waits: by its id, or by the id of its task or run"),
            |service, _, Path(id): Path<String>| service.attention_of(&id),
        )
        .ask(
            post("/v1/attention/{id}", "Answer what waits: by its id, or by the id of its task or run"),
            |service, who, (Path(id), said): (Path<String>, Said<AnswerAttention>)| {
                service.answer_attention(who, &id, said.read()?)
            },
        )
        .ask(
            get("/v1/attention/{id}/{number}", "Show what waits, by task or run and number"),
            |service, _, Path((id, number)): Path<(String, String)>| service.attention_of(&format!("{id}/{number}")),
        )
        .ask(
            post("/v1/attention/{id}/{number}", "Answer what waits, by task or run and number"),
            |service, who, (Path((id, number)), said): (Path<(String, String)>, Said<AnswerAttention>)| {
                service.answer_attention(who, &format!("{id}/{number}"), said.read()?)
            },
        )
}
