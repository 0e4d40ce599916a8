//! The task machine, from outside: scripts and what the machine answers to them, the pages drawn from its law, and
//! random inputs.
//!
//! A script is a file in `task/plays/`, named after the rule that it shows. Lines with `>` are said to the machine, the
//! lines below are its answer. `cargo xtask update` writes the answers anew; read the difference before you commit it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]
#![expect(clippy::disallowed_methods, reason = "scripts and pages are files")]

#[path = "task/play.rs"]
mod play;
#[path = "task/random.rs"]
mod random;
#[path = "task/show.rs"]
mod show;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use sluice_core::lifecycle::StateId;
use sluice_core::machine::Moment;
use sluice_core::task::event::TaskCreation;
use sluice_core::task::law::{LawRow, page};
use sluice_core::task::state::TaskSubject;
use sluice_core::task::{TaskAsker, TaskKey, TaskState, frontmatter};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/task/plays")
}

/// Compares a file with what it should say, or writes it if this variable is set.
fn compare(path: &Path, should: &str, update: &str) {
    if std::env::var_os(update).is_some() {
        return std::fs::write(path, should).unwrap();
    }
    let is = std::fs::read_to_string(path).unwrap_or_default();
    if is != should {
        let at = is.lines().zip(should.lines()).take_while(|(is, should)| is == should).count();
        let line = |text: &str| text.lines().nth(at).unwrap_or("(the end)").to_owned();
        panic!(
            "{}:{}:\n  it says    {}\n  it should  {}\n`cargo xtask update` writes it anew",
            path.display(),
            at + 1,
            line(&is),
            line(should)
        );
    }
}

fn play(name: &str) {
    let path = folder().join(format!("{name}.play"));
    let script = std::fs::read_to_string(&path).unwrap();
    compare(&path, &play::play(&script).text, "UPDATE_EXPECTED");
}

/// A text with a variable that the machine does not know would have a hole in it.
#[test]
fn the_machine_knows_every_variable() {
    let lifecycle = play::lifecycle("default");
    let created = TaskCreation {
        status: StateId(0),
        about: TaskSubject::default(),
        by: TaskAsker::Person,
        at: Moment(0),
        seen: BTreeMap::new(),
        sessions: 0,
    };
    let known = frontmatter(&lifecycle, &TaskState::created(&created));
    let unknown: Vec<&str> = TaskKey::variables().filter(|word| !known.contains_key(*word)).collect();
    assert!(unknown.is_empty(), "`TaskKey::value` in task/keys.rs has nothing to say of the variables {unknown:?}");
}

macro_rules! plays {
    ($($name:ident,)+) => {
        const PLAYS: &[&str] = &[$(stringify!($name),)+];
        $(#[test] fn $name() { play(stringify!($name)); })+
    };
}

plays! {
    the_same_state_has_the_same_attention,
    a_failed_hook_is_done_again,
    a_mark_hides_nothing_that_blocks_more,
    a_merge_takes_what_was_judged_or_nothing,
    a_pass_that_was_planted_counts_in_no_round,
    a_fail_is_no_licence,
    spawn_takes_the_first_transition_that_starts_an_agent,
    an_empty_summary_goes_to_clarification,
    created_elsewhere_it_gets_the_agent_of_that_state,
    created_in_review_beside_nobody,
    created_where_no_transition_starts_an_agent_the_respawn_prompt_serves,
    created_in_reviewing_it_gets_no_agent,
    only_the_first_states_can_be_created,
    with_a_full_pool_the_task_waits,
    a_workspace_that_cannot_be_bound_leaves_the_agent_unstarted,
    default_from_start_to_merge,
    two_failed_reviews_and_the_task_is_stuck,
    guard_before_gate,
    gates_say_what_is_missing,
    moves_that_are_not_in_the_table_are_refused,
    a_verdict_is_not_taken_from_the_worker,
    a_verdict_may_be_a_persons,
    who_may_take_a_transition_without_a_gate,
    a_session_may_move_its_own_task_only,
    an_old_verdict_does_not_win_over_a_new_one,
    a_worker_that_dies_after_a_fail_does_not_advance_on_its_old_handoff,
    a_worker_that_dies_with_its_handoff_is_advanced,
    a_session_that_ends_itself_loses_no_hook,
    a_session_asks_again_because_it_did_not_hear,
    the_monitor_comes_after_a_command,
    an_agent_that_exits_is_noticed_whatever_its_terminal_does,
    the_round_grows_before_the_reviewer_starts,
    two_crashes_and_the_task_is_stuck,
    getting_stuck_starts_stuck_fix,
    the_worker_itself_says_that_it_is_stuck,
    without_a_state_stuck_the_task_is_marked,
    a_crashed_reviewer_is_started_again,
    later_crashes_remain,
    two_open_moves_take_a_crash_away_once,
    two_reviews_in_the_same_words,
    beside_a_living_worker_an_old_review_needs_new_words,
    a_gate_that_fails_while_advancing_is_a_crash,
    the_worker_is_not_watched_during_the_review,
    a_late_reviewer_is_not_watched_by_the_next_state,
    the_worker_is_told_whether_a_review_failed_or_a_person_asks,
    without_words_or_prompt_of_its_own_a_lifecycle_gets_ours,
    a_failed_hook_marks_the_task_and_the_rest_goes_on,
    a_push_that_fails_leaves_the_merge,
    a_session_that_cannot_be_ended_keeps_its_place,
    a_session_that_ends_while_it_is_being_ended,
    a_session_that_cannot_be_started,
    a_session_that_ends_before_its_start_is_reported,
    a_living_session_is_ended_before_the_next_starts,
    respawn_in_seven_steps,
    a_stale_verdict_is_not_merged,
    cancelled_while_its_agent_was_being_started,
    every_row_of_the_persistent_table,
    moves_that_the_persistent_table_lacks,
    a_finished_task_accepts_nothing,
    late_outcomes_change_nothing,
    a_restarted_engine_adopts_what_lives,
    a_waiting_task_answers,
    a_settling_task_answers,
    a_forged_status_has_no_effect,
    every_other_hook,
    a_value_that_no_command_can_be_given_fails_its_hook,
    a_move_waits_for_its_turn_but_not_behind_too_many,
    a_state_starts_a_run_and_follows_its_end,
    a_run_that_fails_leads_elsewhere,
    a_run_whose_end_leads_nowhere_marks_the_task,
    a_run_whose_move_is_refused_marks_the_task,
    a_run_is_cancelled_when_its_state_is_left,
    a_run_judges_the_commit_that_it_was_started_on,
    a_run_that_has_not_completed_is_no_licence,
    neither_a_run_nor_a_reviewer_makes_up_for_the_other,
    a_run_that_was_being_started_is_cancelled_too,
    a_run_that_is_not_started_any_more,
    a_run_that_cannot_be_started_is_started_again,
    a_run_that_cannot_be_cancelled_keeps_the_next_from_starting,
    a_late_end_of_a_run_is_ignored,
    a_failed_run_that_was_opened_again,
    created_where_a_run_starts,
    a_reviewer_that_was_killed_has_not_judged,
    a_reviewers_own_word_counts_more_than_the_file,
    a_verdict_that_was_asked_for_too_early,
    a_worktree_is_lent_on_and_taken_up_again,
    what_is_in_use_or_at_risk_is_not_lent_on,
    a_task_that_waits_for_a_worktree_can_move_on,
    what_only_a_person_can_move_is_raised,
    an_agent_that_waits_is_heard_of,
    an_agent_that_waits_is_replaced_by_a_person,
    an_answer_is_typed_to_the_agent_that_waits,
    a_screen_raises_and_never_clears,
    a_signal_about_another_session_says_nothing,
}

#[test]
fn every_script_is_played() {
    let files: BTreeSet<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| name.strip_suffix(".play").map(str::to_owned))
        .collect();
    let played: BTreeSet<String> = PLAYS.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(files, played, "`plays!` lists the scripts in tests/task/plays/");
}

#[test]
fn every_row_of_the_law_is_taken_by_a_script() {
    let mut taken = BTreeSet::new();
    for name in PLAYS {
        let script = std::fs::read_to_string(folder().join(format!("{name}.play"))).unwrap();
        taken.extend(play::play(&script).rows);
    }
    let missing: Vec<String> =
        LawRow::all().into_iter().filter(|row| !taken.contains(row)).map(|row| format!("{row:?}")).collect();
    assert!(missing.is_empty(), "no script takes these rows:\n{}", missing.join("\n"));
    let all: BTreeSet<LawRow> = LawRow::all().into_iter().collect();
    let impossible: Vec<_> = taken.difference(&all).collect();
    assert!(impossible.is_empty(), "rows that cannot happen, and did: {impossible:?}");
}

#[test]
fn the_page_says_what_the_code_does() {
    compare(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/machines/task.md"), &page(), "UPDATE_DOCS");
}
