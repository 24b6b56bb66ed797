// SPDX-License-Identifier: Apache-2.0
//! What the kernel reports of a connection: the members of `struct tcp_info` (include/uapi/linux/tcp.h) that are used. The kernel
//! adds others at its end only.

/// Behind the last member that Linux 5.15 has.
const END: usize = 232;
const CA_STATES: [&str; 5] = ["open", "disorder", "cwr", "recovery", "loss"];

/// TCP_INFO as the kernel gave it.
#[derive(Clone, Copy, Debug)]
pub struct TcpInfo<B>(B);

/// Methods: name, type, place.
macro_rules! members {
    ($($(#[$doc:meta])* $name:ident: $kind:ident at $place:literal,)*) => {
        $($(#[$doc])* pub fn $name(&self) -> $kind {
            self.$kind($place)
        })*
    };
}

impl<B: AsRef<[u8]>> TcpInfo<B> {
    members! {
        rto_us: u32 at 8,
        mss_bytes: u32 at 16,
        unacked: u32 at 24,
        lost: u32 at 32,
        srtt_us: u32 at 68,
        rttvar_us: u32 at 72,
        ssthresh_packets: u32 at 76,
        cwnd_packets: u32 at 80,
        reordering: u32 at 88,
        /// Retransmitted segments in all.
        retransmits: u32 at 100,
        /// Acknowledged bytes, the SYN among them.
        bytes_acked: u64 at 120,
        /// Segments that left, of any kind.
        segments_out: u32 at 136,
        min_rtt_us: u32 at 148,
        /// Segments with data that have come.
        data_segments_in: u32 at 152,
        /// Segments with data that left, retransmissions too.
        data_segments_out: u32 at 156,
        /// Segments that were delivered.
        delivered: u32 at 192,
    }

    /// None: too short for Linux 5.15 or newer.
    pub fn new(bytes: B) -> Option<TcpInfo<B>> {
        (bytes.as_ref().len() >= END).then_some(TcpInfo(bytes))
    }

    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_ref()
    }

    /// `open`, `disorder`, `cwr`, `recovery` or `loss`.
    pub fn ca_state(&self) -> &'static str {
        let state = usize::from(self.as_bytes()[1]);
        CA_STATES.get(state).unwrap_or(&"?")
    }

    /// Segments in flight as the sender reckons (tcp_packets_in_flight).
    pub fn in_flight(&self) -> u32 {
        let (sacked, retrans) = (self.u32(28), self.u32(36));
        (self.unacked() + retrans).saturating_sub(sacked + self.lost())
    }

    /// Bytes that have come in order.
    pub fn bytes_received(&self) -> u64 {
        const CLOSE_WAIT: u8 = 8;
        let fin = u64::from(self.as_bytes()[0] == CLOSE_WAIT); // the kernel counts it
        self.u64(128).saturating_sub(fin)
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
