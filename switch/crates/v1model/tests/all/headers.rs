// SPDX-License-Identifier: Apache-2.0
//! Parser and deparser at their limits: frames cut anywhere, stacks, varbit fields, unions.

use v1model::{Effects, Pipeline, Std};

/// Numbers of core.p4's errors.
const NO_ERROR: u64 = 0;
const PACKET_TOO_SHORT: u64 = 1;
const STACK_OUT_OF_BOUNDS: u64 = 3;
const HEADER_TOO_SHORT: u64 = 4;

fn pipeline() -> Pipeline {
    Pipeline::from_json(include_bytes!("../p4/compiled/headers.json")).unwrap()
}

/// The frame that leaves, and the parser's error.
fn forward(pipeline: &mut Pipeline, frame: &[u8]) -> (Vec<u8>, u64) {
    let (mut packet, mut fx) = (pipeline.new_packet(), Effects::new());
    packet.load(frame);
    pipeline.reset(&mut packet);
    pipeline.parse(&mut packet, &mut fx);
    pipeline.ingress(&mut packet, 0, &mut fx);
    let error = pipeline.std_get(&packet, Std::ParserError);
    assert_eq!(
        pipeline.std_get(&packet, Std::EgressSpec),
        if error == NO_ERROR { 1 } else { 2 }
    );
    pipeline.egress(&mut packet, 0, &mut fx);
    pipeline.deparse(&mut packet);
    (packet.frame().to_vec(), error)
}

#[test]
fn frames_cut_anywhere_come_out_as_they_went_in() {
    let mut pipeline = pipeline();
    for kind in 0..=255u8 {
        let mut whole = vec![kind, 0];
        whole.extend((0..40).map(|i| if kind == 2 && i == 0 { 7 } else { i * 5 + 1 }));
        for length in 0..=whole.len() {
            // What was extracted is emitted, the rest is payload: unchanged, whatever the parser thought of it.
            let (out, error) = forward(&mut pipeline, &whole[..length]);
            assert_eq!(out, &whole[..length], "kind {kind}, {length} bytes");
            let needed = match kind {
                1 => 3,
                2 => 2 + 9,
                3 => 4,
                4 => 2 + 17,
                k if k & 0x0d == 5 => 2 + 3,
                _ => 2,
            };
            let expected = if length < needed {
                PACKET_TOO_SHORT
            } else {
                NO_ERROR
            };
            assert_eq!(error, expected, "kind {kind}, {length} bytes");
        }
    }
}

#[test]
fn a_stack_that_is_full_is_an_error() {
    let mut pipeline = pipeline();
    let (out, error) = forward(&mut pipeline, &[1, 0, 2, 4, 6, 8, 9]);
    assert_eq!(
        (out.as_slice(), error),
        ([1, 0, 2, 4, 6, 8, 9].as_slice(), STACK_OUT_OF_BOUNDS)
    );
    assert_eq!(forward(&mut pipeline, &[1, 0, 2, 4, 7, 8]).1, NO_ERROR);
}

#[test]
fn stacks_are_pushed_and_popped_at_the_front() {
    let mut pipeline = pipeline();
    assert_eq!(
        forward(&mut pipeline, &[1, 1, 2, 4, 7, 99]).0,
        [1, 1, 4, 7, 99]
    );
    assert_eq!(
        forward(&mut pipeline, &[1, 2, 2, 7, 99]).0,
        [1, 2, 0xaa, 2, 7, 99]
    );
    // The last element of a full stack is lost.
    assert_eq!(
        forward(&mut pipeline, &[1, 2, 2, 4, 7, 99]).0,
        [1, 2, 0xaa, 2, 4, 99]
    );
    // Popping an empty stack changes nothing.
    assert_eq!(forward(&mut pipeline, &[9, 1, 99]).0, [9, 1, 99]);
}

#[test]
fn a_varbit_field_has_any_length_up_to_its_own() {
    let mut pipeline = pipeline();
    for bytes in 0..=8u8 {
        let mut frame = vec![2, 0, bytes];
        frame.extend((0..=bytes).map(|i| 0xf0 | i));
        frame.push(0x77);
        assert_eq!(
            forward(&mut pipeline, &frame),
            (frame.clone(), NO_ERROR),
            "{bytes} bytes"
        );
    }
    let frame: Vec<u8> = [2, 0, 9].into_iter().chain(20..40).collect();
    assert_eq!(
        forward(&mut pipeline, &frame),
        (frame.clone(), HEADER_TOO_SHORT)
    );
}

#[test]
fn a_member_of_a_union_that_becomes_valid_replaces_the_other() {
    let mut pipeline = pipeline();
    let (out, _) = forward(&mut pipeline, &[3, 3, 0xaa, 0xbb, 0xcc]);
    let large: Vec<u8> = (1..=0x11).collect();
    assert_eq!(out, [&[3, 3], large.as_slice(), &[0xcc]].concat());
    // Longer than the room in front of the frame, again and again in one packet.
    for _ in 0..50 {
        assert_eq!(
            forward(&mut pipeline, &[9, 3]).0,
            [&[9, 3], large.as_slice()].concat()
        );
    }
}

#[test]
fn what_cannot_be_run_is_refused_with_its_place() {
    let good = include_str!("../p4/compiled/headers.json");
    for (from, to, place, what) in [
        (
            "\"op\" : \"add_header\"",
            "\"op\" : \"add_hat\"",
            "/primitives/1/op",
            "there is no primitive `add_hat`",
        ),
        (
            "\"op\" : \"extract_VL\"",
            "\"op\" : \"extrude\"",
            "/parser_ops/",
            "there is no parser operation `extrude`",
        ),
        (
            "\"header_type\" : \"label_t\"",
            "\"header_type\" : \"lable_t\"",
            "/header_type",
            "there is no header type `lable_t`",
        ),
        (
            "\"init_state\" : \"start\"",
            "\"init_state\" : \"stop\"",
            "/parsers/0/init_state",
            "there is no parser state `stop`",
        ),
    ] {
        assert!(good.contains(from), "{from}");
        let error = Pipeline::from_json(good.replace(from, to).as_bytes())
            .err()
            .expect("refused");
        assert!(error.path.contains(place), "{error}");
        assert!(error.message.starts_with(what), "{error}");
    }
    let error = Pipeline::from_json(b"{").err().unwrap();
    assert!(error.to_string().starts_with("/: not JSON: "), "{error}");
}
