//! Any sequence of creating, sharing, opening, putting, closing, freeing, forking and dying, against a model of what
//! must hold: `sequences/model.rs`. `PROPTEST_CASES` says how many sequences are tried.
mod common;
#[path = "sequences/model.rs"]
mod model;
#[path = "sequences/world.rs"]
mod world;
use common::{ur::Kind, *};
use model::{Model, Step};
use proptest::{
    prelude::*,
    strategy::Union,
    test_runner::{Config, TestError, TestRunner},
};
use std::{cell::Cell, ops::Range, time::Duration};
use world::World;

#[test]
fn role() {
    common::role();
}

/// Steps of one process, or of several, which also fork and die.
fn step(is_alone: bool) -> impl Strategy<Value = Step> {
    let kind = prop_oneof![Just(Kind::Memory), Just(Kind::Physical), Just(Kind::Event)];
    let kind_and_size = (kind, 0..3_u8);
    let by = || 0..if is_alone { 1_u8 } else { 3 };
    let one = || 0..32_u8;
    let create = |(by, (kind, size))| Step::Create { by, kind, size };
    let mut steps = vec![
        (5, (by(), kind_and_size).prop_map(create).boxed()),
        (3, (one(), one()).prop_map(|(holder, byte)| Step::Write { holder, byte }).boxed()),
        (6, (one(), 0..8_u8).prop_map(|(holder, part)| Step::Get { holder, part }).boxed()),
        (3, one().prop_map(|ticket| Step::Put { ticket }).boxed()),
        (9, (one(), by()).prop_map(|(ticket, by)| Step::Open { ticket, by }).boxed()),
        (6, (one(), by()).prop_map(|(ticket, by)| Step::Replay { ticket, by }).boxed()),
        (4, one().prop_map(|opened| Step::Close { opened }).boxed()),
        (4, one().prop_map(|made| Step::Free { made }).boxed()),
        (4, one().prop_map(|made| Step::Again { made }).boxed()),
        (3, one().prop_map(|event| Step::Signal { event }).boxed()),
        (2, by().prop_map(|by| Step::Gate { by }).boxed()),
        (2, by().prop_map(|by| Step::Ungate { by }).boxed()),
        (2, one().prop_map(|holder| Step::Misuse { holder }).boxed()),
    ];
    if !is_alone {
        steps.push((4, (one(), by()).prop_map(|(ticket, by)| Step::Fork { ticket, by }).boxed()));
        steps.push((2, by().prop_map(|by| Step::Kill { by }).boxed()));
    }
    Union::new_weighted(steps)
}

/// How many sequences are tried.
fn cases(unless_asked: u32) -> u32 {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    asked.unwrap_or(unless_asked)
}
/// Tries sequences of so many steps; the shortest that fails is shown as what was said to whom.
#[track_caller]
fn try_all(cases: u32, steps: Range<usize>, world: impl Fn() -> World, is_alone: bool) {
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_time: 15_000, // milliseconds
        ..Config::default()
    };
    let patience = Cell::new(PATIENCE / 6);
    let steps = proptest::collection::vec(step(is_alone), steps);
    let tried = TestRunner::new(config).run(&steps, |steps| {
        let mut model = Model::new(world(), patience.get());
        let went = steps.iter().try_for_each(|step| model.take(step)).and_then(|()| model.end());
        went.map_err(|why| {
            patience.set(PATIENCE / 60); // or there is no time to look for a shorter one
            TestCaseError::fail(format!("{why}, after\n{}", model.world.script()))
        })
    });
    match tried {
        Ok(()) => {}
        Err(TestError::Fail(why, steps)) => panic!("{} steps: {why}", steps.len()),
        Err(why) => panic!("{why}"),
    }
}

#[test]
fn no_sequence_within_a_process_breaks_the_model() {
    let cases = cases(40);
    let patience = PATIENCE + Duration::from_secs(cases.into());
    alone_within(patience, || try_all(cases, 200..400, World::of_one, true));
}
#[test]
fn no_sequence_among_processes_that_fork_and_die_breaks_the_model() {
    try_all(cases(100), 10..40, || World::of_peers(3), false);
}
