// SPDX-License-Identifier: Apache-2.0
//! What the kernel reports of a connection: the members of `struct tcp_info` (include/uapi/linux/tcp.h) that are used. The kernel
//! adds others at its end only.

/// Behind the last member that Linux 5.15 has.
const END: usize = 232;
const CA_STATES: [&str; 5] = ["open", "disorder", "cwr", "recovery", "loss"];

/// TCP_INFO as the kernel gave it.
#[derive(Clone, Copy, Debug)]
pub struct TcpInfo<B>(B);

impl<B: AsRef<[u8]>> TcpInfo<B> {
    /// None: too short for Linux 5.15 or newer.
    pub fn new(bytes: B) -> Option<TcpInfo<B>> {
        (bytes.as_ref().len() >= END).then_some(TcpInfo(bytes))
    }

    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_ref()
    }

    /// `open`, `disorder`, `cwr`, `recovery` or `loss`.
    pub fn ca_state(&self) -> &'static str {
        CA_STATES
            .get(usize::from(self.as_bytes()[1]))
            .unwrap_or(&"?")
    }

    pub fn rto_us(&self) -> u32 {
        self.u32(8)
    }

    pub fn mss_bytes(&self) -> u32 {
        self.u32(16)
    }

    pub fn unacked(&self) -> u32 {
        self.u32(24)
    }

    pub fn lost(&self) -> u32 {
        self.u32(32)
    }

    pub fn rttvar_us(&self) -> u32 {
        self.u32(72)
    }

    pub fn reordering(&self) -> u32 {
        self.u32(88)
    }

    pub fn min_rtt_us(&self) -> u32 {
        self.u32(148)
    }

    /// Segments with data that have come.
    pub fn data_segments_in(&self) -> u32 {
        self.u32(152)
    }

    /// Time in which the receiver's window was the limit.
    pub fn window_limited_us(&self) -> u64 {
        self.u64(176)
    }

    /// Segments that were delivered.
    pub fn delivered(&self) -> u32 {
        self.u32(192)
    }

    /// Segments in flight as the sender reckons (tcp_packets_in_flight).
    pub fn in_flight(&self) -> u32 {
        let (unacked, sacked, lost, retrans) =
            (self.u32(24), self.u32(28), self.u32(32), self.u32(36));
        (unacked + retrans).saturating_sub(sacked + lost)
    }

    pub fn srtt_us(&self) -> u32 {
        self.u32(68)
    }

    pub fn ssthresh_packets(&self) -> u32 {
        self.u32(76)
    }

    pub fn cwnd_packets(&self) -> u32 {
        self.u32(80)
    }

    /// Retransmitted segments in all.
    pub fn retransmits(&self) -> u32 {
        self.u32(100)
    }

    /// Acknowledged bytes, the SYN among them.
    pub fn bytes_acked(&self) -> u64 {
        self.u64(120)
    }

    /// Bytes that have come in order.
    pub fn bytes_received(&self) -> u64 {
        const CLOSE_WAIT: u8 = 8;
        let fin = u64::from(self.as_bytes()[0] == CLOSE_WAIT); // the kernel counts it
        self.u64(128).saturating_sub(fin)
    }

    /// Segments that left, of any kind.
    pub fn segments_out(&self) -> u32 {
        self.u32(136)
    }

    /// Segments with data that left, retransmissions too.
    pub fn data_segments_out(&self) -> u32 {
        self.u32(156)
    }

    /// None: older than Linux 6.7.
    pub fn timeouts(&self) -> Option<u16> {
        let bytes = self.as_bytes().get(240..242)?;
        Some(u16::from_le_bytes([bytes[0], bytes[1]]))
    }

    fn u64(&self, at: usize) -> u64 {
        let mut number = [0; 8];
        number.copy_from_slice(&self.as_bytes()[at..at + 8]);
        u64::from_le_bytes(number)
    }

    fn u32(&self, at: usize) -> u32 {
        let mut number = [0; 4];
        number.copy_from_slice(&self.as_bytes()[at..at + 4]);
        u32::from_le_bytes(number)
    }
}
