// SPDX-License-Identifier: Apache-2.0
//! Hash of a lookup key: folded 64 × 64 → 128-bit products over limbs, seeded anew in each process.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// The secret numbers of one table's hash. They decide where a record lies, never what a lookup finds.
#[derive(Clone, Copy)]
pub struct Seeds([u64; 4]);

impl Seeds {
    /// Fresh numbers from the process's random state, so that nobody can send flows that all collide.
    pub fn random() -> Self {
        let state = RandomState::new();
        Seeds([1u64, 2, 3, 4].map(|i| {
            let mut hasher = state.build_hasher();
            hasher.write_u64(i);
            hasher.finish() | 1
        }))
    }

    /// The hash of `limb(0) .. limb(n - 1)`.
    #[inline(always)]
    pub fn hash(&self, n: usize, limb: impl Fn(usize) -> u64) -> u64 {
        let [s0, s1, s2, s3] = self.0;
        let mut sum = s2;
        let mut i = 0;
        while i + 1 < n {
            sum = sum.rotate_left(25) ^ mix(limb(i) ^ s0, limb(i + 1) ^ s1);
            i += 2;
        }
        if i < n {
            mix(sum ^ limb(i), s3)
        } else {
            mix(sum, s3)
        }
    }
}

#[inline(always)]
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The high bits, which the index uses, spread dense and strided keys over buckets like chance does, but for seeds of
    /// bad luck: they are few, and even then no bucket gets a large part.
    #[test]
    fn dense_keys_spread() {
        const KEYS: u64 = 8192;
        let (mut cases, mut uneven) = (0, 0);
        for seeds in (0..32).map(numbered_seeds) {
            for (n, position) in
                (1..=6usize).flat_map(|n| (0..n).map(move |position| (n, position)))
            {
                for shift in [0, 8, 32, 48] {
                    let mut buckets = vec![0u32; 1024];
                    for value in 0..KEYS {
                        let h = seeds.hash(n, |i| if i == position { value << shift } else { 7 });
                        buckets[(h >> 54) as usize] += 1;
                    }
                    let max = *buckets.iter().max().unwrap();
                    assert!(
                        u64::from(max) < KEYS / 16,
                        "{n} limbs, limb {position} << {shift}: {max} in one of 1024 buckets"
                    );
                    // Mean 8 a bucket; chance makes the largest about 21.
                    cases += 1;
                    uneven += u32::from(max >= 40);
                }
            }
        }
        assert!(uneven * 100 < cases, "{uneven} of {cases} cases are uneven");
    }

    /// Seeds that are the same in every run, from SplitMix64.
    fn numbered_seeds(number: u64) -> Seeds {
        let mut state = number << 32;
        Seeds([(); 4].map(|()| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (z ^ (z >> 31)) | 1
        }))
    }
}
