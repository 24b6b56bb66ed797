// SPDX-License-Identifier: Apache-2.0
//! `Budget`: the memory that a program may take; everything is taken from it before it is allocated.

use std::cell::Cell;
use std::fmt;

/// Bytes that one program may take, and those that are left of them.
#[derive(Debug)]
pub(crate) struct Budget {
    all: u64,
    left: Cell<u64>,
}

/// More was wanted than is left.
#[derive(Debug)]
pub(crate) struct Refused {
    wanted: u64,
    left: u64,
    all: u64,
}

impl Budget {
    pub fn new(all: u64) -> Budget {
        Budget {
            all,
            left: Cell::new(all),
        }
    }

    /// Bytes that were taken.
    pub fn taken(&self) -> u64 {
        self.all - self.left.get()
    }

    pub fn take(&self, bytes: u64) -> Result<(), Refused> {
        let left = self.left.get();
        match left.checked_sub(bytes) {
            Some(rest) => {
                self.left.set(rest);
                Ok(())
            }
            None => Err(Refused {
                wanted: bytes,
                left,
                all: self.all,
            }),
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Refused { wanted, left, all } = *self;
        write!(f, "would take {}", Bytes(wanted))?;
        match left == all {
            true => write!(f, "; a program may take {}", Bytes(all)),
            false => write!(
                f,
                "; of the {} that a program may take, {} are left",
                Bytes(all),
                Bytes(left)
            ),
        }
    }
}

/// A number of bytes for people.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        let (mut value, mut unit) = (self.0 as f64, "bytes");
        for next in units {
            if value < 1024.0 {
                break;
            }
            (value, unit) = (value / 1024.0, next);
        }
        match unit {
            "bytes" => write!(f, "{} bytes", self.0),
            _ => write!(f, "{value:.1} {unit}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_and_takes_nothing() {
        let budget = Budget::new(3000);
        assert_eq!(
            budget.take(5 << 30).unwrap_err().to_string(),
            "would take 5.0 GiB; a program may take 2.9 KiB"
        );
        budget.take(2000).unwrap();
        assert_eq!(
            budget.take(1001).unwrap_err().to_string(),
            "would take 1001 bytes; of the 2.9 KiB that a program may take, 1000 bytes are left"
        );
        budget.take(1000).unwrap();
        assert_eq!(budget.taken(), 3000);
        assert!(budget.take(1).is_err() && budget.take(0).is_ok());
        assert!(budget.take(u64::MAX).is_err());
    }
}
