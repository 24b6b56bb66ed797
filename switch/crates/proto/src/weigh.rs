// SPDX-License-Identifier: Apache-2.0
//! What a message takes when it is decoded, from its bytes alone: an empty element of a list takes two bytes on the wire
//! and hundreds in memory.
//!
//! The sizes are upper bounds for what prost makes of the descriptors, a vector's growth included.

use std::collections::HashMap;
use std::sync::OnceLock;

use prost::encoding::{decode_key, decode_varint, skip_field, DecodeContext, WireType};
use prost::DecodeError;
use prost_reflect::{FieldDescriptor, Kind as Type, MessageDescriptor};

/// One field as it stands in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    pub number: u32,
    /// Its value, where that has a length of its own.
    pub value: Option<&'a [u8]>,
    /// With its number.
    pub whole: &'a [u8],
}

/// The fields of a message in order, read as prost reads them.
#[derive(Debug, Clone)]
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    fn one(&mut self) -> Result<Field<'a>, DecodeError> {
        let before = self.0;
        // Nearly all fields: a number below 16, a value with a length below 128.
        if let [key @ ..0x80, length @ ..0x80, rest @ ..] = before {
            let (number, end) = (u32::from(key >> 3), usize::from(*length));
            if number > 0 && key & 7 == WireType::LengthDelimited as u8 && end <= rest.len() {
                let value;
                (value, self.0) = rest.split_at(end);
                return Ok(Field {
                    number,
                    value: Some(value),
                    whole: &before[..2 + end],
                });
            }
        }
        let (number, wire_type) = decode_key(&mut self.0)?;
        let mut value = None;
        if wire_type == WireType::LengthDelimited {
            let mut after = self.0;
            let length = usize::try_from(decode_varint(&mut after)?).unwrap_or(usize::MAX);
            value = after.get(..length);
        }
        skip_field(wire_type, number, &mut self.0, DecodeContext::default())?;
        let whole = &before[..before.len() - self.0.len()];
        Ok(Field {
            number,
            value,
            whole,
        })
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.one();
        if field.is_err() {
            self.0 = &[]; // nothing after it can be read
        }
        Some(field)
    }
}

/// Why a message is not to be decoded.
#[derive(Debug, Clone, PartialEq)]
pub enum Refused {
    /// It would take more than it may.
    TooMuch,
    /// It is none.
    Malformed(DecodeError),
}

impl From<DecodeError> for Refused {
    fn from(error: DecodeError) -> Refused {
        Refused::Malformed(error)
    }
}

/// Weighs messages of one type.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    kind: usize,
}

impl Scale {
    /// For the type of this name: `p4.v1.ReadRequest`; None where the descriptors have none.
    pub fn of(name: &str) -> Option<Scale> {
        let kind = *kinds().by_name.get(name)?;
        Some(Scale { kind })
    }

    /// The bytes that the decoded message takes, at most.
    ///
    /// # Errors
    /// [`Refused`] as soon as they are more than `most`, or where prost would not read on.
    pub fn weigh(self, message: &[u8], most: usize) -> Result<usize, Refused> {
        let mut weight = Weight { bytes: 0, most };
        weight.add(kinds().all[self.kind].bytes)?;
        weight.message(self.kind, message, DEPTH)?;
        Ok(weight.bytes)
    }
}

/// As deep as prost goes.
const DEPTH: usize = 100;
/// A vector's first push makes room for four; later ones double the room, and copy what is there.
const GROWTH: usize = 4;
/// So many entries has a tree's first node.
const MAP_GROWTH: usize = 12;
/// What the allocator adds to a piece of memory.
const PIECE: usize = 16;
/// JSON as serde_json has it: a list's first value, an object's first member, and each more of either.
const JSON_LIST: usize = 304;
const JSON_OBJECT: usize = 400;
const JSON_MORE: usize = 210;

struct Weight {
    bytes: usize,
    most: usize,
}

impl Weight {
    fn add(&mut self, bytes: usize) -> Result<(), Refused> {
        self.bytes = self.bytes.saturating_add(bytes);
        match self.bytes <= self.most {
            true => Ok(()),
            false => Err(Refused::TooMuch),
        }
    }

    fn message(&mut self, kind: usize, message: &[u8], depth: usize) -> Result<(), Refused> {
        let kind = &kinds().all[kind];
        for field in Fields(message) {
            let field = field?;
            let Some(shape) = kind.field(field.number) else {
                continue; // prost passes over it
            };
            self.add(shape.each)?;
            let Some(value) = field.value else { continue };
            match shape.value {
                Value::Number { .. } if !shape.is_list => {}
                Value::Number { bytes, least } => self.add(value.len() / least * bytes * GROWTH)?,
                Value::Text => self.add(value.len() + PIECE)?,
                Value::Json => self.json(value)?,
                // Deeper than that prost reads nothing.
                Value::Message(inner) if depth > 0 => self.message(inner, value, depth - 1)?,
                Value::Message(_) => {}
            }
        }
        Ok(())
    }
}

impl Weight {
    fn json(&mut self, text: &[u8]) -> Result<(), Refused> {
        self.add(text.len() + PIECE)?;
        // In an older tool's wrapper what is a text cannot be told: all of it counts.
        let first = text.iter().find(|b| !b.is_ascii_whitespace());
        let is_plain = matches!(first, Some(b'{' | b'['));
        let (mut opened, mut in_text, mut escaped) = (0, false, false);
        for byte in text {
            if in_text {
                in_text = escaped || *byte != b'"';
                escaped = !escaped && *byte == b'\\';
                continue;
            }
            if opened > 0 && !byte.is_ascii_whitespace() {
                if !matches!(byte, b']' | b'}') {
                    self.add(opened)?;
                }
                opened = 0;
            }
            match byte {
                b'"' => in_text = is_plain,
                b'[' => opened = JSON_LIST,
                b'{' => opened = JSON_OBJECT,
                b',' => self.add(JSON_MORE)?,
                _ => {}
            }
        }
        Ok(())
    }
}

/// A type of message.
#[derive(Debug, Default)]
struct Kind {
    /// What one takes, without what is behind its pointers.
    bytes: usize,
    /// By number.
    fields: Vec<(u32, Shape)>,
}

impl Kind {
    fn field(&self, number: u32) -> Option<&Shape> {
        let at = self.fields.binary_search_by_key(&number, |(n, _)| *n);
        at.ok().map(|at| &self.fields[at].1)
    }
}

#[derive(Debug, Clone, Copy)]
struct Shape {
    /// What each of them takes, whatever is in it.
    each: usize,
    is_list: bool,
    value: Value,
}

#[derive(Debug, Clone, Copy)]
enum Value {
    /// In memory, and at least on the wire.
    Number {
        bytes: usize,
        least: usize,
    },
    Text,
    /// A text that is JSON: its reader makes a tree of it.
    Json,
    Message(usize),
}

struct Kinds {
    all: Vec<Kind>,
    by_name: HashMap<String, usize>,
}

fn kinds() -> &'static Kinds {
    static KINDS: OnceLock<Kinds> = OnceLock::new();
    KINDS.get_or_init(|| {
        let pool = crate::descriptors();
        let messages: Vec<MessageDescriptor> = pool.all_messages().collect();
        let names = messages.iter().map(|m| m.full_name().to_owned());
        let by_name: HashMap<String, usize> = names.zip(0..).collect();
        let all = messages.iter().map(|message| Kind {
            bytes: message_bytes(message, &mut Vec::new()),
            fields: message
                .fields() // in the order of their numbers
                .map(|field| (field.number(), shape(&field, &by_name)))
                .collect(),
        });
        Kinds {
            all: all.collect(),
            by_name,
        }
    })
}

/// Fields that are read as JSON.
const JSON: [&str; 3] = [
    "p4.v1.ForwardingPipelineConfig.p4_device_config",
    "gnmi.TypedValue.json_val",
    "gnmi.TypedValue.json_ietf_val",
];

fn shape(field: &FieldDescriptor, by_name: &HashMap<String, usize>) -> Shape {
    let bytes = value_bytes(field, &mut Vec::new());
    let each = match (field.is_map(), field.is_list()) {
        (true, _) => bytes * MAP_GROWTH,
        (_, true) => bytes * GROWTH,
        // In its place in the message, but for one that a box holds.
        _ if matches!(field.kind(), Type::Message(_)) => bytes,
        _ => 0,
    };
    let number = |bytes, least| Value::Number { bytes, least };
    let value = match field.kind() {
        Type::Message(message) => Value::Message(by_name[message.full_name()]),
        Type::String => Value::Text,
        Type::Bytes if JSON.contains(&field.full_name()) => Value::Json,
        Type::Bytes => Value::Text,
        Type::Double | Type::Fixed64 | Type::Sfixed64 => number(8, 8),
        Type::Float | Type::Fixed32 | Type::Sfixed32 => number(4, 4),
        Type::Int64 | Type::Uint64 | Type::Sint64 => number(8, 1),
        Type::Bool => number(1, 1),
        Type::Int32 | Type::Uint32 | Type::Sint32 | Type::Enum(_) => number(4, 1),
    };
    Shape {
        each,
        is_list: field.is_list(),
        value,
    }
}

/// `above`: the messages that this one stands in; one of them again is behind a box.
fn message_bytes(message: &MessageDescriptor, above: &mut Vec<String>) -> usize {
    const BOX: usize = 8;
    if above.iter().any(|name| name == message.full_name()) {
        return BOX;
    }
    above.push(message.full_name().to_owned());
    let of_fields = message.fields().filter(|f| f.containing_oneof().is_none());
    let of_fields: usize = of_fields.map(|f| place_bytes(&f, above)).sum();
    let of_choices = message.oneofs().map(|choice| {
        let largest = choice.fields().map(|f| place_bytes(&f, above)).max();
        largest.unwrap_or(0) + 8
    });
    let bytes = of_fields + of_choices.sum::<usize>();
    above.pop();
    bytes
}

/// What a field takes in its message.
fn place_bytes(field: &FieldDescriptor, above: &mut Vec<String>) -> usize {
    const VECTOR: usize = 24;
    const MAP: usize = 48;
    match (field.is_map(), field.is_list()) {
        (true, _) => MAP,
        (_, true) => VECTOR,
        _ => value_bytes(field, above),
    }
}

/// What one value of a field takes where it stands.
fn value_bytes(field: &FieldDescriptor, above: &mut Vec<String>) -> usize {
    match field.kind() {
        Type::Message(message) => message_bytes(&message, above) + 8,
        Type::String => 24,
        Type::Bytes => 32,
        _ => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{gnmi, p4info, p4rt};
    use prost::Message;

    #[test]
    fn short_fields_are_read_as_prost_reads_them() {
        for (key, length) in (0..=255).flat_map(|key| [0, 1, 5, 127, 128].map(|n| (key, n))) {
            for rest in [0, 1, 4, 5, 126, 127, 200] {
                let message = [&[key, length][..], &vec![0; rest]].concat();
                let mut after = &message[..];
                let read = decode_key(&mut after).and_then(|(number, wire_type)| {
                    skip_field(wire_type, number, &mut after, DecodeContext::default())?;
                    Ok((number, &message[..message.len() - after.len()]))
                });
                let field = Fields(&message).next().unwrap();
                let shown = field.as_ref().map(|field| (field.number, field.whole));
                assert_eq!(shown.ok(), read.ok(), "{key} {length} {rest}");
                if let (Ok(field), 2, ..0x80) = (&field, key & 0x87, length) {
                    assert_eq!(field.value, Some(&message[2..2 + usize::from(length)]));
                }
            }
        }
    }

    #[test]
    fn no_type_is_larger_than_the_descriptors_say() {
        macro_rules! check {
            ($($name:literal $type:ty),* $(,)?) => {$(
                let said = kinds().all[Scale::of($name).unwrap().kind].bytes;
                let is = size_of::<$type>();
                assert!((is..=2 * is + 32).contains(&said), "{}: {said}, is {is}", $name);
            )*};
        }
        check!(
            "p4.v1.WriteRequest" p4rt::WriteRequest,
            "p4.v1.SetForwardingPipelineConfigRequest" p4rt::SetForwardingPipelineConfigRequest,
            "p4.v1.StreamMessageRequest" p4rt::StreamMessageRequest,
            "p4.v1.Update" p4rt::Update,
            "p4.v1.Entity" p4rt::Entity,
            "p4.v1.TableEntry" p4rt::TableEntry,
            "p4.v1.FieldMatch" p4rt::FieldMatch,
            "p4.v1.Action.Param" p4rt::action::Param,
            "p4.v1.ActionProfileAction" p4rt::ActionProfileAction,
            "p4.v1.Replica" p4rt::Replica,
            "p4.v1.P4Data" p4rt::P4Data,
            "p4.v1.PacketMetadata" p4rt::PacketMetadata,
            "p4.config.v1.P4Info" p4info::P4Info,
            "p4.config.v1.Table" p4info::Table,
            "p4.config.v1.MatchField" p4info::MatchField,
            "p4.config.v1.ActionRef" p4info::ActionRef,
            "p4.config.v1.Action" p4info::Action,
            "p4.config.v1.Preamble" p4info::Preamble,
            "gnmi.GetRequest" gnmi::GetRequest,
            "gnmi.SetRequest" gnmi::SetRequest,
            "gnmi.Path" gnmi::Path,
            "gnmi.PathElem" gnmi::PathElem,
            "gnmi.Update" gnmi::Update,
            "gnmi.Subscription" gnmi::Subscription,
            "gnmi.TypedValue" gnmi::TypedValue,
        );
    }

    #[test]
    fn lists_of_nothing_are_heavy_and_texts_are_not() {
        let scale = Scale::of("p4.v1.ReadRequest").unwrap();
        let empty = scale.weigh(&[], usize::MAX).unwrap();
        let entities = vec![p4rt::Entity::default(); 1_000];
        let bytes = p4rt::ReadRequest {
            entities,
            ..Default::default()
        };
        let bytes = bytes.encode_to_vec();
        assert_eq!(bytes.len(), 2_000);
        let weight = scale.weigh(&bytes, usize::MAX).unwrap();
        let least = 3 * 1_000 * size_of::<p4rt::Entity>();
        assert!((least..3 * least).contains(&(weight - empty)), "{weight}");
        assert_eq!(scale.weigh(&bytes, least), Err(Refused::TooMuch));

        let scale = Scale::of("p4.v1.PacketOut").unwrap();
        let packet = p4rt::PacketOut {
            payload: vec![7; 100_000].into(),
            ..Default::default()
        };
        let weight = scale.weigh(&packet.encode_to_vec(), 101_000).unwrap();
        assert!(weight >= 100_000);
    }

    #[test]
    fn json_counts_by_what_its_reader_makes_of_it() {
        let scale = Scale::of("gnmi.TypedValue").unwrap();
        let weigh = |json: &str| {
            let value = gnmi::typed_value::Value::JsonVal(json.into());
            let value = gnmi::TypedValue { value: Some(value) };
            let empty = scale.weigh(&[], usize::MAX).unwrap();
            scale.weigh(&value.encode_to_vec(), usize::MAX).unwrap() - empty - json.len() - PIECE
        };
        assert_eq!(weigh("[] "), 0);
        assert_eq!(weigh("[ 1]"), JSON_LIST);
        assert_eq!(weigh(r#"{"a": [], "b": {}}"#), JSON_OBJECT + JSON_MORE);
        assert_eq!(
            weigh(r#"["[,\"[,", "\\", {"{": 1}]"#),
            JSON_LIST + 2 * JSON_MORE + JSON_OBJECT
        );
        assert_eq!(weigh("\n\"[1,"), JSON_LIST + JSON_MORE);
    }

    #[test]
    fn numbers_groups_unknown_fields_and_depth() {
        // ActionProfile.table_ids = 2, packed and one by one.
        let scale = Scale::of("p4.config.v1.ActionProfile").unwrap();
        let empty = scale.weigh(&[], usize::MAX).unwrap();
        let packed = scale.weigh(&[0x12, 3, 1, 2, 3], usize::MAX).unwrap() - empty;
        assert!((3 * 4 * 4..200).contains(&packed), "{packed}");
        let single = scale.weigh(&[0x10, 1, 0x10, 2], usize::MAX).unwrap() - empty;
        assert!((2 * 16..200).contains(&single), "{single}");
        // Field 1000 as a number, as bytes, and as a group with a field in it: prost keeps nothing of them.
        for unknown in [
            &[0xc0, 0x3e, 5][..],
            &[0xc2, 0x3e, 2, 0, 0],
            &[0xc3, 0x3e, 0x08, 1, 0xc4, 0x3e],
        ] {
            assert_eq!(scale.weigh(unknown, usize::MAX), Ok(empty));
        }
        for malformed in [&[0xff][..], &[0x12, 9, 1], &[0x0c], &[0xc3, 0x3e], &[0x07]] {
            let refused = scale.weigh(malformed, usize::MAX);
            assert!(matches!(refused, Err(Refused::Malformed(_))), "{refused:?}");
            assert!(p4info::ActionProfile::decode(malformed).is_err());
        }
        // P4Data in P4Data in … (struct = 2 of P4Data, members = 1 of P4StructLike).
        let mut deep = Vec::new();
        for _ in 0..200 {
            for tag in [0x0a, 0x1a] {
                let mut outer = vec![tag];
                prost::encoding::encode_varint(deep.len() as u64, &mut outer);
                outer.append(&mut deep);
                deep = outer;
            }
        }
        let scale = Scale::of("p4.v1.P4Data").unwrap();
        let weight = scale.weigh(&deep, usize::MAX);
        assert!(weight.is_ok(), "{weight:?}");
        assert!(p4rt::P4Data::decode(deep.as_slice()).is_err());
    }
}
