// SPDX-License-Identifier: Apache-2.0
//! libFuzzer on the target that the environment variable `FUZZ_TARGET` names: `make fuzz`. Inputs are files of the corpus.

#![no_main]

use std::cell::RefCell;

use fuzz::input::{mutate, Input};
use fuzz::memory::Counting;
use fuzz::targets::{self, Target};
use libfuzzer_sys::{fuzz_crossover, fuzz_mutator, fuzz_target};
use rand::rngs::SmallRng;
use rand::SeedableRng;

#[global_allocator]
static MEMORY: Counting = Counting;

thread_local! {
    static TARGET: RefCell<Target> = RefCell::new(target());
}

fn target() -> Target {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    if !targets::names().contains(&&*name) {
        let names = targets::names().join(", ");
        eprintln!("there is no fuzz target `{name}`; there are {names}");
        std::process::exit(2);
    }
    targets::make(&name)
}

/// What is no input is the first document as it is.
fn read(data: &[u8]) -> Input {
    serde_json::from_slice(data).unwrap_or_default()
}

/// Writes an input with as many of its edits as fit; 0 bytes where not even its name does.
fn write(mut input: Input, data: &mut [u8]) -> usize {
    loop {
        let text = serde_json::to_vec(&input).expect("an input is JSON");
        if let Some(room) = data.get_mut(..text.len()) {
            room.copy_from_slice(&text);
            return text.len();
        }
        if input.edits.pop().is_none() {
            return 0;
        }
    }
}

fuzz_target!(
    init: TARGET.with(|_| ()), // an unknown target is no finding
    |data: &[u8]| {
        let done = TARGET.with_borrow_mut(|target| target.execute(&read(data)));
        done.unwrap_or_else(|finding| panic!("{finding}"));
    }
);

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let mut random = SmallRng::seed_from_u64(seed.into());
    let input = read(&data[..size]);
    let next = TARGET.with_borrow(|target| mutate(&input, &target.places, &mut random));
    write(next, &mut data[..max_size])
});

fuzz_crossover!(|one: &[u8], other: &[u8], out: &mut [u8], _seed: u32| {
    write(read(one).joined(read(other)), out)
});
