//! Values of a step that are well formed and cannot work, and keys that show what was meant.
//!
//! The shape cannot tell these: whether a number or a text makes sense depends on what stands beside it.

use sluice_core::expr;
use sluice_core::findings::CheckFindings;
use sluice_core::problem::{Code, Diagnosis, clip, closest};
use sluice_core::recipe::RecipeDialect;
use sluice_core::span::{SourceText, SpannedValue};

use super::fields::TableFields;
use super::recipe_shapes;

/// The text at `key`, which must say something. One that is blank is reported, and reads as if it were not there.
pub(super) fn told<'a>(fields: TableFields<'a>, key: &str, findings: &mut CheckFindings) -> Option<&'a SourceText> {
    let text = fields.text(key)?;
    match is_blank(text) {
        true => {
            findings.hole(empty(key, text).help(format!("say something, or remove `{key}`")));
            None
        }
        false => Some(text),
    }
}

pub(super) fn is_blank(text: &SourceText) -> bool {
    text.value.trim().is_empty()
}

/// That `text`, the value of `key`, is empty.
pub(super) fn empty(key: &str, text: &SourceText) -> Diagnosis {
    Diagnosis::new(Code::MissingKey, text.span, format!("`{}` is empty", clip(key)))
}

/// Reports a `timeout` of nothing.
pub(super) fn time_limit(fields: TableFields<'_>, findings: &mut CheckFindings) {
    if let (Some(limit), Some(node)) = (fields.duration("timeout"), fields.node("timeout"))
        && limit.is_zero()
    {
        findings.add(
            Diagnosis::new(Code::BadQuantity, node.span, "`timeout` is 0, and nothing is done in no time")
                .help("write a time such as `30m`, or leave it out for no limit"),
        );
    }
}

/// Reports `max_retries` of a manifest where it allows no turn of a loop, or says a second time what `retry` says.
pub(super) fn retries(fields: TableFields<'_>, findings: &mut CheckFindings) {
    let Some(max): Option<SpannedValue<u32>> = fields.number("max_retries") else { return };
    let reviewed = failed_review(fields);
    let needed = |step: &String| fields.names("depends_on").is_some_and(|all| all.iter().any(|it| it.value == *step));
    let target = fields.name("loop_to").map(|to| to.value).or_else(|| reviewed.clone().filter(needed));
    if let (0, Some(target)) = (max.value, target) {
        let message = format!("`max_retries` is 0, so the loop to `{}` is never taken", clip(&target));
        findings.add(
            Diagnosis::new(Code::BadQuantity, max.span, message)
                .help("write how often it may go back, at least 1, or remove the loop"),
        );
    }
    let loops = fields.key("loop_to").is_some() || reviewed.is_some();
    if let (Some(span), Some(other), false) = (fields.key("max_retries"), fields.key("retry"), loops) {
        findings.add(
            Diagnosis::new(Code::KeyConflict, span, "`max_retries` and `retry` in one step")
                .other(other, "this says it too")
                .help("without a loop both say how often the step is tried again: keep `retry`"),
        );
    }
}

/// The step whose failed review this one waits for: such a step with `max_retries` loops back to the review.
fn failed_review(fields: TableFields<'_>) -> Option<String> {
    let condition = expr::parse(&fields.text("condition")?.value).ok()?;
    condition.failed_review().map(str::to_owned)
}

/// Whether an agent without a prompt has been reported already, by a key that is misspelt or goes with another type.
pub(super) fn meant_otherwise(fields: TableFields<'_>, dialect: RecipeDialect) -> bool {
    let shape = recipe_shapes::step(dialect);
    let says_work = |key: &str| match shape.field(key) {
        Some(_) => matches!(key, "command" | "summary"),
        None => {
            let close = closest(key, shape.fields().map(|field| field.key));
            matches!(close, Some("prompt" | "prompt_file" | "command" | "summary"))
        }
    };
    fields.entries().iter().any(|entry| says_work(&entry.key.value))
}
