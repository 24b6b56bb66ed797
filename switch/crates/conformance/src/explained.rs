// SPDX-License-Identifier: Apache-2.0
//! Differences from BMv2 that are known and right: the table of differences.md beside `src`.

/// The table's rows: `| program, program | what differs | why |`.
const DOCUMENT: &str = include_str!("../differences.md");

/// Why the program `name` differs from BMv2, when that is known.
pub fn reason(name: &str) -> Option<&'static str> {
    rows(DOCUMENT).find_map(|(programs, reason)| programs.contains(&name).then_some(reason))
}

fn rows(document: &str) -> impl Iterator<Item = (Vec<&str>, &str)> {
    document.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.split('|').map(str::trim);
        let names = cells.next()?;
        let reason = cells.next()?;
        let names = names.split('`').map(str::trim);
        let programs = names.filter(|n| !n.is_empty() && *n != ",").collect();
        Some((programs, reason))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_names_programs_and_a_reason() {
        let text = "# x\n| program | what, and why |\n|---|---|\n| `a/b`, `c` | random numbers | yes |\n| d | no |\n";
        let all: Vec<_> = rows(text).collect();
        assert_eq!(all, [(vec!["a/b", "c"], "random numbers")]);
        assert_eq!(reason("no such program"), None);
    }

    #[test]
    fn a_program_is_named_once() {
        let mut all: Vec<&str> = rows(DOCUMENT).flat_map(|(all, _)| all).collect();
        all.sort_unstable();
        let count = all.len();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
