// SPDX-License-Identifier: Apache-2.0
//! Segments on the wire: what goes in comes out, and broken bytes are refused with a reason.

use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr};
use tcp::segment::Ecn;
use tcp::{reset_for, Flags, Options, ParseError, SackBlocks, Segment};

const SRC: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 1, 1));
const DST: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 3, 3));
const PROTOCOL_TCP: u8 = 6;

fn encoded(segment: &Segment) -> Vec<u8> {
    let mut bytes = vec![0xaa; segment.wire_len()];
    segment.encode(SRC, DST, &mut bytes);
    bytes
}

#[test]
fn a_syn_byte_by_byte() {
    let options = Options {
        mss: Some(960),
        window_scale: Some(7),
        sack_permitted: true,
        ..Options::default()
    };
    let syn = Segment {
        src_port: 10_000,
        dst_port: 5001,
        seq: 1,
        flags: Flags::SYN,
        window: 65_535,
        options,
        ..Segment::default()
    };
    let mut wanted = vec![
        0x27, 0x10, 0x13, 0x89, 0, 0, 0, 1, 0, 0, 0, 0, 0x80, 0x02, 0xff, 0xff, 0, 0, 0, 0,
    ];
    wanted.extend([2, 4, 0x03, 0xc0, 1, 3, 3, 7, 1, 1, 4, 2]);
    let bytes = encoded(&syn);
    wanted[16..18].copy_from_slice(&bytes[16..18]);
    assert_eq!(bytes, wanted);
    // By hand: the sum of all words and of the pseudo header is 0xffff.
    let words = bytes
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
    let mut sum = words.sum::<u32>() + 0x0a00 + 0x0101 + 0x0a00 + 0x0303 + 6 + 32;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    assert_eq!(sum, 0xffff);
}

fn any_segment() -> impl Strategy<Value = Segment> {
    let numbers = (
        any::<u16>(),
        any::<u16>(),
        any::<u32>(),
        any::<u32>(),
        any::<u8>(),
        any::<u16>(),
        0u32..3000,
    );
    let options = (
        prop::option::of(any::<u16>()),
        prop::option::of(0u8..15),
        any::<bool>(),
        prop::option::of(any::<(u32, u32)>()),
        prop::collection::vec(any::<(u32, u32)>(), 0..5),
        prop::option::of(any::<u32>()),
    );
    (numbers, options).prop_map(
        |(numbers, (mss, window_scale, sack_permitted, timestamps, blocks, ena))| {
            let (src_port, dst_port, seq, ack, flags, window, payload_len) = numbers;
            let mut options = Options {
                mss,
                window_scale,
                sack_permitted,
                timestamps,
                ena,
                sack: SackBlocks::default(),
            };
            options.sack = blocks.into_iter().take(options.sack_room()).collect();
            Segment {
                src_port,
                dst_port,
                seq,
                ack,
                flags: Flags::from_bits(flags),
                window,
                options,
                payload_len,
                ecn: Ecn::NotEct,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_goes_in_comes_out(segment in any_segment()) {
        prop_assert!(segment.header_len() <= 60);
        prop_assert_eq!(Segment::parse(SRC, DST, &encoded(&segment)), Ok(segment));
    }

    #[test]
    fn any_flipped_bit_is_found(segment in any_segment(), bit in any::<prop::sample::Index>()) {
        let mut bytes = encoded(&segment);
        let bit = bit.index(bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        let refused = matches!(Segment::parse(SRC, DST, &bytes), Err(ParseError::BadChecksum { .. }));
        prop_assert!(refused);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let mut bytes = bytes;
        let _ = Segment::parse(SRC, DST, &bytes);
        if bytes.len() >= 20 { // the same with a checksum that is right
            bytes[16..18].fill(0);
            let checksum = checksum::Sum::pseudo_header(SRC, DST, PROTOCOL_TCP, bytes.len()).plus(&bytes).finish();
            bytes[16..18].copy_from_slice(&checksum.to_be_bytes());
            let _ = Segment::parse(SRC, DST, &bytes);
        }
    }
}

#[test]
fn refusals_give_their_reason() {
    assert_eq!(
        Segment::parse(SRC, DST, &[0; 19]),
        Err(ParseError::TooShort { len: 19 })
    );
    let fixed = |mut bytes: Vec<u8>| {
        bytes[16..18].fill(0);
        let checksum = checksum::Sum::pseudo_header(SRC, DST, PROTOCOL_TCP, bytes.len())
            .plus(&bytes)
            .finish();
        bytes[16..18].copy_from_slice(&checksum.to_be_bytes());
        Segment::parse(SRC, DST, &bytes)
    };
    let options = Options {
        mss: Some(1),
        ..Options::default()
    };
    let bytes = encoded(&Segment {
        options,
        ..Segment::default()
    });
    let mut offset = bytes.clone();
    offset[12] = 0xf0;
    assert_eq!(
        fixed(offset),
        Err(ParseError::BadDataOffset {
            header_len: 60,
            len: 24
        })
    );
    let mut option = bytes;
    option[21] = 9;
    assert_eq!(
        fixed(option),
        Err(ParseError::BadOption { kind: 2, len: 9 })
    );
}

#[test]
fn a_reset_answers_what_it_was_sent_for() {
    let data = Segment {
        src_port: 1,
        dst_port: 2,
        seq: 100,
        ack: 700,
        flags: Flags::ACK,
        payload_len: 50,
        ..Segment::default()
    };
    let reset = reset_for(&data).expect("no RST itself");
    assert_eq!(
        (reset.src_port, reset.dst_port, reset.seq, reset.flags),
        (2, 1, 700, Flags::RST)
    );
    let syn = Segment {
        flags: Flags::SYN,
        seq: 100,
        ..Segment::default()
    };
    let reset = reset_for(&syn).expect("no RST itself");
    assert_eq!((reset.ack, reset.flags), (101, Flags::RST | Flags::ACK));
    assert_eq!(reset_for(&reset), None);
}
