// SPDX-License-Identifier: Apache-2.0
//! Register arrays: `len` values of a fixed width in bits, kept as u64 limbs, least significant first.

use super::Cells;

/// Registers of at most so many bits are kept in 32.
pub(crate) const NARROW_BITS: u32 = 32;

/// One register array. Its memory is zero pages until an index is first written.
#[derive(Clone)]
pub struct Registers {
    /// Up to 32 bits each, which take half the cache; without cells where registers are wider.
    pub(crate) narrow: Cells<u32>,
    /// `limbs_each` limbs a register; without cells where registers are narrow.
    pub(crate) wide: Cells<u64>,
    len: usize,
    width: u32,
    limbs_each: usize,
    /// The bits of the most significant limb that belong to the width.
    top_mask: u64,
}

impl Registers {
    /// Memory that an array of `len` registers of `width` bits takes.
    pub fn bytes(len: u32, width: u32) -> u64 {
        let each = match width {
            0..=NARROW_BITS => size_of::<u32>(),
            _ => width.div_ceil(64) as usize * size_of::<u64>(),
        };
        u64::from(len) * each as u64
    }

    /// An array of `len` registers of `width` bits (at least 1), all zero.
    pub fn new(len: u32, width: u32) -> Self {
        let len = len as usize;
        let width = width.max(1);
        let limbs_each = width.div_ceil(64) as usize;
        let top_bits = width - 64 * (limbs_each as u32 - 1);
        let (narrow, wide) = match width <= NARROW_BITS {
            true => (len, 0),
            false => (0, len * limbs_each),
        };
        Registers {
            narrow: Cells::new(0, narrow),
            wide: Cells::new(0, wide),
            len,
            width,
            limbs_each,
            top_mask: u64::MAX >> (64 - top_bits),
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Width of one register in bits.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Limbs of one register.
    pub fn limbs_each(&self) -> usize {
        self.limbs_each
    }

    /// Copies the value at `index` into `out`, least significant limb first, as many as that has; out of range `out` stays as it
    /// is, and the result is false.
    #[inline]
    pub fn read(&self, index: u64, out: &mut [u64]) -> bool {
        if index >= self.len as u64 {
            return false;
        }
        let (n, index) = (self.limbs_each, index as usize);
        let narrow = self.narrow.get(index).map(|cell| u64::from(*cell));
        let limbs = match &narrow {
            Some(cell) => std::slice::from_ref(cell),
            None => &self.wide[index * n..][..n],
        };
        let limbs = limbs.iter().copied().chain(std::iter::repeat(0));
        out.iter_mut()
            .zip(limbs)
            .for_each(|(out, limb)| *out = limb);
        true
    }

    /// The value at `index` in limbs, least significant first, at any width; `None` out of range.
    pub fn get(&self, index: u64) -> Option<Vec<u64>> {
        let mut out = vec![0; self.limbs_each];
        self.read(index, &mut out).then_some(out)
    }

    /// Writes `value` (limbs, least significant first; missing ones are zero) cut to the width. Nothing is written
    /// out of range; the result says which it was.
    #[inline]
    pub fn write(&mut self, index: u64, value: &[u64]) -> bool {
        let n = self.limbs_each;
        if n == 1 {
            return self.write_u64(index, value.first().copied().unwrap_or(0));
        }
        let Some(cell) = self
            .wide
            .chunks_exact_mut(n)
            .nth(usize::try_from(index).unwrap_or(usize::MAX))
        else {
            return false;
        };
        for (i, limb) in cell.iter_mut().enumerate() {
            *limb = value.get(i).copied().unwrap_or(0);
        }
        cell[n - 1] &= self.top_mask;
        true
    }

    /// Writes a value of at most 64 bits; upper limbs become zero.
    #[inline(always)]
    pub fn write_u64(&mut self, index: u64, value: u64) -> bool {
        if index >= self.len as u64 {
            return false;
        }
        if self.width <= NARROW_BITS {
            self.narrow[index as usize] = (value & self.top_mask) as u32;
        } else if self.limbs_each == 1 {
            self.wide[index as usize] = value & self.top_mask;
        } else {
            return self.write(index, &[value]);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_cut_to_the_width() {
        let mut r = Registers::new(2, 12);
        assert!(r.write_u64(1, 0x1_2345));
        assert_eq!(r.get(1), Some(vec![0x345]));
        assert_eq!(r.get(0), Some(vec![0]));
        assert!(r.write(0, &[u64::MAX, 7]));
        assert_eq!(r.get(0), Some(vec![0xfff]));
        assert_eq!(r.get(2), None);
    }

    #[test]
    fn every_width_keeps_its_bits() {
        for width in 1..=64 {
            let mut r = Registers::new(3, width);
            assert!(r.write(1, &[u64::MAX]));
            let all = u64::MAX >> (64 - width);
            assert_eq!(r.get(1), Some(vec![all]), "width {width}");
            assert_eq!([r.get(0), r.get(2)], [Some(vec![0]), Some(vec![0])]);
            assert!(r.write_u64(1, 1));
            assert_eq!(r.get(1), Some(vec![1]));
        }
    }

    #[test]
    fn a_full_limb_keeps_all_bits() {
        let mut r = Registers::new(1, 64);
        r.write_u64(0, u64::MAX);
        assert_eq!(r.get(0), Some(vec![u64::MAX]));
    }

    #[test]
    fn wide_registers_have_several_limbs() {
        let mut r = Registers::new(3, 130);
        assert_eq!(r.limbs_each(), 3);
        r.write(2, &[1, 2, 0xff]);
        assert_eq!(r.get(2), Some(vec![1, 2, 3]));
        r.write_u64(2, 9);
        assert_eq!(r.get(2), Some(vec![9, 0, 0]));
        assert_eq!(r.get(1), Some(vec![0, 0, 0]));
    }

    #[test]
    fn out_of_range_is_refused() {
        let mut r = Registers::new(2, 32);
        assert!(!r.write_u64(2, 1));
        assert!(!r.write(u64::MAX, &[1]));
        assert_eq!(r.get(2), None);
        assert_eq!(r.get(u64::MAX), None);
    }
}
