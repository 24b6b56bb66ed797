// SPDX-License-Identifier: Apache-2.0
//! One leaf's value: its types, and the encodings in which it travels.

use device::{LinkLayer, SchedulerKind};
use p4rt::proto::gnmi::typed_value::Value as Wire;
use p4rt::proto::gnmi::{Encoding, TypedValue};
use serde_json::Value as Json;
use std::str::FromStr;

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Text(String),
    Bool(bool),
    U32(u32),
    U64(u64),
}

/// What a leaf's value is made of.
pub trait Scalar {
    const TYPE: Type;

    fn into_value(self) -> Option<Value>;
}

macro_rules! scalars {
    ($($from:ty: $type:expr, $value:expr;)*) => {$(
        impl Scalar for $from {
            const TYPE: Type = $type;

            fn into_value(self) -> Option<Value> {
                Some($value(self))
            }
        }
    )*};
}

scalars! {
    String: Type::Text, Value::Text;
    &'static str: Type::Text, |text: &str| Value::Text(text.to_owned());
    bool: Type::Bool, Value::Bool;
    u32: Type::U32, Value::U32;
    u64: Type::U64, Value::U64;
    LinkLayer: Type::Word(LinkLayer::NAMES), |layer: LinkLayer| Value::Text(layer.to_string());
    SchedulerKind: Type::Word(SchedulerKind::NAMES), |kind: SchedulerKind| Value::Text(kind.to_string());
}

impl<T: Scalar> Scalar for Option<T> {
    const TYPE: Type = T::TYPE;

    fn into_value(self) -> Option<Value> {
        self?.into_value()
    }
}

/// What a leaf takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    Text,
    /// One of a few words.
    Word(&'static [&'static str]),
    Bool,
    U32,
    U64,
}

impl Type {
    /// For people and the list of paths.
    pub fn describe(self) -> String {
        match self {
            Type::Text => "a string".to_owned(),
            Type::Word(words) => format!("one of {}", words.join(", ")),
            Type::Bool => "a boolean".to_owned(),
            Type::U32 => format!("a whole number from 0 to {}", u32::MAX),
            Type::U64 => format!("a whole number from 0 to {}", u64::MAX),
        }
    }

    /// Reads what a client sent for a leaf of this type.
    ///
    /// # Errors
    /// A sentence with what was given and what is allowed.
    pub fn decode(self, wire: &TypedValue) -> Result<Value, String> {
        match &wire.value {
            Some(Wire::JsonVal(bytes) | Wire::JsonIetfVal(bytes)) => {
                let json: Json =
                    serde_json::from_slice(bytes).map_err(|e| format!("not JSON: {e}"))?;
                self.read_json(&json)
            }
            Some(Wire::StringVal(text) | Wire::AsciiVal(text)) => match self {
                // Only JSON has numbers in strings.
                Type::U64 => Err(self.wrong(&Json::from(text.as_str()))),
                _ => self.read_json(&Json::from(text.as_str())),
            },
            Some(Wire::BoolVal(flag)) => self.read_json(&Json::Bool(*flag)),
            Some(Wire::UintVal(number)) => self.read_json(&Json::from(*number)),
            Some(Wire::IntVal(number)) => self.read_json(&Json::from(*number)),
            Some(Wire::DoubleVal(number)) => self.read_json(&Json::from(*number)),
            Some(_) => Err(format!(
                "the value's encoding is not one for a scalar; {} is allowed",
                self.describe()
            )),
            None => Err(format!("no value; {} is allowed", self.describe())),
        }
    }

    fn wrong(self, json: &Json) -> String {
        format!("{json} is not allowed; {} is", self.describe())
    }

    /// Reads a scalar of JSON; 64-bit numbers may be strings (RFC 7951 §6.1).
    ///
    /// # Errors
    /// A sentence with what was given and what is allowed.
    pub fn read_json(self, json: &Json) -> Result<Value, String> {
        let value = match (self, json) {
            (Type::Text, Json::String(text)) => Some(Value::Text(text.clone())),
            (Type::Word(words), Json::String(text)) => {
                let word = words.iter().find(|word| *word == text);
                word.map(|word| Value::Text(word.to_string()))
            }
            (Type::Bool, Json::Bool(flag)) => Some(Value::Bool(*flag)),
            (Type::U32, json) => json
                .as_u64()
                .and_then(|n| n.try_into().ok())
                .map(Value::U32),
            (Type::U64, Json::String(text)) => text.parse().ok().map(Value::U64),
            (Type::U64, json) => json.as_u64().map(Value::U64),
            _ => None,
        };
        value.ok_or_else(|| self.wrong(json))
    }
}

impl Value {
    /// In an encoding of [`supported`].
    pub fn encode(&self, encoding: Encoding) -> TypedValue {
        let value = match (encoding, self) {
            (Encoding::Json, _) => return json_value(&self.json(false), false),
            (Encoding::JsonIetf, _) => return json_value(&self.json(true), true),
            (_, Value::Text(text)) => Wire::StringVal(text.clone()),
            (_, Value::Bool(flag)) => Wire::BoolVal(*flag),
            (_, Value::U32(number)) => Wire::UintVal(u64::from(*number)),
            (_, Value::U64(number)) => Wire::UintVal(*number),
        };
        TypedValue { value: Some(value) }
    }

    pub fn number(&self) -> Option<u64> {
        match self {
            Value::U32(number) => Some(u64::from(*number)),
            Value::U64(number) => Some(*number),
            _ => None,
        }
    }

    /// One of the words of an option.
    pub fn word<T: FromStr>(&self) -> Option<T> {
        match self {
            Value::Text(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// As JSON; with `ietf` 64-bit numbers are strings (RFC 7951 §6.1).
    pub fn json(&self, ietf: bool) -> Json {
        match self {
            Value::Text(text) => Json::from(text.as_str()),
            Value::Bool(flag) => Json::from(*flag),
            Value::U32(number) => Json::from(*number),
            Value::U64(number) if ietf => Json::from(number.to_string()),
            Value::U64(number) => Json::from(*number),
        }
    }
}

pub fn json_value(json: &Json, ietf: bool) -> TypedValue {
    let bytes = json.to_string().into_bytes();
    let value = match ietf {
        true => Wire::JsonIetfVal(bytes),
        false => Wire::JsonVal(bytes),
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
        let rate = Value::U64(2_000_000);
        let wire = |encoding| rate.encode(encoding).value.unwrap();
        assert_eq!(wire(Encoding::Proto), Wire::UintVal(2_000_000));
        assert_eq!(
            wire(Encoding::JsonIetf),
            Wire::JsonIetfVal(b"\"2000000\"".to_vec())
        );
        assert_eq!(wire(Encoding::Json), Wire::JsonVal(b"2000000".to_vec()));
        for encoding in ENCODINGS {
            assert_eq!(Type::U64.decode(&rate.encode(encoding)), Ok(rate.clone()));
        }
        assert_eq!(Value::U32(7).json(true), Json::from(7));
    }

    #[test]
    fn what_does_not_fit_is_told_with_what_does() {
        let of = |value| TypedValue { value: Some(value) };
        for (kind, value, text) in [
            (
                Type::U32,
                Wire::IntVal(-1),
                "-1 is not allowed; a whole number from 0 to 4294967295 is",
            ),
            (
                Type::U32,
                Wire::UintVal(1 << 32),
                "4294967296 is not allowed; a whole number from 0 to 4294967295 is",
            ),
            (
                Type::Word(&["strict", "drr"]),
                Wire::StringVal("fq".to_owned()),
                "\"fq\" is not allowed; one of strict, drr is",
            ),
            (
                Type::Bool,
                Wire::JsonIetfVal(b"\"true\"".to_vec()),
                "\"true\" is not allowed; a boolean is",
            ),
            (
                Type::U64,
                Wire::DoubleVal(1.5),
                "1.5 is not allowed; a whole number from 0 to 18446744073709551615 is",
            ),
        ] {
            assert_eq!(kind.decode(&of(value)), Err(text.to_owned()));
        }
        let error = Type::Bool.decode(&of(Wire::JsonVal(b"{".to_vec())));
        assert!(error.unwrap_err().starts_with("not JSON: "));
    }
}
