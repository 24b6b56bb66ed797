// SPDX-License-Identifier: Apache-2.0
//! From a run's seed to the seed of each thing in it that chance moves.

/// The seed of what is called `name` (such as `s1-s2/a_to_b`, `flow/f1`, `switch/s1`) in the run of `seed`: it depends on
/// these two only, so that a thing that is added changes nothing for the others.
pub fn derived_seed(seed: u64, name: &str) -> u64 {
    // Over the seed and the name; a generator's own seeding spreads the result over its whole state.
    fnv1a(seed.to_le_bytes().into_iter().chain(name.bytes()))
}

/// A hash that is the same in every run and on every machine.
pub(crate) fn fnv1a(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::derived_seed;

    #[test]
    fn seed_and_name_fix_it() {
        // FNV-1a of the eight bytes of the seed and of the name.
        assert_eq!(derived_seed(1, "switch/s1"), 0xb1a9_769c_c4a6_2711);
        assert_ne!(derived_seed(1, "switch/s1"), derived_seed(2, "switch/s1"));
        assert_ne!(derived_seed(1, "switch/s1"), derived_seed(1, "switch/s2"));
    }
}
