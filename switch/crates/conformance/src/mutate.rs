// SPDX-License-Identifier: Apache-2.0
//! Packets made from others: bits and bytes changed, cut, longer, spliced. A comparison makes them from a test's own, by fixed
//! seeds.

use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rand_xoshiro::SplitMix64;

use crate::stf::{Command, Statement};

/// Frames are cut at this many bytes.
const LONGEST: usize = 600;
/// Values at which programs like to branch.
const EDGES: [u8; 6] = [0, 1, 0x7f, 0x80, 0xfe, 0xff];
/// What is sent to a program whose test has no packet: Ethernet with IPv4 and TCP, with a VLAN and UDP, with IPv6, and zeros.
const TYPICAL: [&str; 4] = [
    "0000000000020000000000010800450000300007000040062abb0a0001010a00020103e807d00000000100000001501001f4a5a50000000102030405060708",
    "000000000002000000000001810060050800450000240007000040112abc0a0001010a000201000500060010a3c2000102030405060708",
    "00000000000200000000000186dd6000000000140640fd000001000000000000000000000001fd00000200000000000000000000000103e807d00000000500000001501001f40d2a0000",
    "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000",
];

/// A random number below `end`; 0 when `end` is 0. The same numbers in every version.
fn below(random: &mut impl RngCore, end: usize) -> usize {
    (random.next_u64() % end.max(1) as u64) as usize
}

/// A frame and the port that it comes in by.
pub type Input = (u32, Vec<u8>);

/// `count` packets for the program of `name`, from the packets of its test.
pub fn packets(name: &str, statements: &[Statement], seed: u64, count: usize) -> Vec<Input> {
    let own = statements.iter().filter_map(|s| match &s.command {
        Command::Packet { port, frame } => Some((*port, frame.clone())),
        _ => None,
    });
    let (mut ports, mut frames): (Vec<u32>, Vec<Vec<u8>>) = own.unzip();
    if frames.is_empty() {
        ports = vec![0; TYPICAL.len()];
        frames.extend(TYPICAL.map(|digits| hex::decode(digits).expect("digits")));
    }
    let name = name.bytes().fold(0u64, |hash, b| {
        (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut random = SplitMix64::seed_from_u64(seed ^ name);
    let packet = |_| {
        let of = below(&mut random, frames.len());
        let (mut port, mut frame) = (ports[of], frames[of].clone());
        for _ in 0..=below(&mut random, 3) {
            change(&mut random, &mut frame, &frames);
        }
        if below(&mut random, 8) == 0 {
            port = below(&mut random, 8) as u32;
        }
        if frame.is_empty() {
            frame.push(0);
        }
        frame.truncate(LONGEST);
        (port, frame)
    };
    (0..count).map(packet).collect()
}

/// Changes a frame in one of many ways; bytes may come from one of `others`.
pub fn change(random: &mut impl RngCore, frame: &mut Vec<u8>, others: &[Vec<u8>]) {
    let mut below = |end| below(random, end);
    let at = below(frame.len());
    match below(8) {
        // The headers are at the beginning: most changes are there.
        0..=2 => {
            let at = below(frame.len().min(48));
            if let Some(byte) = frame.get_mut(at) {
                *byte ^= 1 << below(8);
            }
        }
        3 => {
            if let Some(byte) = frame.get_mut(at) {
                *byte = EDGES[below(EDGES.len())];
            }
        }
        4 => frame.truncate(at),
        5 => {
            for _ in 0..=below(40) {
                frame.push(below(256) as u8);
            }
        }
        6 => {
            let other = others.get(below(others.len()));
            let other = other.map_or(&[][..], Vec::as_slice);
            let end = (at + 1 + below(16)).min(frame.len()).min(other.len());
            if at < end {
                frame[at..end].copy_from_slice(&other[at..end]);
            }
        }
        _ => {
            let end = (at + 1 + below(8)).min(frame.len());
            if at < end {
                frame.extend_from_within(at..end);
                frame[at..].rotate_right(end - at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stf;

    #[test]
    fn the_same_seed_makes_the_same_packets_and_another_one_others() {
        let statements = stf::parse("packet 1 00112233445566778899\npacket 2 ffff").unwrap();
        let one = packets("a", &statements, 1, 200);
        assert_eq!(one, packets("a", &statements, 1, 200));
        assert_ne!(one, packets("a", &statements, 2, 200));
        assert_ne!(one, packets("b", &statements, 1, 200));
        assert!(one.iter().all(|(_, f)| !f.is_empty() && f.len() <= LONGEST));
        let lengths: std::collections::BTreeSet<usize> = one.iter().map(|(_, f)| f.len()).collect();
        assert!(lengths.len() > 20, "{lengths:?}");
        assert!(one.iter().any(|(port, _)| *port != 1 && *port != 2));
    }

    #[test]
    fn a_test_without_packets_gets_typical_ones() {
        let all = packets("a", &[], 1, 100);
        assert!(all.iter().any(|(_, frame)| frame.len() > 30));
    }
}
