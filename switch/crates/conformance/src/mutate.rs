// SPDX-License-Identifier: Apache-2.0
//! Packets made from a test's own: bits and bytes changed, cut, longer, spliced, by fixed seeds.

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

/// SplitMix64 (Steele, Lea, Flood 2014): the same numbers on every machine and in every version.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`; 0 when `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

/// A frame and the port that it comes in by.
pub type Input = (u32, Vec<u8>);

/// `count` packets for the program of `name`, from the packets of its test.
pub fn packets(name: &str, statements: &[Statement], seed: u64, count: usize) -> Vec<Input> {
    let mut originals: Vec<Input> = Vec::new();
    for statement in statements {
        if let Command::Packet { port, frame } = &statement.command {
            originals.push((*port, frame.clone()));
        }
    }
    if originals.is_empty() {
        let frame = |digits: &&str| {
            let byte = |i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).expect("digits");
            (0, (0..digits.len() / 2).map(byte).collect())
        };
        originals.extend(TYPICAL.iter().map(frame));
    }
    let name = name.bytes().fold(0u64, |hash, b| {
        (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut dice = Dice::new(seed ^ name);
    (0..count).map(|_| packet(&mut dice, &originals)).collect()
}

fn packet(dice: &mut Dice, originals: &[Input]) -> Input {
    let (mut port, mut frame) = originals[dice.below(originals.len())].clone();
    for _ in 0..=dice.below(3) {
        change(dice, &mut frame, originals);
    }
    if dice.below(8) == 0 {
        port = dice.below(8) as u32;
    }
    if frame.is_empty() {
        frame.push(0);
    }
    frame.truncate(LONGEST);
    (port, frame)
}

fn change(dice: &mut Dice, frame: &mut Vec<u8>, originals: &[Input]) {
    let at = dice.below(frame.len());
    match dice.below(8) {
        // The headers are at the beginning: most changes are there.
        0..=2 => {
            let at = dice.below(frame.len().min(48));
            if let Some(byte) = frame.get_mut(at) {
                *byte ^= 1 << dice.below(8);
            }
        }
        3 => {
            if let Some(byte) = frame.get_mut(at) {
                *byte = EDGES[dice.below(EDGES.len())];
            }
        }
        4 => frame.truncate(at),
        5 => {
            for _ in 0..=dice.below(40) {
                frame.push(dice.below(256) as u8);
            }
        }
        6 => {
            let other = &originals[dice.below(originals.len())].1;
            let end = (at + 1 + dice.below(16)).min(frame.len()).min(other.len());
            if at < end {
                frame[at..end].copy_from_slice(&other[at..end]);
            }
        }
        _ => {
            let end = (at + 1 + dice.below(8)).min(frame.len());
            if at < end {
                let again = frame[at..end].to_vec();
                frame.splice(at..at, again);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stf;

    #[test]
    fn numbers_are_those_of_the_definition() {
        // Reference values of SplitMix64 with seed 1234567.
        let mut dice = Dice::new(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| dice.next()).collect();
        assert_eq!(
            first,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

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
