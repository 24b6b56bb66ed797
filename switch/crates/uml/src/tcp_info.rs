// SPDX-License-Identifier: Apache-2.0
//! What the kernel says of a connection: the members of `struct tcp_info` (include/uapi/linux/tcp.h) that are used. The kernel
//! adds others at its end only.

/// Behind the last member that is used.
const END: usize = 242;

/// TCP_INFO as the kernel gave it.
#[derive(Clone, Copy, Debug)]
pub struct TcpInfo<'a>(&'a [u8]);

impl<'a> TcpInfo<'a> {
    /// None: too short for this kernel's.
    pub fn new(bytes: &'a [u8]) -> Option<TcpInfo<'a>> {
        (bytes.len() >= END).then_some(TcpInfo(bytes))
    }

    /// Segments in flight as the sender reckons (tcp_packets_in_flight).
    pub fn in_flight(self) -> u32 {
        let (unacked, sacked, lost, retrans) =
            (self.u32(24), self.u32(28), self.u32(32), self.u32(36));
        (unacked + retrans).saturating_sub(sacked + lost)
    }

    pub fn srtt_us(self) -> u32 {
        self.u32(68)
    }

    pub fn ssthresh_packets(self) -> u32 {
        self.u32(76)
    }

    pub fn cwnd_packets(self) -> u32 {
        self.u32(80)
    }

    /// Retransmitted segments in all.
    pub fn retransmits(self) -> u32 {
        self.u32(100)
    }

    /// Acknowledged bytes, the SYN among them.
    pub fn bytes_acked(self) -> u64 {
        self.u64(120)
    }

    /// Bytes that have come in order.
    pub fn bytes_received(self) -> u64 {
        const CLOSE_WAIT: u8 = 8;
        let fin = u64::from(self.0[0] == CLOSE_WAIT); // the kernel counts it
        self.u64(128).saturating_sub(fin)
    }

    /// Segments that left, of any kind.
    pub fn segments_out(self) -> u32 {
        self.u32(136)
    }

    /// Segments with data that left, retransmissions too.
    pub fn data_segments_out(self) -> u32 {
        self.u32(156)
    }

    pub fn timeouts(self) -> u16 {
        u16::from_le_bytes([self.0[240], self.0[241]])
    }

    fn u64(self, at: usize) -> u64 {
        let mut number = [0; 8];
        number.copy_from_slice(&self.0[at..at + 8]);
        u64::from_le_bytes(number)
    }

    fn u32(self, at: usize) -> u32 {
        let mut number = [0; 4];
        number.copy_from_slice(&self.0[at..at + 4]);
        u32::from_le_bytes(number)
    }
}
