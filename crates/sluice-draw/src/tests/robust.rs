//! That nothing a definition says or contains can spoil a drawing: not its names, not its size, not its shape.

use proptest::prelude::*;

use super::all;
use crate::samples::*;
use crate::*;

fn hostile() -> Graph {
    let mut end = step("end", "a\"b]:;#<c>\u{1b}[31m", &[]);
    end.title = Some("1. `%%` $$x$$\n]]> --></svg>\u{202e}".into());
    let next = when(step("class", "any", &[0]), "end.result == '\"};<b>|]'");
    Graph::of_recipe(&recipe("style", vec![end, next]))
}

#[test]
fn nothing_breaks_out() {
    let graph = hostile();
    insta::assert_snapshot!(mermaid(&graph), @r#"
    ---
    title: "style"
    ---
    flowchart TD
        n0("<b>end</b><br/>1#46; #96;#37;#37;#96; #36;#36;x#36;#36; #93;#93;#62; #45;-#62;#60;/svg#62;<br/>agent · a#34;b#93;#58;#59;#35;#60;c#62; #91;31m")
        n1("<b>class</b><br/>agent")
        n0 -->|"end.result == '#34;#125;#59;#60;b#62;#124;#93;'"| n1
    "#);
    insta::assert_snapshot!(dot(&graph).lines().skip(4).collect::<Vec<_>>().join("\n"), @r##"
        n0 [label=<<b>end</b><br/><font point-size="10" color="#57606a">1. `%%` $$x$$ ]]&gt; --&gt;&lt;/svg&gt;</font><br/><font point-size="10" color="#57606a">agent · a&quot;b]:;#&lt;c&gt; [31m</font>>];
        n1 [label=<<b>class</b><br/><font point-size="10" color="#57606a">agent</font>>];
        n0 -> n1 [label="end.result == '\"};<b>|]'"];
    }
    "##);
    let picture = svg(&graph).unwrap();
    assert_eq!(picture.matches("</svg>").count(), 1);
    for drawn in [text(&graph, &TextStyle::default()), picture, mermaid(&graph), dot(&graph)] {
        assert!(!drawn.chars().any(|c| c.is_control() && c != '\n' || c == '\u{202e}'));
    }
}

#[test]
fn boxes_of_an_svg_do_not_overlap() {
    for graph in all() {
        let boxes = plan::GraphPlan::new(&graph, true).unwrap().boxes;
        for (index, a) in boxes.iter().enumerate() {
            for b in &boxes[index + 1..] {
                let apart = a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y;
                assert!(apart, "{a:?} {b:?} in {}", graph.title);
            }
        }
    }
}

/// A graph whose edges all lead from lower to higher numbers.
fn dag(nodes: usize, picks: &[(usize, usize)]) -> Graph {
    let mut needs: Vec<Vec<u32>> = vec![Vec::new(); nodes];
    for (a, b) in picks {
        let (low, high) = ((a % nodes).min(b % nodes), (a % nodes).max(b % nodes));
        if low != high && !needs[high].contains(&(low as u32)) {
            needs[high].push(low as u32);
        }
    }
    let steps = needs.iter().enumerate().map(|(index, needs)| {
        let plain = step(&format!("s{index}"), "any", needs);
        match (index % 7, needs.first()) {
            (3, Some(first)) => back(plain, *first, 2),
            (5, Some(first)) => when(plain, &format!("s{first}.result == 'PASS'")),
            _ => plain,
        }
    });
    Graph::of_recipe(&recipe("random", steps.collect()))
}

fn drawn(graph: &Graph) -> [Result<String, GraphTooLarge>; 4] {
    [Ok(text(graph, &TextStyle::default())), Ok(mermaid(graph)), Ok(dot(graph)), svg(graph)]
}

#[test]
fn large_graphs_are_drawn_or_refused() {
    let chain: Vec<(usize, usize)> = (1..10_000).map(|index| (index - 1, index)).collect();
    assert!(drawn(&dag(10_000, &chain)).iter().all(Result::is_ok), "as many as the checker lets pass");
    let refused = svg(&dag(10_001, &chain)).unwrap_err().to_string();
    insta::assert_snapshot!(refused, @"the graph is too large for a picture: 10001 nodes, and at most 10000 can be drawn");

    let star: Vec<(usize, usize)> = (1..1_000).map(|index| (0, index)).collect();
    assert!(drawn(&dag(1_000, &star)).iter().all(Result::is_ok));
    let funnel: Vec<(usize, usize)> = (1..1_000).flat_map(|index| [(index - 1, index), (index, 999)]).collect();
    assert!(drawn(&dag(1_000, &funnel)).iter().all(Result::is_ok));
    let dense: Vec<(usize, usize)> = (0..4_000).map(|index| (index * 7919 % 1_000, index * 104_729 % 997)).collect();
    assert!(drawn(&dag(1_000, &dense)).iter().all(Result::is_ok));
    let two: Vec<(usize, usize)> = (0..3_900).map(|index| (index % 500, 500 + index * 31 % 500)).collect();
    assert!(drawn(&dag(1_000, &two)).iter().all(Result::is_ok));
    let states: String = (0..1_000).map(|index| format!("s{index} ")).collect();
    let ring: String = (0..1_000).map(|index| format!("s{index} s{}\n", (index * 7 + 1) % 1_000)).collect();
    let ring = Graph::of_lifecycle(&lifecycle("ring", &states, &[0], &ring));
    assert!(drawn(&ring).iter().all(Result::is_ok));
}

#[test]
fn what_is_too_large_for_a_layout_is_drawn_on_a_grid() {
    let fan = (1..2_000).map(|index| (index % 3, 3 + index * 7 % 1_500)).chain([(0, 1), (1, 2)]).collect::<Vec<_>>();
    let graph = dag(1_600, &fan);
    let picture = svg(&graph).unwrap();
    assert_eq!(picture.matches("<rect class=\"box\"").count(), graph.nodes.len());
    assert_eq!(picture.matches("<path class=\"thin").count(), graph.edges.len());
    assert!(!picture.contains("NaN") && !picture.contains("inf"), "no box stands on another");
    assert_eq!(picture, svg(&graph).unwrap());
}

#[test]
fn titles_that_say_nothing_are_left_out_and_long_ones_are_cut() {
    for blank in ["", " ", "\n\t", "\u{200b}"] {
        let mut only = step("only", "any", &[]);
        only.title = Some(blank.into());
        let graph = Graph::of_recipe(&recipe("blank", vec![only]));
        assert_eq!(graph.nodes[0].details, ["agent"]);
        assert!(!dot(&graph).contains("></font>") && !mermaid(&graph).contains("<br/><br/>"));
    }
    for long in ["x".repeat(300_000), "\"&<".repeat(100_000), "\u{301}".repeat(100_000)] {
        let mut first = step("first", &long, &[]);
        first.title = Some(long.clone());
        let second = when(step("second", "any", &[0]), &format!("first.result == '{}'", &long[..3_000]));
        let graph = Graph::of_recipe(&recipe("long", vec![first, second]));
        for drawn in drawn(&graph).map(Result::unwrap) {
            // Graphviz has the narrowest limit: 16,384 bytes for a text.
            assert!(drawn.len() < 16_384, "{} bytes of {}", drawn.len(), &drawn[..10]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_graph_is_drawn_the_same_each_time(
        nodes in 2usize..300,
        picks in prop::collection::vec((0usize..300, 0usize..300), 0..500),
    ) {
        let graph = dag(nodes, &picks);
        prop_assert_eq!(drawn(&graph), drawn(&graph));
    }

    #[test]
    fn small_pictures_keep_their_width(
        nodes in 2usize..14,
        picks in prop::collection::vec((0usize..14, 0usize..14), 0..20),
        width in 40usize..140,
    ) {
        let drawn = text(&dag(nodes, &picks), &TextStyle { width, ..TextStyle::default() });
        prop_assert!(drawn.lines().all(|line| measure::width(line) <= width), "{}", drawn);
    }
}
