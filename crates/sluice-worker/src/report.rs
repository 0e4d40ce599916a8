//! What came of a step, between the work protocol and a run: a report is written by the worker and read by the engine.
//!
//! Everything is taken apart by name and without `..`: a field that is added does not compile until it is carried.

use serde_json::Value;
use sluice_api::Problem;
use sluice_api::control::AttemptStatus;
use sluice_api::work::{
    LARGEST_REPORT, LITERAL, LONGEST_PROGRESS, LONGEST_STDERR, LONGEST_SUMMARY, LONGEST_VALUE, LONGEST_WORD, PROTOCOL,
    StepReport, TokenUsage,
};
use sluice_core::recipe::{Data, FailureKind};
use sluice_core::run::{AgentUsage, AttemptReport, StepOutcome};
use sluice_os::harness::result::result;

use crate::redact::HomeRedactor;
use crate::value::{cut, data, dollars, plain};

/// A report as a worker sends it. Each field of what it says is named, so that one that is added is not forgotten.
pub fn written(run_id: String, report: &AttemptReport) -> StepReport {
    let (status, failure, error, outcome) = match report {
        AttemptReport::Completed(outcome) => (AttemptStatus::Completed, None, None, outcome),
        AttemptReport::Failed { kind, error, outcome } => {
            (AttemptStatus::Failed, Some(kind.word()), Some(error), outcome)
        }
    };
    let StepOutcome { summary, result, output, exit_code, stderr, commit, usage } = outcome;
    fitted(StepReport {
        protocol: Some(PROTOCOL),
        run_id,
        status: status.to_string(),
        summary: Some(summary.clone()),
        result: result.clone(),
        token_usage: usage.as_deref().map(written_usage),
        output: Some(plain(output)),
        exit_code: *exit_code,
        stderr: stderr.clone(),
        commit: commit.clone(),
        onto: None, // who brings it in knows
        failure: failure.map(str::to_owned),
        error: error.cloned(),
    })
}

/// The same as can be sent: bytes that are no text take six times as much in JSON. What was written besides goes first.
fn fitted(report: StepReport) -> StepReport {
    let is_large = |report: &StepReport| serde_json::to_string(report).map_or(0, |text| text.len()) > LARGEST_REPORT;
    if !is_large(&report) {
        return report;
    }
    let shortened = StepReport { stderr: report.stderr.map(|text| cut(&text, LONGEST_PROGRESS)), ..report };
    if !is_large(&shortened) {
        return shortened;
    }
    let error = format!("its output is too large to be reported: more than {LARGEST_REPORT} bytes in JSON");
    let (failure, output) = (Some(FailureKind::Failed.word().to_owned()), Some(Value::Null));
    StepReport {
        status: AttemptStatus::Failed.to_string(),
        failure,
        error: Some(error),
        output,
        summary: None,
        ..shortened
    }
}

fn written_usage(usage: &AgentUsage) -> TokenUsage {
    let AgentUsage { input, cached, output, total, cost } = *usage;
    TokenUsage {
        prompt_tokens: input,
        cached_tokens: cached,
        completion_tokens: output,
        total_tokens: total,
        cost_usd: cost.map(dollars),
    }
}

fn read_usage(usage: TokenUsage) -> AgentUsage {
    let TokenUsage { prompt_tokens, cached_tokens, completion_tokens, total_tokens, cost_usd } = usage;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` ends at the limits of the type")]
    let millionths = |dollars: f64| (dollars * 1e6).round() as u64;
    AgentUsage {
        input: prompt_tokens,
        cached: cached_tokens,
        output: completion_tokens,
        total: total_tokens,
        cost: cost_usd.map(millionths),
    }
}

/// What a worker's report means to its run; no secret of it stays.
pub fn read(clean: &HomeRedactor, wanted: &StepReport) -> Result<AttemptReport, Problem> {
    let StepReport {
        protocol,
        run_id: _, // says which attempt, which the caller has found
        status,
        summary,
        result: word,
        token_usage,
        output,
        exit_code,
        stderr,
        commit,
        onto,
        failure,
        error,
    } = wanted;
    let words = [("result", word), ("commit", commit), ("onto", onto), ("failure", failure)];
    if let Some((name, _)) = words.into_iter().find(|(_, it)| it.as_ref().is_some_and(|it| it.len() > LONGEST_WORD)) {
        return Err(Problem::bad_request(format!("`{name}` has more than {LONGEST_WORD} bytes")));
    }
    let is_commit = |text: &String| [40, 64].contains(&text.len()) && text.chars().all(|it| it.is_ascii_hexdigit());
    if commit.as_ref().is_some_and(|commit| !is_commit(commit)) {
        let hint = "send its full name, 40 or 64 hexadecimal digits";
        return Err(Problem::bad_request("`commit` is no commit").hint(hint));
    }
    let value = output.as_ref().map_or(0, |value| value.to_string().len());
    if value > LONGEST_VALUE {
        let error = format!("its output has {value} bytes, more than the {LONGEST_VALUE} that are kept");
        return Ok(AttemptReport::Failed { kind: FailureKind::Failed, error, outcome: StepOutcome::default() });
    }
    let said = clean.text(summary.as_deref().unwrap_or_default());
    let is_literal = protocol.is_some_and(|version| version >= LITERAL);
    let in_summary = if is_literal { None } else { Some(result(&said)) };
    let whole = || cut(&said, LONGEST_SUMMARY);
    let outcome = StepOutcome {
        summary: match &in_summary {
            Some(read) if word.is_none() => cut(&read.summary, LONGEST_SUMMARY),
            Some(_) | None => whole(),
        },
        result: word.as_deref().map(|it| clean.text(it)).or(in_summary.and_then(|read| read.result)),
        output: match output {
            Some(value) => data(&clean.value(value)),
            None if is_literal => Data::Null,
            None => Data::Text(cut(&said, LONGEST_VALUE)),
        },
        exit_code: *exit_code,
        stderr: stderr.as_deref().map(|text| cut(&clean.text(text), LONGEST_STDERR)),
        commit: commit.clone(),
        usage: token_usage.map(|usage| Box::new(read_usage(usage))),
    };
    match AttemptStatus::read(status) {
        Some(AttemptStatus::Completed) => Ok(AttemptReport::Completed(outcome)),
        Some(AttemptStatus::Failed) => {
            let kind = failure.as_deref().map_or(Ok(FailureKind::Failed), failure_kind)?;
            let said = error.as_deref().map_or_else(whole, |error| cut(&clean.text(error), LONGEST_SUMMARY));
            let error = if said.is_empty() { "the crab says that it failed".to_owned() } else { said };
            Ok(AttemptReport::Failed { kind, error, outcome })
        }
        Some(AttemptStatus::Running) | None => {
            Err(Problem::bad_request(format!("`{status}` is no end of a run")).hint("completed or failed"))
        }
    }
}

fn failure_kind(word: &str) -> Result<FailureKind, Problem> {
    FailureKind::ALL.into_iter().find(|kind| kind.word() == word).ok_or_else(|| {
        Problem::bad_request(format!("`{word}` is no way to fail")).hint("failed, timeout, crashed or lost")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome() -> StepOutcome {
        let usage = AgentUsage {
            input: Some(1200),
            cached: Some(800),
            output: Some(34),
            total: None,
            cost: Some(12_345_678_901),
        };
        StepOutcome {
            summary: "Verdict: PASS\nis what the summary says".into(),
            result: Some("FAIL".into()),
            output: Data::List(vec![Data::Number("2.5".into()), Data::Null, Data::Text("x".into())]),
            exit_code: Some(3),
            stderr: Some("full\n".into()),
            commit: Some("0123456789abcdef0123456789abcdef01234567".into()),
            usage: Some(Box::new(usage)),
        }
    }

    #[test]
    fn a_report_of_a_worker_arrives_as_it_was_sent() {
        let (clean, bare) = (HomeRedactor::of_nothing(), StepOutcome { output: Data::Null, ..StepOutcome::default() });
        let failed = |kind| AttemptReport::Failed { kind, error: "exit code 3".into(), outcome: outcome() };
        let said = StepOutcome { summary: "Verdict: PASS".into(), ..bare.clone() };
        let completed = [outcome(), bare, said].map(AttemptReport::Completed);
        for report in completed.into_iter().chain(FailureKind::ALL.map(failed)) {
            let sent = serde_json::to_string(&written("run".into(), &report)).unwrap();
            assert_eq!(read(&clean, &serde_json::from_str(&sent).unwrap()), Ok(report));
        }
    }

    #[test]
    fn a_report_is_never_too_large_to_be_sent() {
        let odd = "\u{1}".repeat(LONGEST_STDERR);
        let sent = |output: &str| {
            let (output, stderr) = (Data::Text(output.to_owned()), Some(odd.clone()));
            written("run".into(), &AttemptReport::Completed(StepOutcome { output, stderr, ..outcome() }))
        };
        let (fits, too_large) = (sent("x"), sent(&odd.repeat(2)));
        assert!(fits.stderr.is_some_and(|text| text.contains("bytes left out")) && fits.status == "completed");
        assert!(too_large.status == "failed" && too_large.error.is_some_and(|why| why.contains("too large")));
    }

    #[test]
    fn the_summary_of_a_crab_that_knows_no_versions_may_hold_its_result() {
        let said = StepReport {
            run_id: "run".into(),
            status: "completed".into(),
            summary: Some("It works.\n\nVerdict: PASS".into()),
            ..StepReport::default()
        };
        let Ok(AttemptReport::Completed(outcome)) = read(&HomeRedactor::of_nothing(), &said) else {
            panic!("it is completed")
        };
        assert_eq!(outcome.result.as_deref(), Some("PASS"));
        assert!(matches!(outcome.output, Data::Text(_)), "{outcome:?}");
    }
}
