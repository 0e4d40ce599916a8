//! What the drawings look like.

mod robust;

use super::samples::*;
use super::*;

fn shown(graph: &Graph) -> String {
    text(graph, &TextStyle::default())
}

fn all() -> Vec<Graph> {
    let mut all = vec![Graph::of_lifecycle(&default_lifecycle()), Graph::of_lifecycle(&persistent_lifecycle())];
    all.extend([dev_task(), verify_pipeline(), diamond(), release()].iter().map(Graph::of_recipe));
    all
}

#[test]
fn the_default_lifecycle_as_text() {
    insta::assert_snapshot!(shown(&Graph::of_lifecycle(&default_lifecycle())), @"
    default · lifecycle · 8 states · 18 transitions · version 1

      ● pending ──▶ working ──▶ agent-review ──▶ reviewing ──▶ ◉ done
                      ▲                ╎
                      ╰╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╯

    ● pending
    ├──▶ working        acquire_workspace · spawn_agent worker
    ├──▶ clarification  acquire_workspace · spawn_agent clarification
    ╰──▶ ◉ cancelled

    ○ working   respawn: worker_respawn
    ├─ ## Handoff ──▶ agent-review   kill_session · review_round + 1, spawn_agent reviewer
    ├───────────────▶ clarification
    ├───────────────▶ stuck
    ├───────────────▶ ◉ cancelled    kill_session · release_workspace
    ╰╌ on exit: ## Handoff → agent-review; else crash, stuck after 2

    ● clarification
    ├╌╌↺ working
    ├──▶ ◉ cancelled  kill_session · release_workspace
    ╰╌ on exit: mark dead

    ● agent-review   respawn: reviewer
    ├─ ## Review: PASS ──────────────────────▶ reviewing    kill_session
    ├╌ ## Review: FAIL [review_round < 2] ╌╌╌↺ working      kill_session · spawn_agent worker_fix
    ├─ ## Review: FAIL [review_round >= 2] ──▶ stuck        kill_session
    ├────────────────────────────────────────▶ ◉ cancelled  kill_session · release_workspace
    ╰╌ on exit: ## Review: PASS → reviewing; ## Review: FAIL → working [review_round < 2], → stuck
       [review_round >= 2]; else crash, stuck after 2

    ● reviewing
    ├──▶ ◉ done       release_workspace · delete_remote_branch · spawn_next
    ├──▶ ◉ cancelled  kill_session · release_workspace
    ╰╌ on exit: mark dead

    ○ stuck   respawn: stuck_fix
    ├╌╌↺ working       spawn_agent stuck_fix
    ├╌╌↺ agent-review  review_round + 1, spawn_agent reviewer
    ├──▶ ◉ cancelled   kill_session · release_workspace
    ╰╌ on exit: mark dead

    ◉ done
    ◉ cancelled
    ");
}

#[test]
fn a_loop_with_its_bound_and_the_way_out() {
    insta::assert_snapshot!(shown(&Graph::of_recipe(&dev_task())), @"
    dev-task · recipe · 5 steps · version 1.0.0

                     ╭─────────────────╮
                     │      plan       │
                     │ agent · planner │
                     ╰────────┬────────╯
                              ▼
                     ╭─────────────────╮
                     │    implement    │
                     │ agent · worker  │
                     ╰────────┬────────╯
                              ▼
                    ╭───────────────────╮
                    │      review       │◄╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╮
                    │ agent · reviewer  │                  ╎
                    ╰─────────┬─────────╯                  ╎
                ╭─────────────┴─────────────╮              ╎
     review.result == 'PASS'     review.result == 'FAIL'   ╎
                ▼                           ▼              ╎
            ╭───────╮              ╭─────────────────╮     ╎
            │  pr   │              │       fix       │     ╎
            │ agent │              │ agent · worker  ├╌╌╌╌╌╯ again, at most 3×
            ╰───────╯              ╰─────────────────╯
    ");
}

#[test]
fn a_fork_and_its_join_side_by_side() {
    insta::assert_snapshot!(shown(&Graph::of_recipe(&verify_pipeline())), @"
    verify-pipeline · recipe · 7 steps · version 1

                  ╭───────────╮
                  │ elaborate │
                  │   agent   │
                  ╰─────┬─────╯
                        ▼
                 ╭─────────────╮
                 │ strategize  │
                 │    agent    │
                 ╰──────┬──────╯
                        ▼
                   ╭─────────╮
                   │ verify  │
                   │  agent  │
                   ╰────┬────╯
                        ▼
                    ╭───────╮
                    │ audit │
                    │ agent │
                    ╰───┬───╯
             ╭──────────┴──────────╮
             ▼                     ▼
    ╭─────────────────╮   ╭─────────────────╮
    │    advocate     │   │    criticize    │
    │ Argue for PASS  │   │ Argue for FAIL  │
    │      agent      │   │      agent      │
    ╰────────┬────────╯   ╰────────┬────────╯
             ╰──────────┬──────────╯
                        ▼
                    ╭───────╮
                    │ judge │
                    │ agent │
                    ╰───────╯
    ");
}

#[test]
fn a_line_never_suggests_a_need_that_is_not_there() {
    insta::assert_snapshot!(shown(&Graph::of_recipe(&diamond())), @"
    diamond · recipe · 5 steps · version 1

          ╭───────╮
          │   a   │
          │ agent │
          ╰───┬───╯
        ╭─────┴─────╮
        ▼           ▼
    ╭───────╮   ╭───────╮
    │   b   │   │   c   │
    │ agent │   │ agent │
    ╰───┬───╯   ╰───┬───╯
        │  ╭────────┴─╮
        ▼  ▼          ▼
      ╭───────╮   ╭───────╮
      │   d   │   │   e   │
      │ agent │   │ agent │
      ╰───────╯   ╰───────╯
    ");
}

#[test]
fn a_bit_of_everything_in_ascii() {
    let style = TextStyle { ascii: true, ..TextStyle::default() };
    let drawn = text(&Graph::of_recipe(&release()), &style);
    assert!(drawn.is_ascii());
    insta::assert_snapshot!(drawn, @"
    release - recipe - 6 steps - version 1

                                               +-------+
                                               | list  |<.........+
                                               | agent |          :
                                               +---+---+          :
                    +----------------------------+-+-----------+  :
                    v                            v             |  :
    +-------------------------------+   +-----------------+    |  :
    |             port              |   |      docs       |    |  :
    |   parallel-agents - worker    |   | agent - writer  |    |  :
    | for each ${list.output}, 4 at |   +--------+--------+    |  :
    |            a time             |            |             |  :
    +---------------+---------------+            |             |  :
                    |                            v             |  :
                    |           +---------------------------+  |  :
                    |           |          polish           |  |  :
                    |           |    agent-loop - writer    |  |  :
                    |           | until content, at most 3x |  |  :
                    |           +-------------+-------------+  |  :
                    +-----------------+-------+                |  :
                                      v                        |  :
                      +-------------------------------+        |  :
                      |             merge             |        |  :
                      |             agent             |        |  :
                      |      join: all_completed      |        |  :
                      |      when port.status ==      |        |  :
                      | 'completed' && polish.result  |        |  :
                      |           == 'done'           |        |  :
                      +---------------+-------------+-+        |  :
                                      +------+------:----------+  :
                                             |      +.............+ again, at most 2x
                                             v
                             +-------------------------------+
                             |            cleanup            |
                             |             agent             |
                             | always, even after a failure  |
                             +-------------------------------+
    ");
}

#[test]
fn what_is_too_wide_becomes_an_outline() {
    let style = TextStyle { width: 50, ..TextStyle::default() };
    insta::assert_snapshot!(text(&Graph::of_recipe(&dev_task()), &style), @"
    dev-task · recipe · 5 steps · version 1.0.0

    ○ plan   agent · planner
    ╰──▶ implement

    ○ implement   agent · worker
    ╰──▶ review

    ○ review   agent · reviewer
    ├─ review.result ==
    │  'FAIL' ────────────▶ fix
    ╰─ review.result ==
       'PASS' ────────────▶ pr

    ○ fix   agent · worker
    ╰╌ again, at most 3× ╌╌↺ review

    ○ pr   agent
    ");
}

#[test]
fn long_labels_go_on_in_the_next_line() {
    let guard = "review_round < 2 && crash_count == 0 && patience > 10 && !(urgency >= 3)";
    let lines = format!("a b | Handoff | {guard} | acquire release kill next delete\na c | | | kill");
    let style = TextStyle { width: 64, ..TextStyle::default() };
    insta::assert_snapshot!(text(&Graph::of_lifecycle(&lifecycle("long", "a b+ c+", &[0], &lines)), &style), @"
    long · lifecycle · 3 states · 2 transitions · version 1

    ● a
    ├─ ## Handoff [review_round < 2
    │  && crash_count == 0 &&
    │  patience > 10 && !(urgency
    │  >= 3)] ────────────────────────▶ ◉ b
    │     acquire_workspace · release_workspace · kill_session ·
    │     spawn_next · delete_remote_branch
    ╰─────────────────────────────────▶ ◉ c
          kill_session

    ◉ b
    ◉ c
    ");
}

#[test]
fn independent_steps_stand_in_rows() {
    let steps = ["lint", "test", "build", "docs", "audit"].map(|name| step(name, "any", &[])).to_vec();
    insta::assert_snapshot!(shown(&Graph::of_recipe(&recipe("checks", steps))), @"
    checks · recipe · 5 steps · version 1

    ╭───────╮   ╭───────╮   ╭───────╮   ╭───────╮
    │ lint  │   │ test  │   │ build │   │ docs  │
    │ agent │   │ agent │   │ agent │   │ agent │
    ╰───────╯   ╰───────╯   ╰───────╯   ╰───────╯

    ╭───────╮
    │ audit │
    │ agent │
    ╰───────╯
    ");
}

#[test]
fn lifecycles_in_mermaid() {
    insta::assert_snapshot!(mermaid(&Graph::of_lifecycle(&default_lifecycle())), @r#"
    ---
    title: "default"
    ---
    stateDiagram-v2
        direction TB
        state "pending" as s0
        state "clarification" as s1
        state "working" as s2
        s2 : respawn#58; worker_respawn
        state "agent-review" as s3
        s3 : respawn#58; reviewer
        state "reviewing" as s4
        state "stuck" as s5
        s5 : respawn#58; stuck_fix
        state "done" as s6
        state "cancelled" as s7
        [*] --> s0
        [*] --> s1
        [*] --> s3
        [*] --> s4
        s0 --> s2
        s0 --> s1
        s0 --> s7
        s1 --> s2
        s1 --> s7
        s2 --> s3 : #35;#35; Handoff
        s2 --> s1
        s2 --> s5
        s2 --> s7
        s3 --> s4 : #35;#35; Review#58; PASS
        s3 --> s2 : #35;#35; Review#58; FAIL #91;review_round #60; 2#93;
        s3 --> s5 : #35;#35; Review#58; FAIL #91;review_round #62;= 2#93;
        s3 --> s7
        s4 --> s6
        s4 --> s7
        s5 --> s2
        s5 --> s3
        s5 --> s7
        s6 --> [*]
        s7 --> [*]
        note right of s1 : on exit#58; mark dead
        note right of s2 : on exit#58; #35;#35; Handoff → agent-review#59; else crash, stuck after 2
        note right of s3 : on exit#58; #35;#35; Review#58; PASS → reviewing#59; #35;#35; Review#58; FAIL → working #91;review_round #60; 2#93;, → stuck #91;review_round #62;= 2#93;#59; else crash, stuck after 2
        note right of s4 : on exit#58; mark dead
        note right of s5 : on exit#58; mark dead
    "#);
}

#[test]
fn recipes_in_mermaid() {
    insta::assert_snapshot!(mermaid(&Graph::of_recipe(&dev_task())), @r#"
    ---
    title: "dev-task"
    ---
    flowchart TD
        n0("<b>plan</b><br/>agent · planner")
        n1("<b>implement</b><br/>agent · worker")
        n2("<b>review</b><br/>agent · reviewer")
        n3("<b>fix</b><br/>agent · worker")
        n4("<b>pr</b><br/>agent")
        n0 --> n1
        n1 --> n2
        n2 -->|"review.result == 'FAIL'"| n3
        n3 -.->|"again, at most 3×"| n2
        n2 -->|"review.result == 'PASS'"| n4
    "#);
}

#[test]
fn recipes_for_graphviz() {
    insta::assert_snapshot!(dot(&Graph::of_recipe(&dev_task())), @r##"
    digraph "dev-task" {
        graph [rankdir=TB, bgcolor="transparent", fontname="Helvetica,Arial,sans-serif", fontsize=14, nodesep=0.5, ranksep=0.55, labelloc=t];
        node [shape=box, style="rounded,filled", fillcolor="#f6f8fa", color="#57606a", fontcolor="#1f2328", fontname="Helvetica,Arial,sans-serif", fontsize=12, margin="0.18,0.09"];
        edge [color="#57606a", fontcolor="#57606a", fontname="Helvetica,Arial,sans-serif", fontsize=10, arrowsize=0.7];
        n0 [label=<<b>plan</b><br/><font point-size="10" color="#57606a">agent · planner</font>>];
        n1 [label=<<b>implement</b><br/><font point-size="10" color="#57606a">agent · worker</font>>];
        n2 [label=<<b>review</b><br/><font point-size="10" color="#57606a">agent · reviewer</font>>];
        n3 [label=<<b>fix</b><br/><font point-size="10" color="#57606a">agent · worker</font>>];
        n4 [label=<<b>pr</b><br/><font point-size="10" color="#57606a">agent</font>>];
        n0 -> n1;
        n1 -> n2;
        n2 -> n3 [label="review.result == 'FAIL'"];
        n3 -> n2 [label="again, at most 3×", style=dashed];
        n2 -> n4 [label="review.result == 'PASS'"];
    }
    "##);
}

#[test]
fn a_picture_inside_a_page_has_marks_and_no_style_of_its_own() {
    let graph = Graph::of_recipe(&diamond());
    let mark = |node: &NodeBox| NodeMark {
        class: "running",
        link: Some(format!("/runs/k?step=\"{}\"&<b>", node.name)),
        about: "running <now>".to_owned(),
    };
    let marks: Vec<NodeMark> = graph.nodes.iter().map(mark).collect();
    let drawn = inline_svg(&graph, &marks).expect("it is small");
    assert!(!drawn.contains("<style") && !drawn.contains("style="), "{drawn}");
    assert_eq!(drawn.matches("<g class=\"node running\"><a href=").count(), graph.nodes.len());
    assert!(drawn.contains("&quot;&amp;&lt;b&gt;\"") && drawn.contains("running &lt;now&gt;"), "{drawn}");
    // Without marks it is the picture that stands alone, but for what stands around it.
    let plain = inline_svg(&graph, &[]).expect("it is small");
    let alone = svg(&graph).expect("it is small");
    let inner = |text: &str| text.split("<path").skip(1).collect::<Vec<_>>().join("").replace("</g>\n</svg>\n", "");
    assert_eq!(inner(&plain), inner(&alone));
}
