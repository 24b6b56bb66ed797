// SPDX-License-Identifier: Apache-2.0
//! v1model's `random`: uniform numbers that a seed fixes, on every machine and whatever the version of a library.
//!
//! The generator is xoshiro256++ 1.0 (Blackman and Vigna), its four words the first four numbers of SplitMix64 from the
//! seed. A number in a range of n is the upper half of the product of a draw and n; a draw whose lower half is below
//! 2^64 mod n is drawn anew, so that every number is as likely (Lemire, 2019).

use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A seeded source of uniform random numbers.
#[derive(Clone)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// The same stream 2^128 draws further on: nobody gets there.
    pub fn next_stream(&mut self) -> Self {
        let stream = self.clone();
        self.0.jump();
        stream
    }

    /// A number in `low ..= high`, every one as likely; `None` if `low > high`, where BMv2 leaves the destination
    /// untouched.
    #[inline]
    pub fn uniform(&mut self, low: u64, high: u64) -> Option<u64> {
        let count = high.checked_sub(low)?.wrapping_add(1);
        if count == 0 {
            return Some(self.next_u64());
        }
        let mut product = u128::from(self.next_u64()) * u128::from(count);
        if (product as u64) < count {
            let unfair = count.wrapping_neg() % count;
            while (product as u64) < unfair {
                product = u128::from(self.next_u64()) * u128::from(count);
            }
        }
        Some(low + (product >> 64) as u64)
    }

    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, written out: Vigna's splitmix64.c and xoshiro256plusplus.c.
    struct Reference([u64; 4]);

    impl Reference {
        fn new(seed: u64) -> Self {
            let mut x = seed;
            Reference([(); 4].map(|()| {
                x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let z = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                z ^ (z >> 31)
            }))
        }

        fn next(&mut self) -> u64 {
            let s = &mut self.0;
            let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
            let t = s[1] << 17;
            s[2] ^= s[0];
            s[3] ^= s[1];
            s[1] ^= s[2];
            s[0] ^= s[3];
            s[2] ^= t;
            s[3] = s[3].rotate_left(45);
            result
        }
    }

    #[test]
    fn the_numbers_are_those_of_the_definition() {
        // SplitMix64 from 0, and xoshiro256++ from 1, 2, 3, 4: numbers that their authors and others publish.
        assert_eq!(
            Reference::new(0).0[..2],
            [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]
        );
        let mut known = Reference([1, 2, 3, 4]);
        let first = [(); 4].map(|()| known.next());
        assert_eq!(
            first,
            [
                41_943_041,
                58_720_359,
                3_588_806_011_781_223,
                3_591_011_842_654_386
            ]
        );
        for seed in [0, 1, 0x5eed, u64::MAX] {
            let (mut random, mut reference) = (Random::new(seed), Reference::new(seed));
            for _ in 0..1_000 {
                assert_eq!(random.next_u64(), reference.next());
            }
        }
    }

    #[test]
    fn a_seed_gives_these_numbers_for_ever() {
        let mut random = Random::new(1);
        let draws = [
            (0, 99),
            (0, 99),
            (1, 6),
            (1, 6),
            (0, 1 << 40),
            (0, u64::MAX),
        ];
        let drawn = draws.map(|(low, high)| random.uniform(low, high).unwrap());
        assert_eq!(
            drawn,
            [81, 74, 1, 5, 203_056_237_446, 10_892_412_867_582_108_485]
        );
    }

    #[test]
    fn streams_differ() {
        let mut random = Random::new(7);
        let mut streams = [(); 3].map(|()| random.next_stream());
        let first = streams.each_mut().map(Random::next_u64);
        assert!(first[0] != first[1] && first[1] != first[2] && first[0] != first[2]);
        // The first stream is the seed's own.
        assert_eq!(first[0], Random::new(7).next_u64());
    }

    #[test]
    fn bounds_are_included_and_kept() {
        let mut r = Random::new(1);
        let mut seen = [0u32; 4];
        for _ in 0..4000 {
            let v = r.uniform(10, 13).unwrap();
            seen[(v - 10) as usize] += 1;
        }
        // Mean 1000, standard deviation 27: seven of them are no accident.
        assert!(seen.iter().all(|&n| (800..1200).contains(&n)), "{seen:?}");
        assert_eq!(r.uniform(5, 5), Some(5));
        assert_eq!(r.uniform(6, 5), None);
        assert_eq!(r.uniform(u64::MAX, u64::MAX), Some(u64::MAX));
        assert!(r.uniform(1, u64::MAX).unwrap() >= 1);
        let _ = r.uniform(0, u64::MAX).unwrap();
    }
}
