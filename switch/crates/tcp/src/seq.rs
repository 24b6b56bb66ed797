// SPDX-License-Identifier: Apache-2.0
//! Comparisons of sequence numbers modulo 2^32 (RFC 9293 §3.4).

/// `a < b`, for numbers less than 2^31 apart.
pub fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// `a > b`.
pub fn after(a: u32, b: u32) -> bool {
    before(b, a)
}

pub fn max(a: u32, b: u32) -> u32 {
    if before(a, b) {
        b
    } else {
        a
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_survives_the_wrap() {
        assert!(before(u32::MAX, 0) && after(0, u32::MAX));
        assert!(before(5, 6) && !before(6, 6) && !after(6, 6));
        assert_eq!(max(u32::MAX - 1, 3), 3);
    }
}
