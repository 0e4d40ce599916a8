//! A board and answers as an engine gives them.

use jiff::Timestamp;
use serde_json::{Value, json};
use sluice_api::board::Board;

use crate::model::facts::{ScreenAsk, ScreenFact};

/// The time in all pictures.
pub(super) fn now() -> Timestamp {
    "2026-11-18T12:00:00Z".parse().unwrap()
}

fn made<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// A row: what is given, over what every row has.
pub(super) fn row(id: &str, name: &str, group: &str, more: Value) -> Value {
    let mut row = json!({
        "kind": "task", "id": id, "name": name, "summary": format!("Do {name}"), "project": "coffee",
        "workflow": "default", "group": group, "status": "working", "round": null, "attention": null,
        "text": "", "alive": false, "harness": "claude", "model": null, "activity": [], "usage": null,
        "since": "2026-11-18T11:50:00Z", "diff": null, "actions": ["cancel", "delete"],
    });
    for (key, value) in more.as_object().unwrap() {
        row[key] = value.clone();
    }
    row
}

fn attention(id: &str, reason: &str, text: &str, choices: &[&str]) -> Value {
    json!({ "id": id, "reason": reason, "text": text, "since": "2026-11-18T11:56:00Z", "choices": choices,
            "said_by": "engine" })
}

fn rows() -> Vec<Value> {
    vec![
        row(
            "k1",
            "fix-login",
            "needs_you",
            json!({
                "status": "working", "text": "claude asks: trust this folder?", "alive": true,
                "since": "2026-11-18T11:56:00Z", "actions": ["attach", "answer", "cancel", "delete"],
                "attention": attention("k1/1", "dialog", "claude asks: trust this folder?", &["attach", "dismiss", "cancel"]),
            }),
        ),
        row(
            "k2",
            "latte",
            "needs_you",
            json!({
                "status": "judging", "text": "PASS for this tree", "since": "2026-11-18T11:48:00Z",
                "diff": { "files": 4, "added": 120, "removed": 8 }, "round": { "round": 2, "bound": 3 },
                "usage": { "attempts": 2, "input_tokens": 30000, "cached_tokens": null, "output_tokens": 8000,
                           "total_tokens": 38000, "cost_usd": 0.21, "without_tokens": 0, "without_cost": 0 },
                "actions": ["merge", "approve", "request_changes", "create_pr", "answer", "cancel", "delete"],
                "attention": attention("k2/3", "review", "the work waits for your review", &["approve", "request-changes", "cancel"]),
            }),
        ),
        row(
            "r1",
            "nightly",
            "needs_you",
            json!({
                "kind": "run", "project": "api", "workflow": "nightly", "status": "held", "step": "tests",
                "text": "3 tests fail after flask 4.1", "since": "2026-11-18T11:00:00Z", "harness": null,
                "actions": ["answer", "cancel", "delete"],
                "attention": attention("r1/2", "gate", "3 tests fail after flask 4.1", &["retry", "skip", "abort"]),
            }),
        ),
        row(
            "k4",
            "gem",
            "needs_you",
            json!({
                "project": "web", "text": "gemini is not on the PATH", "since": "2026-11-18T11:58:00Z",
                "harness": "gemini", "actions": ["respawn", "answer", "cancel", "delete"],
                "attention": attention("k4/1", "cannot_start", "gemini is not on the PATH", &["respawn", "cancel"]),
            }),
        ),
        row(
            "k5",
            "pager",
            "in_review",
            json!({
                "project": "web", "status": "agent-review", "round": { "round": 2, "bound": 3 }, "alive": true,
                "harness": "codex", "model": "gpt-6", "text": "reading src/pager.rs", "activity": [2, 4, 6, 2, 0, 1, 8, 3],
                "since": "2026-11-18T11:54:00Z", "actions": ["attach", "nudge", "cancel", "delete"],
            }),
        ),
        row(
            "k6",
            "日本語-ブランチ",
            "working",
            json!({
                "alive": true, "text": "Schreibe die Größe in die Tabelle und prüfe sie danach noch einmal",
                "since": "2026-11-18T11:59:30Z", "activity": [0, 0, 1, 1, 2, 2, 3, 3], "run": "r6",
                "actions": ["attach", "nudge", "cancel", "delete"],
            }),
        ),
        row(
            "r6",
            "checks",
            "working",
            json!({
                "kind": "run", "workflow": "checks", "status": "running", "step": "lint", "text": "lint is under way",
                "task": "k6", "harness": null, "actions": ["cancel"],
            }),
        ),
        row(
            "k7",
            "t4",
            "queued",
            json!({ "project": "api", "status": "pending", "text": "waits for a worktree",
            "actions": ["cancel", "delete"] }),
        ),
        row(
            "k8",
            "espresso",
            "done",
            json!({ "status": "done", "text": "merged", "actions": ["delete"],
            "since": "2026-11-18T10:00:00Z" }),
        ),
    ]
}

pub(super) fn board_of(rows: Vec<Value>) -> Board {
    let count = |group: &str| rows.iter().filter(|row| row["group"] == group).count();
    made(json!({
        "engine": { "version": "0.1.0", "started_at": "2026-11-18T10:00:00Z", "now": "2026-11-18T12:00:00Z" },
        "cursor": 100,
        "counts": {
            "needs_you": count("needs_you"), "working": count("working"), "queued": count("queued"),
            "in_review": count("in_review"), "ready_to_merge": count("ready_to_merge"), "done_today": count("done"),
            "merged_today": count("done"), "cancelled_today": 0,
        },
        "projects": [
            { "name": "api", "pool_size": 2, "used": 2, "waiting": ["k7"], "waiting_count": 1 },
            { "name": "coffee", "pool_size": 5, "used": 4, "waiting": [], "waiting_count": 0 },
            { "name": "web", "pool_size": 3, "used": 3, "waiting": [], "waiting_count": 0 },
        ],
        "today": sum(412_000, 4.12),
        "rows": rows, "left_out": 0, "cut": null,
    }))
}

pub(super) fn board() -> Board {
    board_of(rows())
}

fn sum(tokens: u64, cost: f64) -> Value {
    json!({ "attempts": 3, "input_tokens": tokens - 100, "cached_tokens": null, "output_tokens": 100,
            "total_tokens": tokens, "cost_usd": cost, "without_tokens": 0, "without_cost": 1 })
}

/// What an engine answers to a question of a screen.
pub(super) fn fact(ask: &ScreenAsk) -> ScreenFact {
    match ask {
        ScreenAsk::Task(id) => ScreenFact::Task(Box::new(made(task(id)))),
        ScreenAsk::Run(id) => ScreenFact::Run(Box::new(made(run(id)))),
        ScreenAsk::Screen(_, id) => ScreenFact::Screen(made(json!({
            "session": format!("{id}.1"), "alive": true, "columns": 80, "rows": 24, "cursor": { "row": 3, "column": 2 },
            "lines": ["Do you trust the files in this folder?", "", "  1. Yes, proceed", "  2. No, exit", "> "],
        }))),
        ScreenAsk::Changes(..) => ScreenFact::Changes(Box::new(made(changes()))),
        ScreenAsk::File(_) => ScreenFact::File(made(json!({
            "version": 2, "text": "# Latte\n\n## Context\n\nMilk first.\n\n## Verdict\n\nVerdict: PASS\n", "versions": [],
        }))),
        ScreenAsk::History(..) | ScreenAsk::Events => ScreenFact::History(made(json!([
            event(101, "task.created", json!({ "status": "pending", "branch": "latte" })),
            event(102, "status.changed", json!({ "from": "pending", "to": "working" })),
        ]))),
        ScreenAsk::Log(..) => ScreenFact::Log("building\nall 12 tests passed\n".to_owned()),
        ScreenAsk::StepLog(_, step) => ScreenFact::Log(format!("{step} begins\n2 of 5 passed\n{step} failed\n")),
        ScreenAsk::Usage(..) => ScreenFact::Usage(made(json!({
            "total": sum(38_000, 0.21),
            "by": [with(json!({ "harness": "claude", "model": "opus" }), sum(38_000, 0.21))],
            "attempts": [{ "run": null, "step": "k2.1", "attempt": 1, "harness": "claude", "model": "opus",
                           "usage": null, "started_at": null, "finished_at": null }],
        }))),
        ScreenAsk::Timeline(id) => ScreenFact::Timeline(made(timeline(id))),
        ScreenAsk::Inbox => ScreenFact::Inbox(made(inbox())),
        ScreenAsk::Workers => ScreenFact::Workers(made(workers())),
        ScreenAsk::Workspaces => ScreenFact::Workspaces(Box::new(made(json!({
            "workspaces": [{ "name": "coffee-1", "project": "coffee", "path": "/home/ada/.sluice/worktrees/coffee-1",
                "task": "k1", "branch": "fix-login", "dirty": true, "exists": true, "doubt": null, "size_bytes": null }],
            "kept": [kept(), with(kept(), json!({ "task": "k8" }))],
        })))),
        ScreenAsk::Costs(by) => ScreenFact::Costs(made(json!({
            "by": by.word(), "since": "2026-11-12", "total": sum(412_000, 4.12),
            "rows": [with(json!({ "key": "k2", "name": "latte" }), sum(38_000, 0.21)),
                     with(json!({ "key": null, "name": "" }), sum(374_000, 3.91))],
        }))),
        ScreenAsk::Schedules => ScreenFact::Schedules(made(json!({
            "repeats": [
                { "run": "r3-r4", "recipe": "nightly", "project": "api", "status": "failed", "error": "look: exit code 1",
                  "turn": 5, "every_seconds": 86400, "keep": 14, "next_at": "2026-11-18T19:30:00Z" },
                { "run": "r8", "recipe": "sweep", "project": null, "status": "running", "turn": 1, "every_seconds": 600,
                  "keep": 3, "next_at": null },
            ],
            "count": 3,
        }))),
        ScreenAsk::Views => ScreenFact::Views(made(json!([
            { "name": "the api", "project": "api" }, { "name": "mine", "groups": ["needs_you"], "filter": "latte" },
        ]))),
        ScreenAsk::Recipes(_) => ScreenFact::Recipes(made(json!([{
            "name": "nightly", "description": "every night", "origin": "repository", "trigger": "manual",
            "input": [{ "name": "branch", "type": "string", "required": true, "default": null },
                      { "name": "depth", "type": "number", "required": false, "default": 2 }],
            "steps": [],
        }]))),
    }
}

fn with(mut one: Value, other: Value) -> Value {
    for (key, value) in other.as_object().unwrap() {
        one[key] = value.clone();
    }
    one
}

fn event(seq: u64, kind: &str, data: Value) -> Value {
    json!({ "seq": seq, "id": format!("k2/{seq}"), "type": kind, "time": "2026-11-18T11:48:00.000Z", "actor": "person",
            "correlation_id": "k2", "subject": "coffee/latte", "caused_by": null, "data": data })
}

fn kept() -> Value {
    json!({ "project": "coffee", "task": "k1", "repository": "/home/ada/coffee", "number": 1,
            "reference": "refs/sluice/kept/k1/1", "what": "changes, new files", "at": "2026-11-18T11:30:00Z" })
}

fn task(id: &str) -> Value {
    json!({
        "id": id, "project": "coffee", "branch": "latte", "workflow": "default", "harness": "claude",
        "review_harness": "codex", "status": "judging", "review_round": 2, "crash_count": 0, "summary": "Do latte",
        "workspace": "/home/ada/.sluice/worktrees/coffee-1", "tmux_session": null, "session": "inactive",
        "idle_seconds": null, "attention": null, "pr_url": null, "created_at": "2026-11-18T11:00:00Z",
        "updated_at": "2026-11-18T11:48:00Z", "statuses": ["pending", "working", "judging", "done", "cancelled"],
        "moves": [
            { "to": "done", "open": true, "why": null, "by": "person",
              "merge": { "open": false, "why": "Merge not allowed: 2 commits are newer than the verdict" } },
            { "to": "working", "open": false, "why": "TASK.md has no new section `## Feedback`", "by": "agent" },
            { "to": "cancelled", "open": true, "why": null, "by": "person" },
        ],
    })
}

fn step(id: &str, needs: &[&str], status: &str, more: Value) -> Value {
    let step = json!({
        "id": id, "title": null, "type": "script", "role": "any", "needs": needs, "workspace": null, "status": status,
        "attempt": 1, "round": 0, "summary": null, "result": null, "output": null, "exit_code": null, "stderr": null,
        "usage": null, "error": null, "items": null, "started_at": null, "finished_at": null,
    });
    with(step, more)
}

fn run(id: &str) -> Value {
    json!({
        "id": id, "version": 7, "recipe": "nightly", "kind": "run", "status": "held", "current_step": "tests",
        "workspace": null, "prompt": "update everything", "work_order": null, "task": null, "cause": null,
        "definition": null, "variables": {}, "error": null, "next_turn_at": null,
        "created_at": "2026-11-18T11:00:00Z", "updated_at": "2026-11-18T11:30:00Z",
        "question": { "id": "r1/2", "kind": "gate", "run": id, "recipe": "nightly", "step": "tests",
                      "reason": "3 tests fail", "exit_code": 1, "printed": null, "options": ["retry", "skip"],
                      "default": null, "deadline": null },
        "steps": [
            step("fetch", &[], "completed", json!({ "summary": "flask 4.1" })),
            step("build", &["fetch"], "completed", json!({ "attempt": 2 })),
            step("lint", &["fetch"], "running", json!({ "items": [
                { "index": 0, "item": "api", "status": "completed", "summary": "clean", "error": null },
                { "index": 1, "item": "web", "status": "running", "summary": null, "error": null },
            ] })),
            step("tests", &["build"], "held", json!({ "error": "3 tests fail" })),
            step("report", &["tests", "lint"], "waiting", json!({})),
        ],
    })
}

fn timeline(id: &str) -> Value {
    let bar = |step: &str, end: &str, from: &str, to: Option<&str>| json!({ "step": step, "attempt": 1, "end": end, "started_at": from, "finished_at": to });
    json!({
        "run": id, "now": "2026-11-18T12:00:00Z", "started_at": "2026-11-18T11:00:00Z", "finished_at": null,
        "left_out": 0,
        "bars": [
            bar("fetch", "completed", "2026-11-18T11:00:00Z", Some("2026-11-18T11:10:00Z")),
            bar("build", "failed", "2026-11-18T11:10:00Z", Some("2026-11-18T11:20:00Z")),
            bar("build", "completed", "2026-11-18T11:25:00Z", Some("2026-11-18T11:30:00Z")),
            bar("lint", "running", "2026-11-18T11:10:00Z", None),
            bar("tests", "failed", "2026-11-18T11:30:00Z", Some("2026-11-18T11:55:00Z")),
        ],
    })
}

fn inbox() -> Value {
    json!([
        { "id": "r1/2", "kind": "gate", "reason": "gate", "run": "r1", "step": "tests", "recipe": "nightly",
          "project": "api", "title": "nightly", "text": "3 tests fail after flask 4.1", "since": "2026-11-18T11:00:00Z",
          "options": ["retry", "skip", "abort"], "printed": "test_login failed\ntest_logout failed\n",
          "said_by": "engine" },
        { "id": "k2/3", "kind": "task", "reason": "review", "task": "k2", "project": "coffee", "title": "latte",
          "text": "the work waits for your review", "since": "2026-11-18T11:48:00Z",
          "options": ["approve", "request-changes", "cancel"], "said_by": "engine" },
    ])
}

fn workers() -> Value {
    json!({
        "here": { "sessions": 3, "steps": 1 },
        "workers": [
            { "id": "w1", "name": "anvil", "role": "coder", "group": "reef", "state": "busy", "silent_seconds": 4,
              "lease": { "run": "r9", "step": "build", "since": null, "ends_in_seconds": 96 },
              "registered_at": "2026-11-18T10:00:00Z" },
            { "id": "w2", "name": "hammer", "role": "any", "group": "reef", "state": "away", "silent_seconds": 3600,
              "lease": null, "registered_at": "2026-11-18T10:00:00Z" },
        ],
        "waiting": [{ "run": "r9", "step": "test", "role": "tester", "group": "reef", "since": null }],
        "waiting_count": 1,
        "pools": [{ "name": "coffee", "pool_size": 5, "used": 4, "waiting": [], "waiting_count": 0 }],
        "kept": [kept()], "kept_count": 1,
    })
}

fn part(files: Value) -> Value {
    json!({ "files": files, "count": files.as_array().unwrap().len(), "added": 3, "removed": 1, "cut": false })
}

fn changes() -> Value {
    let line = |change: &str, old: Option<u32>, new: Option<u32>, text: &str| json!({ "change": change, "old": old, "new": new, "text": text });
    let file = |path: &str, hunks: &Value| json!({ "path": path, "before": null, "change": "changed", "added": 2, "removed": 1, "hunks": hunks, "cut": false });
    let hunk = json!([{
        "old_start": 10, "old_lines": 3, "new_start": 10, "new_lines": 4, "heading": "fn pour()",
        "lines": [
            line("same", Some(10), Some(10), "fn pour() {"),
            line("removed", Some(11), None, "    milk();"),
            line("added", None, Some(11), "    steam();"),
            line("added", None, Some(12), "    milk(); // 牛乳"),
            line("same", Some(12), Some(13), "}"),
        ],
    }]);
    json!({
        "branch": "latte", "default_branch": "main", "base": "0123456789abcdef", "commit": "fedcba9876543210",
        "commits": [],
        "committed": part(json!([file("README.md", &hunk), file("src/pour.rs", &hunk), file("src/steam.rs", &hunk)])),
        "uncommitted": null,
        "since_verdict": {
            "verdict_commit": "0123456789abcdef", "verdict": "PASS",
            "commits": [{ "id": "fedcba9876543210", "subject": "steam first", "author": "Ada", "at": "2026-11-18T11:40:00Z" }],
            "committed": part(json!([file("src/steam.rs", &hunk)])),
        },
    })
}
