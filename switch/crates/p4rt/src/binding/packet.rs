// SPDX-License-Identifier: Apache-2.0
//! The headers of packet-in and packet-out as P4Info gives them, and controller metadata to and from their bytes.

use bytes::Bytes;
use v1model::Bits;

use super::{list_known, preamble};
use crate::bytestring;
use crate::error::{refusal, refuse, At, Refusal};
use crate::proto::p4info::P4Info;
use crate::proto::p4rt::PacketMetadata;

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
pub(super) fn bind(info: &P4Info) -> Result<(Option<PacketHeader>, Option<PacketHeader>), Refusal> {
    let (mut packet_in, mut packet_out) = (None, None);
    for metadata in &info.controller_packet_metadata {
        let preamble = preamble("controller packet metadata", &metadata.preamble)?;
        let fields = metadata
            .metadata
            .iter()
            .map(|m| (m.id, m.name.as_str(), m.bitwidth));
        let header = PacketHeader::new(fields).at(&preamble.name)?;
        let place = match preamble.name.as_str() {
            "packet_in" => &mut packet_in,
            "packet_out" => &mut packet_out,
            other => {
                refuse!(
                    invalid,
                    "controller packet metadata {other} is unknown; known: packet_in, packet_out"
                )
            }
        };
        if place.replace(header).is_some() {
            refuse!(
                invalid,
                "P4Info: there are two controller packet metadata {}",
                preamble.name
            );
        }
    }
    Ok((packet_in, packet_out))
}

impl PacketHeader {
    fn new<'a>(source: impl Iterator<Item = (u32, &'a str, i32)>) -> Result<Self, Refusal> {
        let (mut fields, mut offset) = (Vec::<Field>::new(), 0);
        for (id, name, bitwidth) in source {
            let width = u32::try_from(bitwidth)
                .ok()
                .filter(|w| (1..=4096).contains(w))
                .ok_or_else(|| {
                    refusal!(
                        unimplemented,
                        "metadata {name} has {bitwidth} bits; allowed: 1 to 4096"
                    )
                })?;
            if fields.iter().any(|f| f.id == id) {
                refuse!(invalid, "metadata {name}: id {id} is used twice");
            }
            fields.push(Field {
                id,
                name: name.to_owned(),
                width,
                offset,
            });
            offset += width;
            if offset > MAX_BITS {
                refuse!(unimplemented, "the header has more than {MAX_BITS} bits");
            }
        }
        Ok(Self {
            fields,
            len_bytes: offset.div_ceil(8) as usize,
        })
    }

    /// A packet-out: header bytes, then the payload. A field that is not given is 0, as in PI: clients rely on it.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a field that is unknown or given twice, OUT_OF_RANGE for a value that does not fit.
    pub fn encode(&self, metadata: &[PacketMetadata], payload: &[u8]) -> Result<Vec<u8>, Refusal> {
        let mut frame = vec![0; self.len_bytes];
        for (i, given) in metadata.iter().enumerate() {
            let Some(field) = self.fields.iter().find(|f| f.id == given.metadata_id) else {
                let known = list_known(self.fields.iter().map(|f| (f.id, f.name.as_str())));
                refuse!(
                    invalid,
                    "metadata id {} is unknown; {known}",
                    given.metadata_id
                );
            };
            if metadata[..i]
                .iter()
                .any(|m| m.metadata_id == given.metadata_id)
            {
                refuse!(invalid, "metadata {} is given twice", field.name);
            }
            let value = bytestring::decode(&given.value, field.width)
                .at(format_args!("metadata {}", field.name))?;
            put_bits(&mut frame, field.offset, &value);
        }
        frame.extend_from_slice(payload);
        Ok(frame)
    }

    /// Splits a frame from the CPU port into metadata and payload; None when it is shorter than the header.
    pub fn decode(&self, frame: &Bytes) -> Option<(Vec<PacketMetadata>, Bytes)> {
        if frame.len() < self.len_bytes {
            return None;
        }
        let metadata = self
            .fields
            .iter()
            .map(|f| PacketMetadata {
                metadata_id: f.id,
                value: bytestring::encode_be(&get_bits(frame, f.offset, f.width)),
            })
            .collect();
        Some((metadata, frame.slice(self.len_bytes..)))
    }
}

fn put_bits(frame: &mut [u8], offset: u32, value: &Bits) {
    let (bytes, width) = (value.as_be_bytes(), value.width());
    let spare = bytes.len() as u32 * 8 - width;
    for bit in 0..width {
        let from = bit + spare;
        if bytes[from as usize / 8] & (0x80 >> (from % 8)) != 0 {
            let to = offset + bit;
            frame[to as usize / 8] |= 0x80 >> (to % 8);
        }
    }
}

fn get_bits(frame: &[u8], offset: u32, width: u32) -> Vec<u8> {
    let mut bytes = vec![0; width.div_ceil(8) as usize];
    let spare = bytes.len() as u32 * 8 - width;
    for bit in 0..width {
        let from = offset + bit;
        if frame[from as usize / 8] & (0x80 >> (from % 8)) != 0 {
            let to = bit + spare;
            bytes[to as usize / 8] |= 0x80 >> (to % 8);
        }
    }
    bytes
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
            "metadata id 7 is unknown; known: 1 port, 2 _pad, 3 stamp"
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
