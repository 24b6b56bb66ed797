// SPDX-License-Identifier: Apache-2.0
//! Completion of a transport checksum that the sender's stack left to the device (CHECKSUM_PARTIAL).

use checksum::csum16;

/// Writes the Internet checksum (RFC 1071) over `frame[start..]` to `frame[start + offset..]`, where the
/// sum of the pseudo header already stands, as in `struct virtio_net_hdr`. A sum of 0 is sent as 0xffff.
/// Returns false, and changes nothing, when the two offsets do not lie inside the frame.
pub fn complete_checksum(frame: &mut [u8], start: usize, offset: usize) -> bool {
    let field = start + offset;
    if field + 2 > frame.len() {
        return false;
    }
    let checksum = match csum16(&frame[start..]) {
        0 => 0xffff,
        other => other,
    };
    frame[field..field + 2].copy_from_slice(&checksum.to_be_bytes());
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_over_a_completed_range_is_all_ones() {
        // A UDP header (ports 1000 and 2000, length 11, pseudo-header sum 0x1234) and three bytes, after two foreign bytes.
        let mut frame = vec![
            0xaa, 0xbb, 0x03, 0xe8, 0x07, 0xd0, 0x00, 0x0b, 0x12, 0x34, 1, 2, 3,
        ];
        assert!(complete_checksum(&mut frame, 2, 6));
        let mut sum: u32 = 0x1234;
        let padded: Vec<u8> = frame[2..].iter().copied().chain([0]).collect();
        for word in padded.chunks_exact(2) {
            sum += u32::from(u16::from_be_bytes([word[0], word[1]]));
        }
        while sum > 0xffff {
            sum = (sum >> 16) + (sum & 0xffff);
        }
        assert_eq!(sum, 0xffff);
    }

    #[test]
    fn offsets_outside_the_frame_change_nothing() {
        let mut frame = [1u8; 10];
        assert!(!complete_checksum(&mut frame, 4, 5));
        assert!(!complete_checksum(&mut frame, 11, 0));
        assert_eq!(frame, [1u8; 10]);
    }
}
