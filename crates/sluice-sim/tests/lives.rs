//! Simulated lives: fixed ones, a few that nobody has seen before, and broken engines that must be caught.

use sluice_sim::{SimBug, SimLife};

fn live(seed: u64) {
    if let Err(wrong) = SimLife::live(seed, None) {
        panic!("{}\nseed {seed}: {}\nlive it again: cargo xtask sim --seed {seed}", wrong.script, wrong.what);
    }
}

#[test]
fn fixed_lives() {
    (0..300).for_each(live);
}

#[test]
fn more_fixed_lives() {
    (1_000..1_100).for_each(live);
}

#[test]
fn a_life_can_be_lived_again() {
    let tell = |seed| SimLife::tell(seed, None).map_err(|wrong| wrong.what);
    for seed in 0..20 {
        assert_eq!(tell(seed), tell(seed));
    }
}

#[test]
fn broken_engines_are_caught() {
    for bug in SimBug::ALL {
        let caught = (0..2000).find(|seed| SimLife::live(*seed, Some(bug)).is_err());
        assert!(caught.is_some(), "{bug:?} was not caught in 2,000 lives");
    }
}
