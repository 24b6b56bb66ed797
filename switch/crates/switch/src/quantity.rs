// SPDX-License-Identifier: Apache-2.0
//! Numbers with units, as on the command line: `2Mbit`, `1.5Gbit`, `64KB`.

/// A rate in bit/s: a number and `bit`, `kbit`, `Mbit`, `Gbit` (decimal; `bps` for `bit` too), or a bare number of bit/s.
///
/// # Errors
/// A sentence naming the text and what is allowed.
pub fn rate_bps(text: &str) -> Result<u64, String> {
    let lower = text.to_ascii_lowercase();
    let number = lower
        .strip_suffix("bit/s")
        .or_else(|| lower.strip_suffix("bit"))
        .or_else(|| lower.strip_suffix("bps"));
    scaled(number.unwrap_or(&lower), number.is_some()).ok_or_else(|| {
        format!("\"{text}\" is not a rate such as 2Mbit, 1.5Gbit, 500kbit or 2000000")
    })
}

/// A size in bytes: a number and `B`, `kB`, `MB`, `GB` (decimal), or a bare number.
///
/// # Errors
/// A sentence naming the text and what is allowed.
pub fn bytes(text: &str) -> Result<u64, String> {
    let lower = text.to_ascii_lowercase();
    let number = lower.strip_suffix('b');
    scaled(number.unwrap_or(&lower), number.is_some())
        .ok_or_else(|| format!("\"{text}\" is not a size such as 75000, 64kB or 1.5MB"))
}

/// A whole number.
///
/// # Errors
/// A sentence naming the text and what is allowed.
pub fn count(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("\"{text}\" is not a whole number"))
}

fn scaled(text: &str, prefixed: bool) -> Option<u64> {
    let (number, scale) = match text.char_indices().last() {
        Some((at, 'k')) if prefixed => (&text[..at], 1e3),
        Some((at, 'm')) if prefixed => (&text[..at], 1e6),
        Some((at, 'g')) if prefixed => (&text[..at], 1e9),
        _ => (text, 1.0),
    };
    let plain = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit() || c == '.');
    let value = number.parse::<f64>().ok().filter(|_| plain)? * scale;
    (value <= 1e15).then_some(value.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_decimal_units() {
        assert_eq!(rate_bps("2Mbit"), Ok(2_000_000));
        assert_eq!(rate_bps("1.5Gbit/s"), Ok(1_500_000_000));
        assert_eq!(rate_bps("500kbps"), Ok(500_000));
        assert_eq!(rate_bps("1544000"), Ok(1_544_000));
        assert_eq!(rate_bps("0"), Ok(0));
        for bad in [
            "", "fast", "-1Mbit", "2M", "1e3", "Mbit", "2 Mbit", "nan", "inf",
        ] {
            assert!(rate_bps(bad).unwrap_err().contains("2Mbit"), "{bad}");
        }
    }

    #[test]
    fn sizes_have_decimal_units() {
        assert_eq!(bytes("64kB"), Ok(64_000));
        assert_eq!(bytes("75000"), Ok(75_000));
        assert!(bytes("64KiB").is_err());
    }
}
