//! What is made of what programs print. The samples follow the facts about each program; recordings are in
//! `recordings.rs`.

use sluice_os::harness::stream::{
    HarnessEnd, HarnessExit, HarnessFormat, HarnessProgress, HarnessReader, HarnessUsage, LONGEST_LINE, LONGEST_TEXT,
};

fn show(ended: &HarnessEnd) -> String {
    let mut lines = vec![match &ended.error {
        None => format!("ok: {}", ended.text),
        Some(error) => format!("failed: {error}"),
    }];
    lines.extend(ended.session.as_ref().map(|session| format!("session: {session}")));
    let HarnessUsage { input, cached, output, total, cost } = ended.usage;
    let numbers = [("input", input), ("cached", cached), ("output", output), ("total", total), ("cost", cost)];
    let known: Vec<String> =
        numbers.iter().filter_map(|(name, number)| number.map(|number| format!("{name} {number}"))).collect();
    lines.extend((!known.is_empty()).then(|| format!("used: {}", known.join(", "))));
    lines.extend(ended.rate_limit.map(|limit| format!("limit until {:?}", limit.resets_at)));
    lines.join("\n")
}

pub(crate) fn read(output: HarnessFormat, exit: HarnessExit, lines: &str) -> String {
    let mut whole = HarnessReader::new(output);
    whole.feed(lines.as_bytes());
    let whole = whole.finish(exit, b"");
    // In whatever pieces it comes, it is the same.
    let mut pieces = HarnessReader::new(output);
    for piece in lines.as_bytes().chunks(7) {
        pieces.feed(piece);
    }
    assert_eq!(pieces.finish(exit, b""), whole);
    show(&whole)
}

const WELL: HarnessExit = HarnessExit::Code(0);

#[test]
fn claude() {
    let work = r#"{"type":"system","subtype":"init","session_id":"s-1","model":"opus"}
{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"I look."},{"type":"tool_use","name":"Bash","input":{}}],"usage":{"input_tokens":5,"output_tokens":1}},"session_id":"s-1","parent_tool_use_id":null}
{"type":"assistant","message":{"id":"m2","content":[{"type":"text","text":"helper's words"}],"usage":{"input_tokens":5,"output_tokens":1}},"parent_tool_use_id":"t1"}
{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","resetsAt":1784079000}}
{"type":"assistant","message":{"id":"m3","content":[{"type":"text","text":"Done."}],"usage":{"input_tokens":5,"output_tokens":1}},"parent_tool_use_id":null}
"#;
    let result = |rest: &str| {
        format!(
            "{work}{{\"type\":\"result\",{rest},\"session_id\":\"s-1\",\"total_cost_usd\":0.0123456,\"usage\":{{\"input_tokens\":10,\"cache_read_input_tokens\":100,\"cache_creation_input_tokens\":20,\"output_tokens\":7}}}}\n"
        )
    };
    insta::assert_snapshot!(read(HarnessFormat::Claude, WELL, &result(r#""subtype":"success","is_error":false,"result":"Done.""#)), @"
    ok: Done.
    session: s-1
    used: input 130, cached 100, output 7, total 137, cost 12346
    ");
    insta::assert_snapshot!(read(HarnessFormat::Claude, WELL, &result(r#""subtype":"success","is_error":true,"result":"API Error: 500""#)), @"
    failed: it reports an error: API Error: 500
    session: s-1
    used: input 130, cached 100, output 7, total 137, cost 12346
    ");
    insta::assert_snapshot!(read(HarnessFormat::Claude, HarnessExit::Code(1), &result(r#""subtype":"error_max_turns","is_error":false"#)), @"
    failed: it ran out of turns
    session: s-1
    used: input 130, cached 100, output 7, total 137, cost 12346
    ");
    // Killed because it did not end after its result: the result stands.
    assert!(
        read(
            HarnessFormat::Claude,
            HarnessExit::Signal(9),
            &result(r#""subtype":"success","is_error":false,"result":"x""#)
        )
        .starts_with("ok: x")
    );
    insta::assert_snapshot!(read(HarnessFormat::Claude, WELL, work), @"
    failed: it ended with exit status 0 without a final message
    session: s-1
    used: input 15, output 3, total 18
    ");
    let limited = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1778565600,"rateLimitType":"five_hour"}}
{"type":"result","subtype":"success","is_error":true,"result":"You've hit your limit"}"#;
    insta::assert_snapshot!(read(HarnessFormat::Claude, HarnessExit::Code(1), limited), @"
    failed: it reports an error: You've hit your limit
    limit until Some(1778565600)
    ");
}

#[test]
fn like_claude() {
    let lines = r#"{"type":"system","subtype":"init","session_id":"T-9"}
{"type":"assistant","message":{"content":[{"type":"text","text":"Fixed."}]},"session_id":"T-9"}
{"type":"result","subtype":"success","is_error":false,"result":"Fixed.","session_id":"T-9","total_cost_usd":3.5}"#;
    insta::assert_snapshot!(read(HarnessFormat::Amp, WELL, lines), @"
    ok: Fixed.
    session: T-9
    ");
    let lines = r#"{"type":"system","subtype":"init","session_id":"q"}
{"type":"result","subtype":"success","is_error":false,"result":"Fixed.","session_id":"q","usage":{"input_tokens":3,"output_tokens":4}}"#;
    insta::assert_snapshot!(read(HarnessFormat::Qwen, WELL, lines), @"
    ok: Fixed.
    session: q
    used: input 3, output 4, total 7
    ");
    let lines = r#"{"type":"system","subtype":"init","session_id":"c"}
{"type":"tool_call","subtype":"started","tool_call":{"readToolCall":{"args":{}}}}
{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"Read it."}]}}
{"type":"result","subtype":"success","is_error":false,"result":"Read it.","session_id":"c","usage":{"inputTokens":10,"outputTokens":2,"cacheReadTokens":5,"cacheWriteTokens":1}}"#;
    insta::assert_snapshot!(read(HarnessFormat::Cursor, WELL, lines), @"
    ok: Read it.
    session: c
    used: input 16, cached 5, output 2, total 18
    ");
}

#[test]
fn codex() {
    let work = r#"{"type":"thread.started","thread_id":"th"}
{"type":"turn.started"}
{"type":"item.started","item":{"id":"i0","type":"command_execution","command":"ls"}}
{"type":"error","message":"Reconnecting... 1/5"}
{"type":"item.completed","item":{"id":"i1","type":"agent_message","text":"All done."}}
"#;
    insta::assert_snapshot!(read(HarnessFormat::Codex, WELL, &format!("{work}{}", r#"{"type":"turn.completed","usage":{"input_tokens":100,"cached_input_tokens":60,"output_tokens":9}}"#)), @"
    ok: All done.
    session: th
    used: input 100, cached 60, output 9, total 109
    ");
    insta::assert_snapshot!(read(HarnessFormat::Codex, HarnessExit::Code(1), &format!("{work}{}", r#"{"type":"turn.failed","error":{"message":"The usage limit has been reached","resets_at":1788879437}}"#)), @"
    failed: The usage limit has been reached
    session: th
    limit until Some(1788879437)
    ");
    insta::assert_snapshot!(read(HarnessFormat::Codex, WELL, work), @"
    failed: it ended with exit status 0 without a final message: Reconnecting... 1/5
    session: th
    ");
}

#[test]
fn gemini() {
    let work = r#"{"type":"init","session_id":"g","model":"m"}
{"type":"message","role":"user","content":"prompt"}
{"type":"message","role":"assistant","content":"I will ","delta":true}
{"type":"message","role":"assistant","content":"read.","delta":true}
{"type":"tool_use","tool_name":"read_file","tool_id":"1","parameters":{}}
{"type":"tool_result","tool_id":"1","status":"success"}
{"type":"message","role":"assistant","content":"It is ","delta":true}
{"type":"message","role":"assistant","content":"fine.","delta":true}
"#;
    insta::assert_snapshot!(read(HarnessFormat::Gemini, WELL, &format!("{work}{}", r#"{"type":"result","status":"success","stats":{"total_tokens":50,"input_tokens":40,"output_tokens":10,"cached":5}}"#)), @"
    ok: It is fine.
    session: g
    used: input 40, cached 5, output 10, total 50
    ");
    insta::assert_snapshot!(read(HarnessFormat::Gemini, HarnessExit::Code(53), &format!("{work}{}", r#"{"type":"result","status":"error","error":{"type":"FatalTurnLimitedError","message":"Reached max session turns"}}"#)), @"
    failed: Reached max session turns
    session: g
    ");
    insta::assert_snapshot!(read(HarnessFormat::Gemini, HarnessExit::Code(41), "Please set an Auth method\n"), @"failed: it ended with exit status 41 (it is not logged in) without a final message: Please set an Auth method");
}

#[test]
fn opencode() {
    let work = r#"{"type":"step_start","sessionID":"ses","part":{"type":"step-start"}}
{"type":"tool_use","sessionID":"ses","part":{"tool":"bash","state":{"status":"completed"}}}
{"type":"step_finish","sessionID":"ses","part":{"id":"p1","reason":"tool-calls","cost":0.01,"tokens":{"input":10,"output":2,"reasoning":1,"cache":{"read":4,"write":3}}}}
{"type":"step_start","sessionID":"ses","part":{"type":"step-start"}}
{"type":"text","sessionID":"ses","part":{"type":"text","text":"Finished."}}
"#;
    let stop = r#"{"type":"step_finish","sessionID":"ses","part":{"id":"p2","reason":"stop","cost":0.02,"tokens":{"input":1,"output":1,"reasoning":0,"cache":{"read":0,"write":0}}}}
"#;
    insta::assert_snapshot!(read(HarnessFormat::Opencode, WELL, &format!("{work}{stop}")), @"
    ok: Finished.
    session: ses
    used: input 18, cached 4, output 4, total 22, cost 30000
    ");
    insta::assert_snapshot!(read(HarnessFormat::Opencode, WELL, work), @"
    failed: it ended with exit status 0 without a final message
    session: ses
    used: input 17, cached 4, output 3, total 20, cost 10000
    ");
    insta::assert_snapshot!(read(HarnessFormat::Opencode, WELL, r#"{"type":"error","sessionID":"ses","error":{"name":"ProviderAuthError","data":{"message":"no key"}}}"#), @"
    failed: no key
    session: ses
    ");
    insta::assert_snapshot!(read(HarnessFormat::Opencode, WELL, ""), @"failed: it ended with exit status 0 without a final message");
}

#[test]
fn goose() {
    let lines = r#"{"type":"message","message":{"id":"a","role":"assistant","content":[{"type":"text","text":"Look"}]}}
{"type":"message","message":{"id":"a","role":"assistant","content":[{"type":"text","text":"ing."},{"type":"toolRequest","toolCall":{"status":"success","value":{"name":"shell"}}}]}}
{"type":"message","message":{"role":"user","content":[{"type":"toolResponse"}]}}
{"type":"notification","extension_id":"x"}
{"type":"message","message":{"id":"b","role":"assistant","content":[{"type":"text","text":"All "}]}}
{"type":"message","message":{"id":"b","role":"assistant","content":[{"type":"text","text":"good."}]}}
"#;
    insta::assert_snapshot!(read(HarnessFormat::Goose, WELL, &format!("{lines}{}", r#"{"type":"complete","total_tokens":321}"#)), @"
    ok: All good.
    used: total 321
    ");
    insta::assert_snapshot!(read(HarnessFormat::Goose, WELL, r#"{"type":"error","error":"Rate limit exceeded"}
{"type":"complete","total_tokens":null}"#), @"
    failed: Rate limit exceeded
    limit until None
    ");
}

#[test]
fn pi() {
    let lines = |reason: &str| {
        format!(
            r#"{{"type":"session","version":3,"id":"pi-1","cwd":"/w"}}
{{"type":"agent_start"}}
{{"type":"tool_execution_start","toolCallId":"1","toolName":"bash","args":{{}}}}
{{"type":"message_end","message":{{"role":"assistant","content":[{{"type":"toolCall","name":"bash"}}],"usage":{{"input":1,"output":2,"cacheRead":3,"cacheWrite":4,"cost":{{"total":0.001}}}},"stopReason":"toolUse"}}}}
{{"type":"message_end","message":{{"role":"assistant","content":[{{"type":"thinking","thinking":"hm"}},{{"type":"text","text":"Ready."}}],"usage":{{"input":1,"output":2,"cacheRead":3,"cacheWrite":4,"cost":{{"total":0.001}}}},{reason}}}}}
{{"type":"turn_end","message":{{"role":"assistant","content":[]}}}}
{{"type":"agent_end","messages":[]}}"#
        )
    };
    insta::assert_snapshot!(read(HarnessFormat::Pi, WELL, &lines(r#""stopReason":"stop""#)), @"
    ok: Ready.
    session: pi-1
    used: input 16, cached 6, output 4, total 20, cost 2000
    ");
    insta::assert_snapshot!(read(HarnessFormat::Pi, WELL, &format!("Warning: update available\n{}", lines(r#""stopReason":"error","errorMessage":"overloaded""#))), @"
    failed: overloaded
    session: pi-1
    used: input 16, cached 6, output 4, total 20, cost 2000
    ");
}

#[test]
fn copilot() {
    let work = r#"{"type":"session.start","data":{"sessionId":"cp"}}
{"type":"tool.execution_start","data":{"toolName":"bash"}}
{"type":"assistant.usage","data":{"inputTokens":100,"outputTokens":10,"cacheReadTokens":50,"cost":1}}
{"type":"assistant.message","data":{"messageId":"1","content":"Merged the loops."}}
{"type":"assistant.usage","data":{"inputTokens":200,"outputTokens":20}}
"#;
    insta::assert_snapshot!(read(HarnessFormat::Copilot, WELL, &format!("{work}{}", r#"{"type":"result","sessionId":"cp","exitCode":0,"usage":{"premiumRequests":1}}"#)), @"
    ok: Merged the loops.
    session: cp
    used: input 300, cached 50, output 30, total 330
    ");
    let failed = format!(
        "{work}{}",
        "{\"type\":\"session.error\",\"data\":{\"message\":\"Quota exceeded\"}}\n{\"type\":\"result\",\"exitCode\":1}"
    );
    insta::assert_snapshot!(read(HarnessFormat::Copilot, HarnessExit::Code(1), &failed), @"
    failed: Quota exceeded
    session: cp
    used: input 300, cached 50, output 30, total 330
    limit until None
    ");
}

#[test]
fn agy() {
    let work = r#"{"event":"init","conversation_id":"cv","init":{"model":"m"}}
{"event":"step_update","step_update":{"step_index":0,"state":"DONE","step_type":"user_input","text_delta":"the prompt, again"}}
{"event":"step_update","step_update":{"step_index":1,"state":"DONE","step_type":"run_command"}}
{"event":"step_update","step_update":{"step_index":2,"state":"ACTIVE","step_type":"agent_response","text_delta":"Tests "}}
{"event":"step_update","step_update":{"step_index":2,"state":"DONE","step_type":"agent_response","text_delta":"pass."}}
"#;
    insta::assert_snapshot!(read(HarnessFormat::Agy, WELL, &format!("{work}{}", r#"{"event":"result","result":{"conversation_id":"cv","status":"SUCCESS","response":"","usage":{"total_tokens":7}}}"#)), @"
    ok: Tests pass.
    session: cv
    used: total 7
    ");
    let nothing = r#"{"event":"init","conversation_id":"cv","init":{}}
{"event":"result","result":{"status":"SUCCESS","response":""}}"#;
    insta::assert_snapshot!(read(HarnessFormat::Agy, WELL, nothing), @"
    failed: it ended without having said or done anything
    session: cv
    ");
    insta::assert_snapshot!(read(HarnessFormat::Agy, WELL, ""), @"failed: it ended with exit status 0 without a final message");
}

#[test]
fn aider() {
    let answer = r#"Aider v0.86.2
Main model: sonnet with diff edit format
Git repo: .git with 12 files
Added src/main.rs to the chat.
Warning: it is late

That is a part of the answer.
Added it.

Tokens: 2.3k sent, 1.2k cache write, 500 cache hit, 18 received. Cost: $0.0012 message, $0.0012 session.
Applied edit to src/main.rs
Commit 7bdbb78 feat: say hello
"#;
    insta::assert_snapshot!(read(HarnessFormat::Aider, WELL, answer), @"
    ok: That is a part of the answer.
    Added it.


    used: input 2300, output 18, total 2318, cost 1200
    ");
    // A test fails, it asks once more, and that fails.
    let again = "error: 1 test failed\nlitellm.APIConnectionError: it is away\nThe API is away.\n";
    insta::assert_snapshot!(read(HarnessFormat::Aider, WELL, &format!("{answer}{again}")), @"
    failed: litellm.APIConnectionError: it is away
    used: input 2300, output 18, total 2318, cost 1200
    ");
    let again =
        "litellm.InternalServerError: down\nRetrying in 0.2 seconds...\nBetter now.\n\nTokens: 12k sent, 7 received.\n";
    insta::assert_snapshot!(read(HarnessFormat::Aider, WELL, &format!("{answer}{again}")), @"
    ok: Better now.


    used: input 14300, output 25, total 14325, cost 1200
    ");
    insta::assert_snapshot!(read(HarnessFormat::Aider, WELL, "Aider v0.86.2\nModel: x\n"), @"failed: it ended without an answer from a model");
}

#[test]
fn text() {
    assert_eq!(read(HarnessFormat::Text, WELL, "so it is\n"), "ok: so it is\n");
    assert_eq!(read(HarnessFormat::Text, WELL, ""), "ok: ");
    insta::assert_snapshot!(read(HarnessFormat::Text, HarnessExit::Code(3), "half"), @"failed: it ended with exit status 3");
    insta::assert_snapshot!(read(HarnessFormat::Text, WELL, "```json\n{\"success\": false, \"summary\": \"no luck\"}\n```"), @"failed: the agent says that it did not succeed: no luck");
    let mut reader = HarnessReader::new(HarnessFormat::Text);
    reader.feed(b"a");
    insta::assert_snapshot!(show(&reader.finish(HarnessExit::Signal(15), b"out of memory\n")), @"failed: it was ended by signal 15: out of memory");
}

#[test]
fn signs_of_life_come_as_they_happen() {
    let mut reader = HarnessReader::new(HarnessFormat::Claude);
    let line = r#"{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"hi"},{"type":"tool_use","name":"Bash"}]}}"#;
    assert_eq!(reader.feed(&line.as_bytes()[..50]), []);
    assert_eq!(reader.feed(&line.as_bytes()[50..]), [], "not before the end of the line");
    assert_eq!(reader.feed(b"\n"), [HarnessProgress::Text("hi".into()), HarnessProgress::Tool("Bash".into())]);
    assert!(!reader.is_final());
    reader.feed(b"{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"x\"}\n");
    assert!(reader.is_final());
}

#[test]
fn whatever_is_printed_nothing_grows_without_a_limit_and_nothing_panics() {
    let mut reader = HarnessReader::new(HarnessFormat::Text);
    let block = "é".repeat(1 << 19);
    for _ in 0..20 {
        reader.feed(block.as_bytes());
    }
    reader.feed("x".as_bytes());
    let text = reader.finish(WELL, b"").text;
    assert!(text.len() <= LONGEST_TEXT && text.ends_with("éx") && !text.contains('\u{FFFD}'));

    let mut reader = HarnessReader::new(HarnessFormat::Claude);
    reader.feed(&vec![b'x'; LONGEST_LINE + 1]);
    reader.feed(b"\n{\"type\":\"result\",\"subtype\":\"success\",\"result\":\"still there\"}\n");
    assert_eq!(reader.finish(WELL, b"").text, "still there");

    for output in HarnessFormat::ALL {
        for junk in [
            "null\n",
            "[]\n",
            "{}\n",
            "{\"type\":7}\n",
            "\u{0}\n",
            "{\"type\":\"result\"}\n",
            "{\"type\":\"assistant\",\"message\":3}\n",
            "{\"event\":\"result\",\"result\":[]}\n",
        ] {
            let mut reader = HarnessReader::new(*output);
            reader.feed(junk.as_bytes());
            let ended = reader.finish(WELL, b"\xff\xfe");
            assert_eq!(ended.error.is_none(), *output == HarnessFormat::Text, "{output:?} {junk}");
        }
        let mut reader = HarnessReader::new(*output);
        reader.feed(b"\xff\xfe\n\"");
        reader.finish(HarnessExit::Signal(11), b"");
    }
}
