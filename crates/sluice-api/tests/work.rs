//! The work protocol against golden files: what a build of each version sends is read by this one, and this one sends just
//! what the file of its version says. `cargo xtask update` adds files that are missing: those
//! of a new version.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sluice_api::work::{
    AskMergeTurn, Envelope, FromWorker, Heartbeat, HeartbeatAnswer, HeldSteps, MergeTurn, OrderWorkspace, PROTOCOL,
    StepDispatch, StepOrder, StepPermissions, StepProgress, StepReport, StepStart, ToWorker, TokenUsage, works_with,
};

fn file(version: u32, name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/work").join(format!("{name}.v{version}.json"))
}

fn stored(version: u32, name: &str) -> String {
    let path = file(version, name);
    std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; `cargo xtask update` adds it", path.display()))
}

/// What this build sends is what the file of its version says, and is read back whole.
fn is_golden<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(name: &str, sample: &T) {
    let text = serde_json::to_string_pretty(sample).expect("a message can be written") + "\n";
    if std::env::var_os("UPDATE_GOLDEN").is_some() && !file(PROTOCOL, name).exists() {
        std::fs::write(file(PROTOCOL, name), &text).expect("the file can be written");
    }
    assert_eq!(text, stored(PROTOCOL, name), "{name}: a change of what is sent is a new version of the protocol");
    assert_eq!(serde_json::from_str::<T>(&text).ok().as_ref(), Some(sample));
}

fn about<K>(kind: K) -> Envelope<K> {
    Envelope {
        message_id: Some("m1-7".into()),
        mission_id: Some("brew".into()),
        task_id: Some("brew.grind".into()),
        run_id: Some("brew-7".into()),
        kind,
        sent_at_ms: Some(1_700_000_000_000),
    }
}

fn order() -> StepOrder {
    StepOrder {
        protocol: Some(PROTOCOL),
        dispatch: 7,
        task_id: "brew.grind".into(),
        mission_id: "brew".into(),
        step_id: "grind".into(),
        role: "barista".into(),
        title: "Grind the beans".into(),
        prompt: "Grind in burrows/mission-brew/.".into(),
        context: "The beans are here.".into(),
        worktree_path: "burrows/mission-brew/".into(),
        worktree_at: Some(vec![9]),
        worktree_in: Some(vec!["WHERE".into()]),
        kind: "script".into(),
        is_arbiter: false,
        script: Some("grind \"$WHERE\"".into()),
        environment: Some(vec![("WHERE".into(), "burrows/mission-brew/".into())]),
        attempt: 2,
        part: "item-3".into(),
        performance: "brew.0-2-i3".into(),
        harness: Some("claude".into()),
        permissions: StepPermissions::Reduced,
        own_workspace: true,
        workspace: Some(OrderWorkspace::Own),
        repo: Some("ssh://there/brew.git".into()),
        commit: Some("0123456789abcdef0123456789abcdef01234567".into()),
        lease_ms: Some(120_000),
        away_ms: Some(10_000),
        agent_token: Some("secret".into()),
    }
}

fn report() -> StepReport {
    StepReport {
        protocol: Some(PROTOCOL),
        run_id: "brew-7".into(),
        status: "failed".into(),
        summary: Some("The grinder is full.".into()),
        result: Some("FAIL".into()),
        token_usage: Some(TokenUsage {
            prompt_tokens: Some(1200),
            cached_tokens: Some(800),
            completion_tokens: Some(34),
            total_tokens: Some(1234),
            cost_usd: Some(0.012_345),
        }),
        output: Some(serde_json::json!({ "beans": [1, 2] })),
        exit_code: Some(3),
        stderr: Some("full\n".into()),
        commit: Some("0123456789abcdef0123456789abcdef01234567".into()),
        onto: Some("76543210fedcba9876543210fedcba9876543210".into()),
        failure: Some("failed".into()),
        error: Some("exit code 3".into()),
    }
}

#[test]
fn this_build_sends_what_the_golden_files_say() {
    is_golden("assigned", &about(ToWorker::Assigned(Box::new(order()))));
    let in_scratch = StepOrder {
        own_workspace: false,
        workspace: Some(OrderWorkspace::Scratch),
        repo: None,
        commit: None,
        ..order()
    };
    is_golden("assigned-in-scratch", &about(ToWorker::Assigned(Box::new(in_scratch))));
    is_golden("stopped", &about(ToWorker::Stop(StepDispatch { dispatch: 7 })));
    is_golden("withdrawn", &about(ToWorker::Revoked(StepDispatch { dispatch: 7 })));
    let answers = Some(HeartbeatAnswer { dispatches: vec![7, 8], sent_ms: Some(5) });
    let held = HeldSteps { dispatches: vec![7], performances: vec!["brew.0-2-i3".into()], answers };
    is_golden("held", &about(ToWorker::Held(held)));
    let beat = Heartbeat { dispatches: Some(vec![7, 8]), finishing: true, sent_ms: Some(5), full: false };
    is_golden("heartbeat", &about(FromWorker::Heartbeat(beat)));
    let start = StepStart {
        run_id: Some("brew-7".into()),
        mission_id: "brew".into(),
        task_id: "brew.grind".into(),
        crab_id: "crab".into(),
        burrow_path: Some("burrows/mission-brew/".into()),
    };
    is_golden("started", &about(FromWorker::Started(start)));
    let token_usage = Some(TokenUsage { completion_tokens: Some(3), ..TokenUsage::default() });
    let progress = StepProgress { run_id: "brew-7".into(), progress_message: Some("half".into()), token_usage };
    is_golden("progress", &about(FromWorker::Progress(progress)));
    is_golden("finished", &about(FromWorker::Finished(Box::new(report()))));
    is_golden("merge-turn-asked", &AskMergeTurn { run_id: "brew-7".into() });
    let commit = Some("76543210fedcba9876543210fedcba9876543210".into());
    is_golden("merge-turn", &MergeTurn { run_id: "brew-7".into(), ready: true, commit });
}

/// Each file of an earlier version is one that its builds have sent.
#[test]
fn what_earlier_versions_send_is_read() {
    let order: Envelope<ToWorker> = serde_json::from_str(&stored(1, "assigned")).unwrap();
    let ToWorker::Assigned(order) = order.kind else { panic!("it is an order") };
    assert_eq!((order.protocol, order.dispatch, order.own_workspace), (None, 3, false));
    assert_eq!(order.script.as_deref(), Some("make"));
    let order: Envelope<ToWorker> = serde_json::from_str(&stored(3, "assigned")).unwrap();
    let ToWorker::Assigned(order) = order.kind else { panic!("it is an order") };
    assert_eq!((order.protocol, order.own_workspace, order.workspace), (Some(3), true, None));
    let held: Envelope<ToWorker> = serde_json::from_str(&stored(1, "held")).unwrap();
    assert!(matches!(held.kind, ToWorker::Held(HeldSteps { answers: None, .. })));
    let report: StepReport = serde_json::from_str(&stored(1, "finished")).unwrap();
    assert_eq!((report.protocol, report.exit_code, report.status.as_str()), (None, None, "completed"));
    assert_eq!(report.token_usage.unwrap().prompt_tokens, Some(12));
    let finished: Envelope<FromWorker> = serde_json::from_str(&stored(2, "finished")).unwrap();
    let FromWorker::Finished(report) = finished.kind else { panic!("it is a report") };
    assert_eq!((report.protocol, report.exit_code, report.onto), (Some(2), Some(3), None));
}

/// A side that is older ignores what it does not know, and so does this one.
#[test]
fn what_later_versions_add_is_ignored() {
    let mut later: Value = serde_json::from_str(&stored(PROTOCOL, "assigned")).unwrap();
    later["kind"]["payload"]["added_later"] = serde_json::json!({ "more": true });
    let read: Envelope<ToWorker> = serde_json::from_value(later).unwrap();
    assert_eq!(read, about(ToWorker::Assigned(Box::new(order()))));
}

#[test]
fn a_side_that_says_no_version_speaks_the_first() {
    assert!(works_with(None) && works_with(Some(PROTOCOL)) && works_with(Some(PROTOCOL + 1)));
    assert!(!works_with(Some(0)));
}

/// What a program leaves out of an object it leaves out; the values of its fields one after the other are none.
#[test]
fn what_a_model_used_is_an_object() {
    let report = |usage: &str| format!(r#"{{"run_id": "brew-7", "status": "completed", "token_usage": {usage}}}"#);
    let read = |usage: &str| serde_json::from_str::<StepReport>(&report(usage)).map(|report| report.token_usage);
    assert_eq!(read(r#"{"prompt_tokens": 3}"#).unwrap().unwrap().prompt_tokens, Some(3));
    assert_eq!(read("null").unwrap(), None);
    assert!(read("[3, null, null, null, null]").is_err());
}
