// SPDX-License-Identifier: Apache-2.0
//! The shape of a P4 type, and values of it as `P4Data` (P4Runtime 1.5 §8.5): digests and registers.

use std::cell::Cell;

use v1model::Bits;

use super::width;
use crate::bytestring;
use crate::error::{refusal, refuse, Refusal};
use crate::proto::p4info::p4_bitstring_like_type_spec as bitstring;
use crate::proto::p4info::p4_data_type_spec::TypeSpec;
use crate::proto::p4info::p4_new_type_spec::Representation;
use crate::proto::p4info::p4_new_type_translation::SdnType;
use crate::proto::p4info::{P4BitstringLikeTypeSpec, P4DataTypeSpec, P4Info, P4TypeInfo};
use crate::proto::p4rt::{p4_data, P4Data, P4Header, P4StructLike};

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
pub(super) struct Types<'a> {
    info: Option<&'a P4TypeInfo>,
    left: Cell<usize>,
}

impl<'a> Types<'a> {
    pub fn new(info: &'a P4Info) -> Self {
        Self {
            info: info.type_info.as_ref(),
            left: Cell::new(MAX_PARTS),
        }
    }

    /// # Errors
    /// INVALID_ARGUMENT or UNIMPLEMENTED when the type is incomplete, too large or of an unsupported sort.
    pub fn shape(&self, spec: Option<&P4DataTypeSpec>) -> Result<DataShape, Refusal> {
        let empty = P4TypeInfo::default();
        build(self, self.info.unwrap_or(&empty), spec, 0)
    }

    fn take(&self, parts: usize) -> Result<(), Refusal> {
        let left = self.left.get().checked_sub(parts).ok_or_else(|| {
            refusal!(
                invalid,
                "the types of P4Info's digests and registers have more than {MAX_PARTS} parts"
            )
        })?;
        self.left.set(left);
        Ok(())
    }
}

fn build(
    all: &Types,
    types: &P4TypeInfo,
    spec: Option<&P4DataTypeSpec>,
    depth: u32,
) -> Result<DataShape, Refusal> {
    let spec = spec
        .and_then(|s| s.type_spec.as_ref())
        .ok_or_else(|| Refusal::invalid("P4Info gives no type"))?;
    if depth > MAX_DEPTH {
        refuse!(invalid, "P4Info nests types more than {MAX_DEPTH} deep");
    }
    all.take(1)?;
    let unknown = |name: &str| refusal!(invalid, "P4Info does not define the type {name}");
    Ok(match spec {
        TypeSpec::Bitstring(b) => bits(b)?,
        TypeSpec::Bool(_) => DataShape::Bool,
        TypeSpec::Tuple(t) => {
            let members = t
                .members
                .iter()
                .map(|m| build(all, types, Some(m), depth + 1));
            DataShape::Tuple(members.collect::<Result<_, _>>()?)
        }
        TypeSpec::Struct(name) => {
            let own = types
                .structs
                .get(&name.name)
                .ok_or_else(|| unknown(&name.name))?;
            let members = own
                .members
                .iter()
                .map(|m| build(all, types, m.type_spec.as_ref(), depth + 1));
            DataShape::Struct(members.collect::<Result<_, _>>()?)
        }
        TypeSpec::Header(name) => {
            let own = types
                .headers
                .get(&name.name)
                .ok_or_else(|| unknown(&name.name))?;
            all.take(own.members.len())?;
            let members = own.members.iter().map(|m| {
                m.type_spec
                    .as_ref()
                    .ok_or_else(|| unknown(&m.name))
                    .and_then(bits)
            });
            DataShape::Header(members.collect::<Result<_, _>>()?)
        }
        TypeSpec::Enum(name) => {
            let own = types
                .enums
                .get(&name.name)
                .ok_or_else(|| unknown(&name.name))?;
            all.take(own.members.len())?;
            DataShape::Enum(own.members.iter().map(|m| m.name.clone()).collect())
        }
        TypeSpec::Error(_) => {
            let names = types.error.as_ref().map_or(&[][..], |e| &e.members);
            all.take(names.len())?;
            DataShape::Error(names.to_vec())
        }
        TypeSpec::SerializableEnum(name) => {
            let own = types
                .serializable_enums
                .get(&name.name)
                .ok_or_else(|| unknown(&name.name))?;
            let bits = own.underlying_type.as_ref().map_or(0, |t| t.bitwidth);
            DataShape::SerializableEnum(width(bits)?)
        }
        TypeSpec::NewType(name) => {
            let own = types
                .new_types
                .get(&name.name)
                .ok_or_else(|| unknown(&name.name))?;
            match &own.representation {
                Some(Representation::OriginalType(t)) => build(all, types, Some(t), depth + 1)?,
                Some(Representation::TranslatedType(t)) => match &t.sdn_type {
                    Some(SdnType::SdnBitwidth(w)) => DataShape::Bit(width(*w)?),
                    _ => {
                        refuse!(
                            unimplemented,
                            "type {}: SDN strings are not supported",
                            name.name
                        )
                    }
                },
                None => return Err(unknown(&name.name)),
            }
        }
        TypeSpec::HeaderUnion(_) | TypeSpec::HeaderStack(_) | TypeSpec::HeaderUnionStack(_) => {
            refuse!(
                unimplemented,
                "header unions and header stacks are not supported here"
            )
        }
    })
}

fn bits(spec: &P4BitstringLikeTypeSpec) -> Result<DataShape, Refusal> {
    match &spec.type_spec {
        Some(bitstring::TypeSpec::Bit(b)) => Ok(DataShape::Bit(width(b.bitwidth)?)),
        Some(bitstring::TypeSpec::Int(i)) => Ok(DataShape::Int(width(i.bitwidth)?)),
        Some(bitstring::TypeSpec::Varbit(_)) => {
            Err(Refusal::unimplemented("varbit is not supported here"))
        }
        None => Err(Refusal::invalid("P4Info gives a bitstring without a width")),
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

    /// # Errors
    /// INVALID_ARGUMENT when the pipeline's values are not those of this shape.
    pub(super) fn check_leaves(&self, widths: &[u32]) -> Result<(), Refusal> {
        let mut own = Vec::new();
        self.leaves(&mut own);
        let fits = own.len() == widths.len()
            && own
                .iter()
                .zip(widths)
                .all(|(a, b)| a.is_none_or(|a| a == *b));
        if fits {
            return Ok(());
        }
        Err(refusal!(
            invalid,
            "P4Info gives values of [{}] bits, the device config of [{}] bits",
            list(&own),
            list(&widths.iter().map(|w| Some(*w)).collect::<Vec<_>>())
        ))
    }

    /// One value of this shape out of its leaves, which are taken from `values`.
    pub fn encode<'a>(&self, values: &mut impl Iterator<Item = &'a Bits>) -> P4Data {
        let mut next = || values.next().cloned().unwrap_or_else(|| Bits::zero(1));
        let data = match self {
            Self::Bit(_) => p4_data::Data::Bitstring(bytestring::encode(&next())),
            Self::Int(w) => p4_data::Data::Bitstring(bytestring::encode_signed(&next(), *w)),
            Self::Bool => p4_data::Data::Bool(!next().is_zero()),
            Self::SerializableEnum(_) => p4_data::Data::EnumValue(bytestring::encode(&next())),
            Self::Enum(names) => p4_data::Data::Enum(name(names, &next())),
            Self::Error(names) => p4_data::Data::Error(name(names, &next())),
            Self::Tuple(m) => p4_data::Data::Tuple(P4StructLike {
                members: m.iter().map(|s| s.encode(values)).collect(),
            }),
            Self::Struct(m) => p4_data::Data::Struct(P4StructLike {
                members: m.iter().map(|s| s.encode(values)).collect(),
            }),
            Self::Header(m) => {
                let bitstrings = m
                    .iter()
                    .map(|s| match s.encode(values).data {
                        Some(p4_data::Data::Bitstring(b)) => b,
                        _ => Default::default(),
                    })
                    .collect();
                p4_data::Data::Header(P4Header {
                    is_valid: true,
                    bitstrings,
                })
            }
        };
        P4Data { data: Some(data) }
    }

    /// The one value of a shape with a single leaf (registers) out of a message.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for another sort of data, OUT_OF_RANGE for a value that does not fit.
    pub fn decode(&self, data: &P4Data, width: u32) -> Result<Bits, Refusal> {
        match (self, &data.data) {
            (Self::Bit(_), Some(p4_data::Data::Bitstring(b))) => bytestring::decode(b, width),
            (Self::Int(_), Some(p4_data::Data::Bitstring(b))) => {
                bytestring::decode_signed(b, width)
            }
            (Self::SerializableEnum(_), Some(p4_data::Data::EnumValue(b))) => {
                bytestring::decode(b, width)
            }
            (Self::Bool, Some(p4_data::Data::Bool(b))) => {
                bytestring::decode(&[u8::from(*b)], width)
            }
            (Self::Tuple(m), Some(p4_data::Data::Tuple(s)))
            | (Self::Struct(m), Some(p4_data::Data::Struct(s)))
                if m.len() == 1 && s.members.len() == 1 =>
            {
                m[0].decode(&s.members[0], width)
            }
            (_, None) => Err(Refusal::invalid("the data is unset")),
            (shape, Some(_)) => Err(refusal!(invalid, "the data must be {}", shape.describe())),
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Bit(w) => format!("a bitstring (bit<{w}>)"),
            Self::Int(w) => format!("a bitstring (int<{w}>)"),
            Self::Bool => "a bool".into(),
            Self::SerializableEnum(w) => format!("an enum_value (bit<{w}>)"),
            Self::Enum(_) => "an enum (which cannot be written)".into(),
            Self::Error(_) => "an error (which cannot be written)".into(),
            Self::Tuple(m) => format!("a tuple of {}", m.len()),
            Self::Struct(m) => format!("a struct of {}", m.len()),
            Self::Header(m) => format!("a header of {}", m.len()),
        }
    }
}

/// Widths for an error text.
fn list(widths: &[Option<u32>]) -> String {
    const MOST: usize = 16;
    let shown = widths.iter().take(MOST);
    let mut texts: Vec<String> = shown
        .map(|w| w.map_or("?".into(), |w| w.to_string()))
        .collect();
    if widths.len() > MOST {
        texts.push(format!("… {} in all", widths.len()));
    }
    texts.join(", ")
}

fn name(names: &[String], value: &Bits) -> String {
    let index = value.to_u64().and_then(|v| usize::try_from(v).ok());
    index
        .and_then(|i| names.get(i).cloned())
        .unwrap_or_else(|| value.to_string())
}
