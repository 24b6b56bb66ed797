// SPDX-License-Identifier: Apache-2.0
//! The headers of packet-in and packet-out as P4Info gives them, and controller metadata to and from their bytes.

use bytes::Bytes;

use super::{preambles, unique, unknown};
use crate::bytestring;
use crate::error::{in_range, refuse, At, Checked};
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
