// SPDX-License-Identifier: Apache-2.0
//! Errors of single updates and of whole calls, and how they travel in a gRPC status (P4Runtime 1.5 §10, §12.3).

use std::fmt::Display;
use std::ops::RangeInclusive;

use bytes::Bytes;
use prost::Message;
use tonic::{Code, Status};

use crate::proto::{p4rt, rpc};

pub use v1model::error::At;
pub use v1model::{refusal, refuse, ControlError as Refusal, ControlResult as Checked, ErrorKind};

/// finsy and other clients look for "no … forwarding pipeline config" in a FAILED_PRECONDITION.
pub const NO_PIPELINE: &str = "No forwarding pipeline config set for this device";

/// Bytes of metadata in which an answer must fit, names and 32 bytes for each header included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetadataRoom(usize);

/// What every client takes: gRPC's default limit is 8 KiB (P4Runtime 1.5 §18.2), and above it some refuse at random. A
/// client that was not told otherwise says 16 KiB, the size from which on it refuses for certain.
const ROOM_BYTES_DEFAULT: usize = 8_000;
const DEFAULT_HEADER_LIST_BYTES: u32 = 16 << 10;
/// The most that is used.
const ROOM_BYTES_MAX: usize = 64 << 10;

impl MetadataRoom {
    /// Of a client that says that it takes so much, if it does.
    pub fn from_client(bytes: Option<u32>) -> MetadataRoom {
        MetadataRoom(match bytes {
            // One that was told otherwise says a quarter more than it was told.
            Some(bytes) if bytes > DEFAULT_HEADER_LIST_BYTES => {
                (bytes as usize / 5 * 4).min(ROOM_BYTES_MAX)
            }
            _ => ROOM_BYTES_DEFAULT,
        })
    }

    /// Of a caller that no header stands before.
    pub fn max() -> MetadataRoom {
        MetadataRoom(ROOM_BYTES_MAX)
    }
}

/// What of them is always there: the other headers, the names of these two, and the frame of the status message.
const FIXED_BYTES: usize = 360;
/// Most bytes of a status's text as it is sent, where all but plain characters take three.
pub const TEXT_BYTES: usize = 900;
/// Most bytes of a refusal's text in a batch's text.
const FIRST_BYTES: usize = 512;
/// Most bytes of the list of refused updates in a batch's text, when the details cannot hold all.
const LIST_BYTES: usize = 200;
/// Most bytes that a refusal repeats of what a client sent.
const QUOTE_BYTES: usize = 200;
/// What `Any` takes before the last part of the type's name; clients look at that part only.
const TYPE_URLS: [&str; 2] = ["type.googleapis.com/p4.v1.Error", "/p4.v1.Error"];

/// Returns with this status of a call: `bail!(not_found, "device {id} is unknown")`.
#[macro_export]
macro_rules! bail {
    ($code:ident, $($text:tt)+) => { return Err(tonic::Status::$code(format!($($text)+)).into()) };
}
pub use bail;

/// # Errors
/// INVALID_ARGUMENT for a number beyond what is allowed.
pub fn in_range<N: Copy + Display + TryInto<u32>>(
    what: &str,
    number: N,
    allowed: RangeInclusive<u32>,
) -> Checked<u32> {
    match number.try_into() {
        Ok(number) if allowed.contains(&number) => Ok(number),
        _ => {
            let (first, last) = allowed.into_inner();
            refuse!("{what} {number} is not within {first} to {last}")
        }
    }
}

/// The gRPC code of a refusal.
pub fn code(refusal: &Refusal) -> Code {
    match refusal.kind {
        ErrorKind::NotFound => Code::NotFound,
        ErrorKind::AlreadyExists => Code::AlreadyExists,
        ErrorKind::ResourceExhausted => Code::ResourceExhausted,
        ErrorKind::InvalidArgument => Code::InvalidArgument,
        ErrorKind::PermissionDenied => Code::PermissionDenied,
        ErrorKind::FailedPrecondition => Code::FailedPrecondition,
        ErrorKind::Unimplemented => Code::Unimplemented,
        ErrorKind::OutOfRange => Code::OutOfRange,
    }
}

/// The status of a call that is refused as a whole.
pub fn status(refusal: Refusal) -> Status {
    Status::new(code(&refusal), refusal.message)
}

/// The status of a batch: `OK` when all went well, else `UNKNOWN` with one `p4.v1.Error` per request, in order.
///
/// All of it fits into the metadata that the client takes: texts are shortened first, those of later refusals
/// before those of earlier ones; then the type's name; at last the list is cut where it is full. Where a refusal is
/// not in the list, the status's text names the numbers of all that were refused.
///
/// # Errors
/// `UNKNOWN` when at least one request was refused.
pub fn batch_status(call: &str, results: &[Checked], metadata: MetadataRoom) -> Result<(), Status> {
    let failed = results.iter().enumerate();
    let failed: Vec<_> = failed
        .filter_map(|(i, r)| Some((i, r.as_ref().err()?)))
        .collect();
    let (Some((first, refusal)), Some((last, _))) = (failed.first(), failed.last()) else {
        return Ok(());
    };
    let (count, all) = (failed.len(), results.len());
    let text = clip(&refusal.message, FIRST_BYTES);
    let mut message = format!("{call}: {count} of {all} refused; first [{first}]: {text}");
    let mut room = details_room(metadata, &message);
    // How many errors without their texts fit, and what they take.
    let bare = |url: &str, room: usize| {
        let sums = results.iter().scan(0, |bytes, result| {
            *bytes += any_bytes(result, url);
            Some(*bytes)
        });
        sums.take_while(|bytes| *bytes <= room)
            .zip(1..)
            .last()
            .unwrap_or_default()
    };
    let [long, short] = TYPE_URLS;
    let (mut url, mut listed) = (long, bare(long, room));
    if listed.1 < all {
        (url, listed) = (short, bare(short, room));
    }
    if listed.1 <= *last {
        let failed: Vec<usize> = failed.iter().map(|(index, _)| *index).collect();
        message = format!("{message}; refused are {}", ranges(&failed));
        room = details_room(metadata, &message);
        // The first texts get a part of it.
        listed = bare(short, room / 8 * 7);
    }
    let mut texts = room - listed.0;
    let details = results[..listed.1].iter();
    let details = details.map(|r| any_error(r, url, &mut texts)).collect();
    let status = rpc::Status {
        code: Code::Unknown as i32,
        message: message.clone(),
        details,
    };
    let details = Bytes::from(status.encode_to_vec());
    Err(Status::with_details(Code::Unknown, message, details))
}

/// Bytes that the details may have beside this text, which is sent twice.
fn details_room(metadata: MetadataRoom, message: &str) -> usize {
    let base64 = metadata.0.saturating_sub(FIXED_BYTES + sent_bytes(message));
    (base64 / 4 * 3).saturating_sub(message.len())
}

/// Bytes of a text in a header: percent signs and digits for what is not plain.
fn sent_bytes(text: &str) -> usize {
    let plain = |b: &u8| (b' '..=b'~').contains(b) && *b != b'%';
    text.bytes().map(|b| if plain(&b) { 1 } else { 3 }).sum()
}

/// `3, 17-20, 399` as far as there is room.
fn ranges(numbers: &[usize]) -> String {
    let mut text = String::new();
    let mut rest = numbers;
    while let Some(&first) = rest.first() {
        let run = (first..).zip(rest).take_while(|(a, b)| a == *b).count();
        rest = &rest[run..];
        let one = match run {
            1 => first.to_string(),
            _ => format!("{first}-{}", first + run - 1),
        };
        if text.len() + one.len() > LIST_BYTES {
            return format!("{text} and {} more", run + rest.len());
        }
        text = match text.is_empty() {
            true => one,
            false => format!("{text}, {one}"),
        };
    }
    text
}

/// Bytes of one error in the details without its text: four tags and lengths, and a code that takes one byte.
fn any_bytes(result: &Checked, url: &str) -> usize {
    4 + url.len() + if result.is_err() { 4 } else { 0 }
}

fn any_error(result: &Checked, url: &str, texts: &mut usize) -> prost_types::Any {
    let error = match result {
        Ok(()) => p4rt::Error::default(),
        Err(refusal) => {
            // Two bytes each for the text's own length, and for those around it that become longer by it.
            let message = clip(&refusal.message, texts.saturating_sub(6)).to_owned();
            *texts -= message.len() + if message.is_empty() { 0 } else { 6 };
            p4rt::Error {
                canonical_code: code(refusal) as i32,
                message,
                ..Default::default()
            }
        }
    };
    prost_types::Any {
        type_url: url.into(),
        value: error.encode_to_vec(),
    }
}

/// The first `max_bytes` of a text, cut between two characters.
pub fn clip(text: &str, max_bytes: usize) -> &str {
    let mut end = text.len().min(max_bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// What a client sent, for a text of ours: in quotation marks, without control characters, at most its first 200 bytes.
pub fn quote(text: &str) -> String {
    let shown = clip(text, QUOTE_BYTES);
    match shown.len() == text.len() {
        true => format!("{shown:?}"),
        false => format!("{shown:?}... ({} bytes)", text.len()),
    }
}

/// The same status with the end of its text left out where it is too long to arrive.
pub fn short(status: Status) -> Status {
    let text = status.message();
    if sent_bytes(text) <= TEXT_BYTES {
        return status;
    }
    let text = format!(
        "{}... ({} bytes)",
        clip(text, TEXT_BYTES / 3 - 30),
        text.len()
    );
    let details = Bytes::copy_from_slice(status.details());
    Status::with_details(status.code(), text, details)
}

#[cfg(test)]
mod tests {
    use super::ErrorKind::*;
    use super::*;

    fn refusal_of(kind: ErrorKind, text: impl Into<String>) -> Refusal {
        Refusal::new(kind, text)
    }

    #[test]
    fn all_good_is_ok() {
        assert!(batch_status("Write", &[Ok(()), Ok(())], MetadataRoom::from_client(None)).is_ok());
    }

    #[test]
    fn one_error_per_update_in_order() {
        let results = [
            Ok(()),
            Err(refusal_of(NotFound, "table id 7 is unknown")),
            Ok(()),
        ];
        let status = batch_status("Write", &results, MetadataRoom::from_client(None)).unwrap_err();
        assert_eq!(status.code(), Code::Unknown);
        assert_eq!(
            status.message(),
            "Write: 1 of 3 refused; first [1]: table id 7 is unknown"
        );
        let details = rpc::Status::decode(status.details()).unwrap();
        assert_eq!(
            (details.code, details.message.as_str()),
            (2, status.message())
        );
        let codes: Vec<i32> = details
            .details
            .iter()
            .map(|any| {
                p4rt::Error::decode(any.value.as_slice())
                    .unwrap()
                    .canonical_code
            })
            .collect();
        assert_eq!(codes, [0, Code::NotFound as i32, 0]);
    }

    /// The metadata of a status as clients count it.
    fn metadata_bytes(status: &Status) -> usize {
        let headers = [
            (":status", 3),
            ("content-type", "application/grpc".len()),
            ("date", 29),
            ("grpc-status", 2),
            ("grpc-message", sent_bytes(status.message())),
            (
                "grpc-status-details-bin",
                status.details().len().div_ceil(3) * 4,
            ),
        ];
        headers
            .iter()
            .map(|(name, bytes)| name.len() + bytes + 32)
            .sum()
    }

    /// (codes, texts) of the details.
    fn details(status: &Status) -> Vec<(i32, String)> {
        let details = rpc::Status::decode(status.details()).unwrap().details;
        let error = |any: prost_types::Any| {
            assert!(any.type_url.ends_with("/p4.v1.Error"));
            let error = p4rt::Error::decode(any.value.as_slice()).unwrap();
            (error.canonical_code, error.message)
        };
        details.into_iter().map(error).collect()
    }

    #[test]
    fn every_batch_fits_into_the_metadata_that_clients_take() {
        let invalid = Code::InvalidArgument as i32;
        for text in ["x".repeat(400), "€".repeat(300), "%".repeat(500)] {
            for (all, refused) in [
                (3, vec![1]),
                (150, vec![149]),
                (150, (0..150).collect()),
                (300, vec![0, 299]),
                (400, vec![200]),
                (400, vec![399]),
                (1_000, (0..1_000).collect()),
                (10_000, (0..10_000).step_by(2).collect::<Vec<usize>>()),
                (100_000, vec![99_999]),
            ] {
                let mut results = vec![Ok(()); all];
                for index in &refused {
                    results[*index] = Err(refusal_of(InvalidArgument, text.clone()));
                }
                let status =
                    batch_status("Write", &results, MetadataRoom::from_client(None)).unwrap_err();
                let bytes = metadata_bytes(&status);
                assert!(bytes <= 8_192, "{all}: {bytes} bytes");
                let details = details(&status);
                assert!(details.len() <= all);
                for (index, (code, _)) in details.iter().enumerate() {
                    assert_eq!(*code == invalid, refused.contains(&index), "[{index}]");
                }
                let whole = details.len() > refused[refused.len() - 1];
                assert!(
                    whole || status.message().contains("; refused are "),
                    "{status:?}"
                );
                assert!(whole || refused[refused.len() - 1] > 200, "{all}");
            }
        }
    }

    #[test]
    fn who_failed_is_always_told() {
        let mut results = vec![Ok(()); 4_000];
        for index in [7, 8, 9, 2_000, 3_999] {
            results[index] = Err(refusal_of(NotFound, "no such entry"));
        }
        let status = batch_status("Write", &results, MetadataRoom::from_client(None)).unwrap_err();
        assert_eq!(
            status.message(),
            "Write: 5 of 4000 refused; first [7]: no such entry; refused are 7-9, 2000, 3999"
        );
        let details = details(&status);
        assert_eq!(
            details[7],
            (Code::NotFound as i32, "no such entry".to_owned())
        );
        assert!(details.len() > 250, "{}", details.len());
    }

    #[test]
    fn a_client_that_takes_more_gets_more() {
        let results = vec![Err(refusal_of(NotFound, "x".repeat(200))); 1_000];
        for (said, listed) in [(None, 289), (Some(16_384), 289), (Some(81_920), 1_000)] {
            let room = MetadataRoom::from_client(said);
            let status = batch_status("Write", &results, room).unwrap_err();
            assert!(metadata_bytes(&status) <= room.0 + 192);
            let details = details(&status).len();
            assert!(details.abs_diff(listed) < 60, "{said:?}: {details}");
        }
    }

    #[test]
    fn texts_are_shortened_before_anything_else() {
        let results = vec![Err(refusal_of(InvalidArgument, "x".repeat(400))); 100];
        let details =
            details(&batch_status("Write", &results, MetadataRoom::from_client(None)).unwrap_err());
        assert_eq!(details.len(), 100);
        assert_eq!(details[0].1.len(), 400);
        assert_eq!(details[99].1, "");
    }

    #[test]
    fn at_most_200_bytes_of_a_client_are_repeated() {
        assert_eq!(quote("a\"b"), r#""a\"b""#);
        let text = quote(&"é".repeat(1_000));
        assert_eq!(text, format!("\"{}\"... (2000 bytes)", "é".repeat(100)));
    }

    #[test]
    fn the_end_of_a_long_text_is_left_out() {
        let cut = |text: &str| short(Status::not_found(text)).message().to_owned();
        assert_eq!(cut("no such place"), "no such place");
        let text = cut(&format!("/a/{}: it is no number", "€".repeat(1 << 20)));
        assert!(text.starts_with("/a/€€"), "{text}");
        assert!(text.ends_with("€... (3145748 bytes)"), "{text}");
        assert!(sent_bytes(&text) < 1_000);
        let long = short(Status::not_found("x".repeat(9_999)));
        assert_eq!(long.code(), Code::NotFound);
    }
}
