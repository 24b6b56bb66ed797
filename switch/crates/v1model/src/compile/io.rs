// SPDX-License-Identifier: Apache-2.0
//! How header types lie in a frame: the plans that extraction and emission follow.

use super::code::{FieldIo, HeaderIo, Piece};
use super::layout::HeaderType;

/// The plan of a header type.
pub(crate) fn header_io(ty: &HeaderType) -> HeaderIo {
    let mut io = HeaderIo {
        slots: ty.slots,
        fixed_bytes: ty.fixed_bits.div_ceil(8),
        ..HeaderIo::default()
    };
    let mut bit = 0;
    for field in &ty.fields {
        if field.varbit {
            io.varbit = Some((field.offset, field.width));
            bit = 0;
            continue;
        }
        let part = FieldIo {
            offset: field.offset,
            bit,
            width: field.width,
        };
        bit += field.width;
        if io.varbit.is_some() {
            io.tail.push(part);
        } else {
            io.head.push(part);
        }
    }
    io.pieces = pieces(&io.head);
    io
}

/// Limbs of a field from the most significant: (block offset, first bit, width ≤ 64).
pub(crate) fn limbs(field: &FieldIo) -> impl Iterator<Item = (u16, u32, u32)> + '_ {
    let count = field.width.div_ceil(64);
    (0..count).rev().map(move |limb| {
        let low = limb * 64;
        let width = (field.width - low).min(64);
        (
            field.offset + limb as u16,
            field.bit + field.width - low - width,
            width,
        )
    })
}

fn pieces(fields: &[FieldIo]) -> Option<Vec<Piece>> {
    let mut out = Vec::new();
    let (mut open, mut start) = (Vec::new(), 0);
    for field in fields {
        for (offset, bit, width) in limbs(field) {
            let end = bit + width;
            if end - start > 64 {
                return None;
            }
            open.push((offset, (64 - (end - start)) as u8));
            if end % 8 == 0 {
                let bytes = ((end - start) / 8) as u8;
                // Pieces as long as possible: join with the one before when both fit in 8 bytes.
                out.push(Piece {
                    byte: start / 8,
                    bytes,
                    fields: std::mem::take(&mut open),
                });
                start = end;
            }
        }
    }
    open.is_empty().then(|| join(out))
}

fn join(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut out: Vec<Piece> = Vec::new();
    for piece in pieces {
        match out.last_mut() {
            Some(last) if last.bytes + piece.bytes <= 8 => {
                let shift = last.bytes * 8;
                last.fields.extend(
                    piece
                        .fields
                        .iter()
                        .map(|&(offset, left)| (offset, left - shift)),
                );
                last.bytes += piece.bytes;
            }
            _ => out.push(piece),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aligned_fields_are_joined_to_words() {
        let field = |offset, bit, width| FieldIo { offset, bit, width };
        // IPv4's first 4 bytes and a 128-bit address.
        let fields = [
            field(1, 0, 4),
            field(2, 4, 4),
            field(3, 8, 8),
            field(4, 16, 16),
            field(5, 32, 128),
        ];
        let pieces = pieces(&fields).unwrap();
        let bytes: Vec<u8> = pieces.iter().map(|p| p.bytes).collect();
        assert_eq!(bytes, vec![4, 8, 8]);
        assert_eq!(pieces[0].fields, vec![(1, 60), (2, 56), (3, 48), (4, 32)]);
        assert_eq!(pieces[1].fields, vec![(6, 0)]);
    }

    #[test]
    fn a_field_across_nine_bytes_needs_the_slow_path() {
        let fields = [
            FieldIo {
                offset: 1,
                bit: 0,
                width: 3,
            },
            FieldIo {
                offset: 2,
                bit: 3,
                width: 64,
            },
        ];
        assert!(pieces(&fields).is_none());
    }
}
