// SPDX-License-Identifier: Apache-2.0
//! The shape of a P4 type, and values of it as `P4Data` (P4Runtime 1.5 §8.5): digests and registers.
//!
//! The headers of packet-in and packet-out as P4Info gives them, and controller metadata to and from their bytes.

use std::cell::Cell;
use std::collections::HashMap;

use bytes::Bytes;
use v1model::Bits;

use super::{preambles, same, unique, unknown, width};
use crate::bytestring;
use crate::error::{in_range, refusal, refuse, At, Checked, Refusal};
use crate::proto::p4info::p4_bitstring_like_type_spec::TypeSpec as Bitstring;
use crate::proto::p4info::p4_data_type_spec::TypeSpec;
use crate::proto::p4info::p4_new_type_spec::Representation;
use crate::proto::p4info::p4_new_type_translation::SdnType;
use crate::proto::p4info::{P4BitstringLikeTypeSpec, P4DataTypeSpec, P4Info, P4TypeInfo};
use crate::proto::p4rt::p4_data::Data;
use crate::proto::p4rt::{P4Data, P4Header, P4StructLike, PacketMetadata};

/// Nesting of types that is followed; deeper P4Info is refused, so that a cycle cannot hang the switch.
const MAX_DEPTH: u32 = 16;

/// A P4 type, flattened to what encoding and decoding need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DataShape {
    /// `bit<W>`
    Bit(u32),
    /// `int<W>`
    Int(u32),
    Bool,
    Tuple(Vec<DataShape>),
    Struct(Vec<DataShape>),
    /// Fields of a header; data of a digest always comes from a valid one.
    Header(Vec<DataShape>),
    /// An enum without values of its own: the member's name travels.
    Enum(Vec<String>),
    Error(Vec<String>),
    /// A serializable enum of this width: its value travels.
    SerializableEnum(u32),
}

/// Types, and names of enums and errors, that all shapes of a P4Info consist of at most: structs of structs of structs
/// would be more than any memory holds.
const MAX_PARTS: usize = 1 << 20;

/// The named types of a P4Info, and how many parts its shapes may still have.
pub(super) struct Types {
    all: P4TypeInfo,
    left: Cell<usize>,
}

impl Types {
    pub fn new(info: &P4Info) -> Self {
        Self {
            all: info.type_info.clone().unwrap_or_default(),
            left: Cell::new(MAX_PARTS),
        }
    }

    /// The shape of a type whose values have these widths in the pipeline.
    ///
    /// # Errors
    /// INVALID_ARGUMENT or UNIMPLEMENTED when the type is incomplete, too large, of an unsupported kind, or has other
    /// widths.
    pub fn shape(&self, spec: &Option<P4DataTypeSpec>, widths: &[u32]) -> Checked<DataShape> {
        let shape = self.build(spec.as_ref(), 0)?;
        let mut own = Vec::new();
        shape.leaves(&mut own);
        // What has no width of its own has the pipeline's.
        for (own, width) in own.iter_mut().zip(widths) {
            own.get_or_insert(*width);
        }
        let widths: Vec<Option<u32>> = widths.iter().copied().map(Some).collect();
        same("bits of the values", own, widths).map(|()| shape)
    }

    fn take(&self, parts: usize) -> Checked {
        match self.left.get().checked_sub(parts) {
            Some(left) => self.left.set(left),
            None => refuse!("P4Info's types have more than {MAX_PARTS} parts"),
        }
        Ok(())
    }

    fn names(&self, names: impl ExactSizeIterator<Item = String>) -> Checked<Vec<String>> {
        self.take(names.len())?;
        Ok(names.collect())
    }

    fn each<'a>(
        &self,
        members: impl Iterator<Item = Option<&'a P4DataTypeSpec>>,
        depth: u32,
    ) -> Checked<Vec<DataShape>> {
        members.map(|m| self.build(m, depth + 1)).collect()
    }

    fn build(&self, spec: Option<&P4DataTypeSpec>, depth: u32) -> Checked<DataShape> {
        let Some(spec) = spec.and_then(|s| s.type_spec.as_ref()) else {
            refuse!("P4Info gives no type");
        };
        if depth > MAX_DEPTH {
            refuse!("P4Info nests types more than {MAX_DEPTH} deep");
        }
        self.take(1)?;
        let all = &self.all;
        Ok(match spec {
            TypeSpec::Bitstring(b) => bits(b)?,
            TypeSpec::Bool(_) => DataShape::Bool,
            TypeSpec::Tuple(t) => DataShape::Tuple(self.each(t.members.iter().map(Some), depth)?),
            TypeSpec::Struct(name) => {
                let own = find(&all.structs, &name.name)?.members.iter();
                DataShape::Struct(self.each(own.map(|m| m.type_spec.as_ref()), depth)?)
            }
            TypeSpec::Header(name) => {
                let own = &find(&all.headers, &name.name)?.members;
                self.take(own.len())?;
                let own = own
                    .iter()
                    .map(|m| bits(&m.type_spec.clone().unwrap_or_default()));
                DataShape::Header(own.collect::<Result<_, _>>()?)
            }
            TypeSpec::Enum(name) => {
                let own = find(&all.enums, &name.name)?.members.iter();
                DataShape::Enum(self.names(own.map(|m| m.name.clone()))?)
            }
            TypeSpec::Error(_) => {
                let own = all.error.as_ref().map_or(&[][..], |e| &e.members);
                DataShape::Error(self.names(own.iter().cloned())?)
            }
            TypeSpec::SerializableEnum(name) => {
                let own = &find(&all.serializable_enums, &name.name)?.underlying_type;
                DataShape::SerializableEnum(width(own.as_ref().map_or(0, |t| t.bitwidth))?)
            }
            TypeSpec::NewType(name) => match &find(&all.new_types, &name.name)?.representation {
                Some(Representation::OriginalType(t)) => self.build(Some(t), depth + 1)?,
                Some(Representation::TranslatedType(t)) => match &t.sdn_type {
                    Some(SdnType::SdnBitwidth(w)) => DataShape::Bit(width(*w)?),
                    _ => return Err(unsupported(name)),
                },
                None => refuse!("P4Info gives no type"),
            },
            other => return Err(unsupported(other)),
        })
    }
}

fn find<'a, T>(all: &'a HashMap<String, T>, name: &str) -> Checked<&'a T> {
    let own = all.get(name);
    own.ok_or_else(|| refusal!("P4Info does not define the type {name}"))
}

fn unsupported(what: &impl std::fmt::Debug) -> Refusal {
    refusal!(
        Unimplemented,
        "a value of the type {what:?} is not supported here"
    )
}

fn bits(spec: &P4BitstringLikeTypeSpec) -> Checked<DataShape> {
    match &spec.type_spec {
        Some(Bitstring::Bit(b)) => Ok(DataShape::Bit(width(b.bitwidth)?)),
        Some(Bitstring::Int(i)) => Ok(DataShape::Int(width(i.bitwidth)?)),
        Some(varbit) => Err(unsupported(varbit)),
        None => refuse!("P4Info gives no type"),
    }
}

impl DataShape {
    /// Widths of the values that make one value of this shape, in order; None where the pipeline decides.
    fn leaves(&self, out: &mut Vec<Option<u32>>) {
        match self {
            Self::Bit(w) | Self::Int(w) | Self::SerializableEnum(w) => out.push(Some(*w)),
            Self::Bool => out.push(Some(1)),
            Self::Enum(_) | Self::Error(_) => out.push(None),
            Self::Tuple(m) | Self::Struct(m) | Self::Header(m) => {
                m.iter().for_each(|s| s.leaves(out))
            }
        }
    }

    /// One value of this shape out of its leaves, which are taken from `values`.
    pub fn encode<'a>(&self, values: &mut impl Iterator<Item = &'a Bits>) -> P4Data {
        let mut next = || values.next().cloned().unwrap_or_else(|| Bits::zero(1));
        let data = match self {
            Self::Bit(_) => Data::Bitstring(bytestring::encode(&next())),
            Self::Int(w) => Data::Bitstring(bytestring::encode_signed(&next(), *w)),
            Self::Bool => Data::Bool(!next().is_zero()),
            Self::SerializableEnum(_) => Data::EnumValue(bytestring::encode(&next())),
            Self::Enum(names) => Data::Enum(name(names, &next())),
            Self::Error(names) => Data::Error(name(names, &next())),
            Self::Tuple(m) | Self::Struct(m) | Self::Header(m) => {
                let members: Vec<P4Data> = m.iter().map(|s| s.encode(values)).collect();
                match self {
                    Self::Tuple(_) => Data::Tuple(P4StructLike { members }),
                    Self::Struct(_) => Data::Struct(P4StructLike { members }),
                    _ => Data::Header(P4Header {
                        is_valid: true,
                        bitstrings: members.into_iter().filter_map(bitstring).collect(),
                    }),
                }
            }
        };
        P4Data { data: Some(data) }
    }

    /// The one value of a shape with a single leaf (registers) out of a message.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for another kind of data, OUT_OF_RANGE for a value that does not fit.
    pub fn decode(&self, data: &P4Data, width: u32) -> Checked<Bits> {
        match (self, &data.data) {
            (Self::Bit(_), Some(Data::Bitstring(b)))
            | (Self::SerializableEnum(_), Some(Data::EnumValue(b))) => bytestring::decode(b, width),
            (Self::Int(_), Some(Data::Bitstring(b))) => bytestring::decode_signed(b, width),
            (Self::Bool, Some(Data::Bool(b))) => bytestring::decode(&[u8::from(*b)], width),
            (Self::Tuple(m), Some(Data::Tuple(s))) | (Self::Struct(m), Some(Data::Struct(s)))
                if m.len() == 1 && s.members.len() == 1 =>
            {
                m[0].decode(&s.members[0], width)
            }
            _ => refuse!("the data is no value of the type {self:?}"),
        }
    }
}

fn bitstring(value: P4Data) -> Option<bytes::Bytes> {
    match value.data {
        Some(Data::Bitstring(bytes)) => Some(bytes),
        _ => None,
    }
}

fn name(names: &[String], value: &Bits) -> String {
    let index = value.to_u64().and_then(|v| usize::try_from(v).ok());
    let own = index.and_then(|i| names.get(i).cloned());
    own.unwrap_or_else(|| value.to_string())
}

/// Fields of a controller header, most significant bit first, without gaps; behind the last one zeros up to a whole
/// byte, as PI (BMv2's server) and p4c have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketHeader {
    fields: Vec<Field>,
    len_bytes: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Field {
    id: u32,
    name: String,
    width: u32,
    /// First bit, counted from the header's start.
    offset: u32,
}

/// Longest header of packet-in and packet-out.
const MAX_BITS: u32 = 1 << 15;

/// The headers named `packet_in` and `packet_out`.
pub(super) fn bind(info: &P4Info) -> Checked<(Option<PacketHeader>, Option<PacketHeader>)> {
    let all = &info.controller_packet_metadata;
    let kind = "controller packet metadata";
    let (mut packet_in, mut packet_out) = (None, None);
    for (preamble, metadata) in preambles(kind, all.iter().map(|m| &m.preamble))?
        .iter()
        .zip(all)
    {
        let name = &preamble.name;
        let fields = metadata.metadata.iter();
        let header = PacketHeader::new(fields.map(|m| (m.id, &*m.name, m.bitwidth))).at(name)?;
        match &**name {
            "packet_in" => packet_in = Some(header),
            "packet_out" => packet_out = Some(header),
            _ => refuse!("{kind} {name} is unknown; known: packet_in, packet_out"),
        }
    }
    Ok((packet_in, packet_out))
}

impl PacketHeader {
    fn new<'a>(source: impl Iterator<Item = (u32, &'a str, i32)> + Clone) -> Checked<Self> {
        unique(source.clone().map(|(id, ..)| id))?;
        let (mut fields, mut offset) = (Vec::<Field>::new(), 0);
        for (id, name, bits) in source {
            let width = in_range("bits", bits, 1..=4096).at(name)?;
            let name = name.to_owned();
            fields.push(Field {
                id,
                name,
                width,
                offset,
            });
            offset = in_range("bits of the header", offset + width, 1..=MAX_BITS)?;
        }
        let len_bytes = offset.div_ceil(8) as usize;
        Ok(Self { fields, len_bytes })
    }

    /// A packet-out: header bytes, then the payload. A field that is not given is 0, as in PI: clients rely on it.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a field that is unknown or given twice, OUT_OF_RANGE for a value that does not fit.
    pub fn encode(&self, metadata: &[PacketMetadata], payload: &[u8]) -> Checked<Vec<u8>> {
        let mut frame = vec![0; self.len_bytes];
        for (i, given) in metadata.iter().enumerate() {
            let id = given.metadata_id;
            let Some(field) = self.fields.iter().find(|f| f.id == id) else {
                let known = self.fields.iter().map(|f| (f.id, &*f.name));
                refuse!("{}", unknown("metadata", id, known));
            };
            if metadata[..i].iter().any(|m| m.metadata_id == id) {
                refuse!("metadata {} is given twice", field.name);
            }
            let value = bytestring::decode(&given.value, field.width);
            let value = value.at(format_args!("metadata {}", field.name))?;
            let spare = value.width().next_multiple_of(8) - value.width();
            copy_bits(
                (value.as_be_bytes(), spare),
                (&mut frame, field.offset),
                field.width,
            );
        }
        frame.extend_from_slice(payload);
        Ok(frame)
    }

    /// Splits a frame from the CPU port into metadata and payload; None when it is shorter than the header.
    pub fn decode(&self, frame: &Bytes) -> Option<(Vec<PacketMetadata>, Bytes)> {
        let payload = (frame.len() >= self.len_bytes).then(|| frame.slice(self.len_bytes..))?;
        let metadata = self.fields.iter().map(|field| {
            let mut bytes = vec![0; field.width.div_ceil(8) as usize];
            let spare = bytes.len() as u32 * 8 - field.width;
            copy_bits((frame, field.offset), (&mut bytes, spare), field.width);
            PacketMetadata {
                metadata_id: field.id,
                value: bytestring::encode_be(&bytes),
            }
        });
        Some((metadata.collect(), payload))
    }
}

/// Copies `width` bits from a place, given by its bit, to one that is all zeros.
fn copy_bits((from, from_bit): (&[u8], u32), (to, to_bit): (&mut [u8], u32), width: u32) {
    for bit in 0..width {
        let (from_bit, to_bit) = (from_bit + bit, to_bit + bit);
        if from[from_bit as usize / 8] & (0x80 >> (from_bit % 8)) != 0 {
            to[to_bit as usize / 8] |= 0x80 >> (to_bit % 8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> PacketHeader {
        PacketHeader::new([(1, "port", 9), (2, "_pad", 7), (3, "stamp", 48)].into_iter()).unwrap()
    }

    fn meta(id: u32, value: &[u8]) -> PacketMetadata {
        PacketMetadata {
            metadata_id: id,
            value: Bytes::copy_from_slice(value),
        }
    }

    #[test]
    fn metadata_round_trips_through_the_header() {
        let metadata = [
            meta(1, &[0x01, 0xfe]),
            meta(2, &[0]),
            meta(3, &[0x12, 0x34]),
        ];
        let frame = header().encode(&metadata, b"data").unwrap();
        assert_eq!(
            frame,
            [0xff, 0, 0, 0, 0, 0, 0x12, 0x34, b'd', b'a', b't', b'a']
        );
        let (back, payload) = header().decode(&Bytes::from(frame)).unwrap();
        assert_eq!(back, metadata);
        assert_eq!(&payload[..], b"data");
    }

    #[test]
    fn short_frames_are_no_packet_in() {
        assert!(header().decode(&Bytes::from_static(&[0; 7])).is_none());
    }

    #[test]
    fn wrong_metadata_is_named() {
        let text = |m: &[PacketMetadata]| header().encode(m, b"").unwrap_err().message;
        assert_eq!(
            text(&[meta(7, &[1])]),
            "metadata id 0x7 is unknown; known: 0x1 port, 0x2 _pad, 0x3 stamp"
        );
        assert_eq!(
            text(&[meta(1, &[1]), meta(1, &[1])]),
            "metadata port is given twice"
        );
        assert_eq!(
            text(&[meta(1, &[2, 0])]),
            "metadata port: the value 0x0200 needs 10 bits, but the field is bit<9>"
        );
    }

    #[test]
    fn metadata_that_is_not_given_is_zero() {
        let frame = header().encode(&[meta(3, &[9])], b"x").unwrap();
        assert_eq!(frame, [0, 0, 0, 0, 0, 0, 0, 9, b'x']);
        assert_eq!(header().encode(&[], b"").unwrap(), [0; 8]);
    }

    #[test]
    fn a_header_of_odd_bits_is_padded_at_its_end() {
        let header = PacketHeader::new([(1, "in", 9), (2, "out", 9)].into_iter()).unwrap();
        let metadata = [meta(1, &[0x01, 0xff]), meta(2, &[0x01])];
        let frame = header.encode(&metadata, b"data").unwrap();
        assert_eq!(frame, [0xff, 0x80, 0x40, b'd', b'a', b't', b'a']);
        // What the padding holds is not looked at.
        let mut padded = frame.clone();
        padded[2] |= 0x3f;
        let (back, payload) = header.decode(&Bytes::from(padded)).unwrap();
        assert_eq!(back, metadata);
        assert_eq!(&payload[..], b"data");
    }
}
