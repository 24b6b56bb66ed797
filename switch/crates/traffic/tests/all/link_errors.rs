// SPDX-License-Identifier: Apache-2.0
//! Where bit errors fall: anywhere behind the Ethernet header, or in payload alone; in what is sent again, or not.

use traffic::link::{ErrorsIn, Link, LinkOptions, LinkStreams};

const SYN: u8 = 2;
const ACK: u8 = 16;
/// Ethernet, IPv4 and TCP.
const HEADERS: usize = 54;

/// An IPv4 frame with `header` behind 20 bytes of IPv4, padded to 60 bytes at least.
fn ipv4(protocol: u8, header: &[u8], payload_bytes: usize) -> Vec<u8> {
    let mut frame = vec![0; 14 + 20];
    let packet_bytes = (20 + header.len() + payload_bytes) as u16;
    frame[12..15].copy_from_slice(&[8, 0, 0x45]);
    frame[16..18].copy_from_slice(&packet_bytes.to_be_bytes());
    frame[23] = protocol;
    frame.extend(header);
    frame.resize((34 + header.len() + payload_bytes).max(60), 0);
    frame
}

fn tcp(port: u16, seq: u32, flags: u8, payload_bytes: usize) -> Vec<u8> {
    let mut header = [0; 20];
    header[..2].copy_from_slice(&port.to_be_bytes());
    header[4..8].copy_from_slice(&seq.to_be_bytes());
    (header[12], header[13]) = (0x50, flags);
    ipv4(6, &header, payload_bytes)
}

fn tcp_in_ipv6(payload_bytes: usize) -> Vec<u8> {
    let mut frame = vec![0; 14 + 40 + 20 + payload_bytes];
    frame[12..15].copy_from_slice(&[0x86, 0xdd, 0x60]);
    frame[18..20].copy_from_slice(&(20 + payload_bytes as u16).to_be_bytes());
    (frame[20], frame[66]) = (6, 0x50);
    frame
}

struct Errors(Link<()>);

impl Errors {
    /// Every bit that may be flipped is.
    fn new(errors_in: ErrorsIn, spare_retransmissions: bool) -> Errors {
        let options = LinkOptions {
            ber: 1.0,
            errors_in,
            spare_retransmissions,
            ..LinkOptions::default()
        };
        Errors(Link::new(options, LinkStreams::new(1, "l/a_to_b"), 16).unwrap())
    }

    /// First and last byte of a frame that was hit, and how many were.
    fn hit(&mut self, frame: &[u8]) -> Option<(usize, usize, usize)> {
        let mut after = frame.to_vec();
        assert!(self.0.transmit(0, &mut after, ()).is_ok());
        let hit: Vec<usize> = (0..frame.len())
            .filter(|k| frame[*k] != after[*k])
            .collect();
        Some((*hit.first()?, *hit.last()?, hit.len()))
    }
}

#[test]
fn in_payload_no_header_no_padding_and_no_ack_is_hit() {
    let mut link = Errors::new(ErrorsIn::Payload, false);
    assert_eq!(
        link.hit(&tcp(1, 7, ACK, 100)),
        Some((HEADERS, HEADERS + 99, 100))
    );
    assert_eq!(
        link.hit(&tcp(1, 107, ACK, 2)),
        Some((HEADERS, HEADERS + 1, 2))
    );
    assert_eq!(link.hit(&tcp(1, 109, ACK, 0)), None);
    assert_eq!(link.hit(&ipv4(17, &[0; 8], 30)), Some((42, 71, 30)));
    assert_eq!(link.hit(&tcp_in_ipv6(10)), Some((74, 83, 10)));
    let mut options = tcp(1, 109, ACK, 20);
    options[46] = 0x60; // four bytes of options
    assert_eq!(link.hit(&options), Some((HEADERS + 4, HEADERS + 19, 16)));
    let mut fragment = tcp(1, 7, ACK, 100);
    fragment[21] = 1;
    assert_eq!(link.hit(&fragment), None);
    assert_eq!(link.hit(&[0xff; 100]), None, "no IP");
    let mut absurd = tcp(1, 7, ACK, 100);
    absurd[46] = 0xf0;
    absurd.truncate(HEADERS + 10);
    assert_eq!(link.hit(&absurd), None, "its header is longer than it");
    for bytes in 0..HEADERS {
        assert_eq!(link.hit(&tcp(1, 7, ACK, 100)[..bytes]), None, "{bytes}");
    }
}

#[test]
fn in_the_frame_all_behind_ethernet_is_hit() {
    let mut link = Errors::new(ErrorsIn::Frame, false);
    for _ in 0..2 {
        assert_eq!(
            link.hit(&tcp(1, 7, ACK, 100)),
            Some((14, HEADERS + 99, HEADERS + 86))
        );
    }
    assert_eq!(link.hit(&tcp(1, 7, ACK, 0)), Some((14, 59, 46)));
}

#[test]
fn what_is_sent_again_is_spared() {
    for errors_in in [ErrorsIn::Frame, ErrorsIn::Payload] {
        let mut link = Errors::new(errors_in, true);
        let near_wrap = u32::MAX - 149;
        let mut is_hit =
            |port, seq, flags, bytes| link.hit(&tcp(port, seq, flags, bytes)).is_some();
        assert!(is_hit(1, near_wrap, ACK, 100));
        assert!(
            is_hit(1, near_wrap.wrapping_add(100), ACK, 100),
            "across the wrap"
        );
        assert!(!is_hit(1, near_wrap, ACK, 100), "sent again");
        assert!(!is_hit(1, near_wrap.wrapping_add(100), ACK, 100));
        assert!(is_hit(2, near_wrap, ACK, 100), "another flow");
        assert!(
            is_hit(1, near_wrap.wrapping_add(150), ACK, 100),
            "half of it is new"
        );
        assert_eq!(
            is_hit(1, near_wrap, ACK, 0),
            errors_in == ErrorsIn::Frame,
            "an ACK"
        );
        is_hit(1, 5000, SYN, 0);
        assert!(is_hit(1, 5001, ACK, 100), "a new connection");
        assert!(!is_hit(1, 5001, ACK, 100));
    }
}

/// A spared packet takes no draw: the errors of what is new are the same whatever goes again between.
#[test]
fn chance_does_not_depend_on_what_is_sent_again() {
    let hits = |again: bool| {
        let options = LinkOptions {
            ber: 1e-4,
            errors_in: ErrorsIn::Payload,
            spare_retransmissions: true,
            ..LinkOptions::default()
        };
        let mut link: Link<()> = Link::new(options, LinkStreams::new(1, "l"), 16).unwrap();
        let mut hit = Vec::new();
        for seq in (0..1_000_000).step_by(1000) {
            for time in 0..=u32::from(again) {
                let sent = tcp(1, seq, ACK, 1000);
                let mut frame = sent.clone();
                assert!(link.transmit(0, &mut frame, ()).is_ok());
                assert!(time == 0 || frame == sent);
                if frame != sent {
                    hit.push((seq, frame));
                }
            }
        }
        assert!(hit.len() > 400, "{}", hit.len());
        hit
    };
    assert!(hits(false) == hits(true));
}
