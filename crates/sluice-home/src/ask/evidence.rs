//! What the attempts of a step were told and what they gave, read back from the evidence of a run for a person who looks
//! at the step closely.

use std::sync::Arc;

use serde_json::Value;
use sluice_api::problem::Problem;
use sluice_core::recipe::Recipe;

use super::Service;
use crate::evidence::tail;
use crate::settings::bounds::cut;

/// Bytes of the end of a run's evidence that are looked through.
const LOOKED_THROUGH: u64 = 8 << 20;
/// The most attempts and parts of a step that are shown, the newest.
const MOST_SHOWN: usize = 20;
/// The longest text of each that is shown, in bytes.
const LONGEST_TEXT: usize = 20_000;

/// What a part of an attempt was told, or what it gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EvidenceShown {
    /// `Attempt 2`, with the part where there are several.
    pub title: String,
    /// What kind of words it was told: `Prompt` or `Command`.
    pub told_as: &'static str,
    pub told: String,
    pub gave: String,
    key: (u64, String),
}

impl Service {
    /// What the attempts of a step were told and gave, the newest last.
    pub fn run_evidence(&self, id: &str, step: &str) -> Result<Vec<EvidenceShown>, Problem> {
        let seen = self.run(id)?;
        seen.step(step)?;
        let file = self.home.context.places.evidence().join(format!("{}.jsonl", seen.id));
        // A run that has begun nothing has no evidence.
        let Ok((_, bytes)) = tail(&file, LOOKED_THROUGH) else { return Ok(Vec::new()) };
        let text = String::from_utf8_lossy(&bytes);
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut shown: Vec<EvidenceShown> = Vec::new();
        for line in lines.filter(|line| line["step"] == step) {
            take(&mut shown, &line);
        }
        let first = shown.len().saturating_sub(MOST_SHOWN);
        Ok(shown.split_off(first))
    }

    /// The recipe of a run, as it was pinned when the run was started.
    pub fn run_recipe(&self, id: &str) -> Result<Arc<Recipe>, Problem> {
        Ok(Arc::new(self.run(id)?.plan.recipe.clone()))
    }
}

fn take(shown: &mut Vec<EvidenceShown>, line: &Value) {
    let text = |key: &str| line[key].as_str().filter(|text| !text.is_empty());
    let key = (line["attempt"].as_u64().unwrap_or(0), text("part").unwrap_or_default().to_owned());
    let place = shown.iter().position(|it| it.key == key).unwrap_or_else(|| {
        let part = if key.1.is_empty() || key.1 == "whole" { String::new() } else { format!(", {}", key.1) };
        let title = format!("Attempt {}{part}", key.0);
        shown.push(EvidenceShown { title, key, ..EvidenceShown::default() });
        shown.len() - 1
    });
    let it = &mut shown[place];
    if let Some((name, told)) = [("Prompt", "prompt"), ("Command", "command"), ("Task", "task")]
        .into_iter()
        .find_map(|(name, key)| Some((name, text(key)?)))
    {
        (it.told_as, it.told) = (name, cut(told, LONGEST_TEXT).to_owned());
    }
    if line["kind"] == "gave" {
        let whole = |key: &str| match &line[key] {
            Value::Null => None,
            Value::String(text) if text.is_empty() => None,
            Value::String(text) => Some(format!("{key}: {text}")),
            other => Some(format!("{key}: {other}")),
        };
        let keys =
            ["status", "summary", "result", "exit_code", "error", "output", "stderr", "started_at", "finished_at"];
        let gave = keys.into_iter().filter_map(whole).collect::<Vec<_>>().join("\n");
        it.gave = cut(&gave, LONGEST_TEXT).to_owned();
    }
}
