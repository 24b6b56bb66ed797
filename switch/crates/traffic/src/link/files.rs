// SPDX-License-Identifier: Apache-2.0
//! Files of numbers that settings name: the only thing that this crate reads, and never while frames are carried.

use super::trace::OPPORTUNITIES_MAX;
use std::fs::Metadata;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// Longest file that is read: as many lines as a trace may have, as long as they get.
const FILE_BYTES_MAX: u64 = 12 * OPPORTUNITIES_MAX as u64;

/// What a file was when it was read: modified when, and how long.
type Version = (Option<SystemTime>, u64);

/// Numbers that are kept, of all files together: 512 MiB.
const NUMBERS_MAX: usize = 64 << 20;

/// What was read by path and columns; what was used last is behind. Only the configuration and the control socket come here,
/// never a frame.
struct Known(Vec<Table>);
type Table = ((String, usize), Version, Arc<[f64]>);
static READ: Mutex<Known> = Mutex::new(Known(Vec::new()));

impl Known {
    /// Forgets what was used longest ago, until no more than so many numbers are left.
    fn keep(&mut self, most: usize) {
        let mut left: usize = self.0.iter().map(|(.., numbers)| numbers.len()).sum();
        self.0.retain(|(.., numbers)| {
            let stays = left <= most;
            left -= if stays { 0 } else { numbers.len() };
            stays
        });
    }
}

/// The first so many columns of a file, line by line: as they were read before, unless the file has changed since, so that
/// reading it again keeps no frame waiting. Columns are apart by blanks, commas or semicolons; lines that begin with `#`
/// and empty ones at the end count for nothing.
///
/// # Errors
/// A sentence with the path and the line. A pipe or a device would keep frames waiting.
pub(super) fn numbers(path: &str, columns: usize) -> Result<Arc<[f64]>, String> {
    let said = |e: std::io::Error| format!("{path}: cannot be read: {e}");
    let file = std::fs::metadata(path).map_err(said)?;
    if !file.is_file() {
        return Err(format!("{path}: is not a regular file"));
    }
    if file.len() > FILE_BYTES_MAX {
        return Err(format!(
            "{path}: {} bytes are too long for a trace; allowed: {FILE_BYTES_MAX}",
            file.len()
        ));
    }
    let version = |file: &Metadata| (file.modified().ok(), file.len());
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (path.to_owned(), columns);
    let known = read.0.iter().position(|(known, ..)| *known == key);
    if let Some((key, known, numbers)) = known.map(|at| read.0.remove(at)) {
        if known == version(&file) && known.0.is_some() {
            read.0.push((key, known, numbers.clone()));
            return Ok(numbers);
        }
    }
    let text = std::fs::read_to_string(path).map_err(said)?;
    let numbers = parse(&text, columns).map_err(|e| format!("{path}: {e}"))?;
    let numbers: Arc<[f64]> = numbers.into();
    read.0.push((key, version(&file), numbers.clone()));
    read.keep(NUMBERS_MAX);
    Ok(numbers)
}

fn parse(text: &str, columns: usize) -> Result<Vec<f64>, String> {
    let mut numbers = Vec::with_capacity(text.len() / 4);
    for (number, line) in (1..).zip(text.trim_end().lines()) {
        if line.starts_with('#') {
            continue;
        }
        let words = line.split([' ', '\t', ',', ';', '\r']);
        let words = words.filter(|word| !word.is_empty()).take(columns);
        let before = numbers.len();
        numbers.extend(words.map_while(|word| word.parse::<f64>().ok().filter(|x| x.is_finite())));
        if numbers.len() < before + columns {
            let shown: String = line.trim().chars().take(40).collect();
            let columns = ["a number", "two numbers"][usize::from(columns > 1)];
            return Err(format!("line {number}: {shown:?} is not {columns}"));
        }
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_once_and_again_when_it_has_changed() {
        let path = std::env::temp_dir().join(format!("link-files-{}.trace", std::process::id()));
        let name = path.to_str().unwrap();
        std::fs::write(&path, "1\r\n\n").unwrap();
        let first = numbers(name, 1).unwrap();
        assert!(Arc::ptr_eq(&first, &numbers(name, 1).unwrap()));
        std::fs::write(&path, "# t, x\n1, 2.5 7\n 2\t3\n").unwrap();
        assert_eq!(*numbers(name, 2).unwrap(), [1.0, 2.5, 2.0, 3.0]);
        std::fs::write(&path, "1\nx\n2\n").unwrap();
        let bad = numbers(name, 1).unwrap_err();
        assert!(bad.ends_with(": line 2: \"x\" is not a number"), "{bad}");
        let bad = numbers(name, 2).unwrap_err();
        assert!(bad.ends_with(": line 1: \"1\" is not two numbers"), "{bad}");
        std::fs::remove_file(&path).unwrap();
        let gone = numbers(name, 1).unwrap_err();
        assert!(gone.contains("cannot be read: No such file"), "{gone}");
    }

    #[test]
    fn what_was_used_longest_ago_is_forgotten() {
        let one = |name: &str, len| ((name.to_owned(), 1), (None, 0), vec![0.0; len].into());
        let mut known = Known(vec![one("a", 5), one("b", 3), one("c", 4)]);
        for (most, left) in [(12, "abc"), (9, "bc"), (3, "")] {
            known.keep(most);
            let names = known.0.iter().map(|((name, _), ..)| name.as_str());
            assert_eq!(names.collect::<String>(), left);
        }
    }

    #[test]
    fn what_never_ends_is_not_read() {
        let said = |path: &str| numbers(path, 1).unwrap_err();
        assert_eq!(said("/dev/zero"), "/dev/zero: is not a regular file");
        let path = std::env::temp_dir().join(format!("link-files-{}.long", std::process::id()));
        let file = std::fs::File::create(&path).unwrap();
        file.set_len(FILE_BYTES_MAX + 1).unwrap(); // a hole: nothing is written
        let long = said(path.to_str().unwrap());
        std::fs::remove_file(&path).unwrap();
        assert!(
            long.ends_with(": 48000001 bytes are too long for a trace; allowed: 48000000"),
            "{long}"
        );
    }
}
