// SPDX-License-Identifier: Apache-2.0
//! Values of leaves: JSON, null where there is none; what a leaf takes, and the encodings in which it travels.

use device::{LinkLayer, SchedulerKind};
use p4rt::proto::gnmi::typed_value::Value as Wire;
use p4rt::proto::gnmi::{Encoding, TypedValue};
use serde::Serialize;
use serde_json::Value as Json;

/// What a leaf takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Text,
    /// One of a few words.
    Word(&'static [&'static str]),
    Bool,
    U32,
    U64,
}

/// What a leaf's value is made of.
pub trait Scalar: Serialize {
    const KIND: Kind;
}

macro_rules! scalars {
    ($($type:ty: $kind:expr;)*) => {$(
        impl Scalar for $type {
            const KIND: Kind = $kind;
        }
    )*};
}

scalars! {
    String: Kind::Text;
    &'static str: Kind::Text;
    bool: Kind::Bool;
    u32: Kind::U32;
    u64: Kind::U64;
    LinkLayer: Kind::Word(LinkLayer::NAMES);
    SchedulerKind: Kind::Word(SchedulerKind::NAMES);
}

impl<T: Scalar> Scalar for Option<T> {
    const KIND: Kind = T::KIND;
}

impl Kind {
    /// For people.
    fn describe(self) -> String {
        match self {
            Kind::Text => "a string".to_owned(),
            Kind::Word(words) => format!("one of {}", words.join(", ")),
            Kind::Bool => "a boolean".to_owned(),
            Kind::U32 => format!("a whole number from 0 to {}", u32::MAX),
            Kind::U64 => format!("a whole number from 0 to {}", u64::MAX),
        }
    }

    /// Reads what a client sent for a leaf of this kind.
    ///
    /// # Errors
    /// A sentence with what was given and what is allowed.
    pub fn decode(self, wire: &TypedValue) -> Result<Json, String> {
        let given = match &wire.value {
            Some(Wire::JsonVal(bytes) | Wire::JsonIetfVal(bytes)) => parse(bytes)?,
            Some(Wire::StringVal(text) | Wire::AsciiVal(text)) => match self {
                // Only JSON has numbers in strings.
                Kind::U64 => return Err(self.wrong(&Json::from(text.as_str()))),
                _ => Json::from(text.as_str()),
            },
            Some(Wire::BoolVal(flag)) => Json::from(*flag),
            Some(Wire::UintVal(number)) => Json::from(*number),
            Some(Wire::IntVal(number)) => Json::from(*number),
            Some(Wire::DoubleVal(number)) => Json::from(*number),
            other => {
                let what = match other {
                    Some(_) => "the value's encoding is not one for a scalar",
                    None => "no value",
                };
                return Err(format!("{what}; {} is allowed", self.describe()));
            }
        };
        self.read(&given)
    }

    fn wrong(self, json: &Json) -> String {
        format!("{json} is not allowed; {} is", self.describe())
    }

    /// Reads a scalar of JSON; 64-bit numbers may be strings (RFC 7951 §6.1).
    ///
    /// # Errors
    /// A sentence with what was given and what is allowed.
    pub fn read(self, json: &Json) -> Result<Json, String> {
        let is_text = |text: &str| match self {
            Kind::Word(words) => words.contains(&text),
            other => other == Kind::Text,
        };
        let value = match (self, json) {
            (Kind::U64, Json::String(text)) => text.parse::<u64>().ok().map(Json::from),
            (Kind::U64, _) => json.as_u64().map(Json::from),
            (Kind::U32, _) => json
                .as_u64()
                .and_then(|n| u32::try_from(n).ok())
                .map(Json::from),
            (Kind::Bool, Json::Bool(_)) => Some(json.clone()),
            (_, Json::String(text)) if is_text(text) => Some(json.clone()),
            _ => None,
        };
        value.ok_or_else(|| self.wrong(json))
    }

    /// A leaf's value, in an encoding of [`supported`].
    pub fn encode(self, value: &Json, encoding: Encoding) -> TypedValue {
        let value = match (encoding, value) {
            (Encoding::Json | Encoding::JsonIetf, _) => {
                return json_value(&self.json(value, encoding), encoding)
            }
            (_, Json::String(text)) => Wire::StringVal(text.clone()),
            (_, Json::Bool(flag)) => Wire::BoolVal(*flag),
            (_, number) => Wire::UintVal(number.as_u64().unwrap_or_default()),
        };
        TypedValue { value: Some(value) }
    }

    /// A leaf's value as it stands in JSON; in JSON_IETF 64-bit numbers are strings (RFC 7951 §6.1).
    pub fn json(self, value: &Json, encoding: Encoding) -> Json {
        match (self, encoding) {
            (Kind::U64, Encoding::JsonIetf) => value.to_string().into(),
            _ => value.clone(),
        }
    }
}

/// # Errors
/// A sentence.
pub fn parse(bytes: &[u8]) -> Result<Json, String> {
    serde_json::from_slice(bytes).map_err(|e| format!("not JSON: {e}"))
}

pub fn json_value(json: &Json, encoding: Encoding) -> TypedValue {
    let bytes = json.to_string().into_bytes();
    let value = match encoding {
        Encoding::JsonIetf => Wire::JsonIetfVal(bytes),
        _ => Wire::JsonVal(bytes),
    };
    TypedValue { value: Some(value) }
}

/// The encodings that are served.
pub const ENCODINGS: [Encoding; 3] = [Encoding::JsonIetf, Encoding::Json, Encoding::Proto];

/// The encoding of that number, when it is served.
pub fn supported(number: i32) -> Option<Encoding> {
    let encoding = Encoding::try_from(number).ok()?;
    ENCODINGS.contains(&encoding).then_some(encoding)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_its_type_in_each_encoding() {
        let rate = Json::from(2_000_000);
        let wire = |encoding| Kind::U64.encode(&rate, encoding).value.unwrap();
        assert_eq!(wire(Encoding::Proto), Wire::UintVal(2_000_000));
        assert_eq!(
            wire(Encoding::JsonIetf),
            Wire::JsonIetfVal(b"\"2000000\"".to_vec())
        );
        assert_eq!(wire(Encoding::Json), Wire::JsonVal(b"2000000".to_vec()));
        for encoding in ENCODINGS {
            let sent = Kind::U64.encode(&rate, encoding);
            assert_eq!(Kind::U64.decode(&sent), Ok(rate.clone()));
        }
        let seven = Json::from(7);
        assert_eq!(Kind::U32.json(&seven, Encoding::JsonIetf), seven);
    }

    #[test]
    fn what_does_not_fit_is_told_with_what_does() {
        let of = |value| TypedValue { value: Some(value) };
        for (kind, value, text) in [
            (
                Kind::U32,
                Wire::IntVal(-1),
                "-1 is not allowed; a whole number from 0 to 4294967295 is",
            ),
            (
                Kind::U32,
                Wire::UintVal(1 << 32),
                "4294967296 is not allowed; a whole number from 0 to 4294967295 is",
            ),
            (
                Kind::Word(&["strict", "drr"]),
                Wire::StringVal("fq".to_owned()),
                "\"fq\" is not allowed; one of strict, drr is",
            ),
            (
                Kind::Bool,
                Wire::JsonIetfVal(b"\"true\"".to_vec()),
                "\"true\" is not allowed; a boolean is",
            ),
            (
                Kind::U64,
                Wire::DoubleVal(1.5),
                "1.5 is not allowed; a whole number from 0 to 18446744073709551615 is",
            ),
        ] {
            assert_eq!(kind.decode(&of(value)), Err(text.to_owned()));
        }
        let error = Kind::Bool.decode(&of(Wire::JsonVal(b"{".to_vec())));
        assert!(error.unwrap_err().starts_with("not JSON: "));
    }
}
