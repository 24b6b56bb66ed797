// SPDX-License-Identifier: Apache-2.0
//! The text of a refusal, short enough to arrive: clients take 16 kB of a status, and its text may say what a request said.

use tonic::Status;

/// Bytes of the beginning and of the end that are kept; sent as percent signs and digits they are three times as many.
const BEGINNING: usize = 3_000;
const END: usize = 1_000;

/// The same with its middle left out when it is long: what it is about stands at the beginning, what is allowed at the end.
pub fn short(status: Status) -> Status {
    let text = status.message();
    if text.len() <= BEGINNING + END {
        return status;
    }
    let near = |from: usize, step: isize| {
        let mut at = from;
        while !text.is_char_boundary(at) {
            at = at.saturating_add_signed(step);
        }
        at
    };
    let (first, last) = (near(BEGINNING, -1), near(text.len() - END, 1));
    let left_out = last - first;
    let text = format!(
        "{} ... ({left_out} bytes left out) ... {}",
        &text[..first],
        &text[last..]
    );
    Status::new(status.code(), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_a_long_text_is_left_out() {
        let told = |text: &str| short(Status::not_found(text)).message().to_owned();
        assert_eq!(told("no such place"), "no such place");
        let text = told(&format!("/a/{}: it is no number", "€".repeat(1 << 20)));
        assert!(text.starts_with("/a/€€"), "{text}");
        assert!(text.ends_with("€: it is no number"), "{text}");
        assert!(
            text.contains(" ... (3141750 bytes left out) ... "),
            "{text}"
        );
        assert!(text.len() < 4_100);
        assert_eq!(
            short(Status::not_found("x".repeat(9_999))).code(),
            tonic::Code::NotFound
        );
    }
}
