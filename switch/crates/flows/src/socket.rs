// SPDX-License-Identifier: Apache-2.0
//! Sockets and what Linux alone reports of them: TCP_INFO, and which byte was acknowledged when.

use rustix::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{self, sockopt, AddressFamily, SocketFlags, SocketType};
use std::io;
use std::mem::{size_of, zeroed};
use std::net::SocketAddr;

/// More than any kernel's struct tcp_info.
const TCP_INFO_BYTES_MAX: usize = 512;
const ERROR_QUEUE_BYTES: usize = 512;
/// Where `ee_origin`, `ee_info` and `ee_data` are in struct sock_extended_err.
const EE_ORIGIN: usize = 4;
const EE_INFO: usize = 8;
const EE_DATA: usize = 12;

/// A sender's socket.
#[derive(Clone, Copy, Debug)]
pub struct SenderOptions<'a> {
    /// The kernel's name; None: the host's default.
    pub congestion_control: Option<&'a str>,
    /// TCP_MAXSEG.
    pub mss_bytes: Option<u32>,
}

/// A listener.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListenerOptions<'a> {
    pub congestion_control: Option<&'a str>,
    pub mss_bytes: Option<u32>,
    /// Most bytes that it offers to take.
    pub window_bytes: Option<u32>,
    /// Data waits in it; then its connections are for [`hold_window`] and [`fit_buffer`].
    pub reads_late: bool,
}

/// The sending end of a connection; `close` sends a reset: what is not sent yet is not sent.
///
/// # Errors
/// The system's.
pub fn sender(family: AddressFamily, options: SenderOptions<'_>) -> io::Result<OwnedFd> {
    let socket = socket(family, SocketType::STREAM)?;
    if let Some(name) = options.congestion_control {
        sockopt::set_tcp_congestion(&socket, name).map_err(|error| {
            let error = io::Error::from(error);
            io::Error::new(
                error.kind(),
                format!("a socket cannot use congestion control '{name}': {error}"),
            )
        })?;
    }
    if let Some(bytes) = options.mss_bytes {
        set_tcp_option(&socket, libc::TCP_MAXSEG, bytes)?;
    }
    sockopt::set_socket_linger(&socket, Some(std::time::Duration::ZERO))?;
    Ok(socket)
}

/// A UDP socket at an address of its host, if there is one, that sends to another, if there is one.
///
/// # Errors
/// The system's.
pub fn udp_socket(at: Option<SocketAddr>, to: Option<SocketAddr>) -> io::Result<OwnedFd> {
    let family = at.or(to).as_ref().map_or(AddressFamily::INET, family_of);
    let socket = socket(family, SocketType::DGRAM)?;
    if let Some(at) = at {
        net::bind(&socket, &at)?;
    }
    if let Some(to) = to {
        net::connect(&socket, &to)?;
    }
    Ok(socket)
}

/// A socket that takes connections.
///
/// # Errors
/// The system's.
pub fn listen(at: SocketAddr, options: ListenerOptions<'_>) -> io::Result<OwnedFd> {
    const BACKLOG: i32 = 1024;
    let listener = socket(family_of(&at), SocketType::STREAM)?;
    sockopt::set_socket_reuseaddr(&listener, true)?;
    if let Some(name) = options.congestion_control {
        sockopt::set_tcp_congestion(&listener, name)?; // a receiver has its half of DCTCP
    }
    if let Some(bytes) = options.mss_bytes {
        set_tcp_option(&listener, libc::TCP_MAXSEG, bytes)?;
    }
    if let Some(bytes) = options.window_bytes {
        set_tcp_option(&listener, libc::TCP_WINDOW_CLAMP, bytes)?;
        if options.reads_late {
            // a segment more than the window, or Linux offers one less
            let buffer = bytes as usize + options.mss_bytes.unwrap_or(bytes) as usize;
            sockopt::set_socket_recv_buffer_size(&listener, buffer)?;
        }
    }
    net::bind(&listener, &at)?;
    net::listen(&listener, BACKLOG)?;
    Ok(listener)
}

fn socket(family: AddressFamily, kind: SocketType) -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    Ok(net::socket_with(family, kind, flags, None)?)
}

pub fn family_of(address: &SocketAddr) -> AddressFamily {
    match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    }
}

/// A connection that somebody has opened, and where from; None: none waits.
///
/// # Errors
/// The system's.
pub fn accept(listener: &OwnedFd) -> io::Result<Option<(OwnedFd, SocketAddr)>> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    match net::acceptfrom_with(listener, flags) {
        Ok((socket, peer)) => Ok(peer
            .and_then(|peer| SocketAddr::try_from(peer).ok())
            .map(|peer| (socket, peer))),
        Err(Errno::AGAIN | Errno::CONNABORTED) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// An accepted connection whose data waits: it offers no byte beyond the window of its SYN until [`fit_buffer`].
///
/// # Errors
/// The system's.
pub fn hold_window(socket: &OwnedFd, window_bytes: u32) -> io::Result<()> {
    /// Memory of a short segment, and of a longer one beyond its bytes: a little more than drivers take.
    const SEGMENT_BYTES: usize = 2400;
    const BEYOND_BYTES: usize = 940;
    let window = window_bytes as usize;
    if tcp_number(socket, libc::TCP_WINDOW_CLAMP)? != window {
        return fit_buffer(socket, window_bytes); // data was faster
    }
    let mss = tcp_number(socket, libc::TCP_MAXSEG)?.max(1);
    let buffer = window.div_ceil(mss) * SEGMENT_BYTES.max(mss + BEYOND_BYTES);
    Ok(sockopt::set_socket_recv_buffer_size(socket, buffer / 2)?) // the kernel doubles it
}

/// Data waits in a connection: it takes as many bytes as its window has, and then the window is shut.
///
/// Of the first segment the kernel has measured which part of its memory is data (`scaling_ratio`, Linux 6.6), and has set the largest
/// window to that part of the buffer. So the ratio can be read, and the buffer be made for the window. That is exact for up to eight
/// segments of more than 536 bytes that take as much memory each: shorter ones are not measured, and where the kernel merges what waits,
/// each has some 250 bytes less than the first.
///
/// # Errors
/// The system's.
pub fn fit_buffer(socket: &OwnedFd, window_bytes: u32) -> io::Result<()> {
    let window = window_bytes as usize;
    let clamp = tcp_number(socket, libc::TCP_WINDOW_CLAMP)?;
    let buffer = sockopt::socket_recv_buffer_size(socket)?;
    let ratio = (256 * clamp).div_ceil(buffer).max(1);
    let wanted = (256 * window).div_ceil(ratio).div_ceil(2); // the kernel doubles it
    if 2 * wanted != buffer {
        sockopt::set_socket_recv_buffer_size(socket, wanted)?;
    }
    if clamp != window {
        set_tcp_option(socket, libc::TCP_WINDOW_CLAMP, window_bytes)?;
    }
    Ok(())
}

fn tcp_number(socket: &OwnedFd, option: libc::c_int) -> io::Result<usize> {
    let value = tcp_option(socket, option, size_of::<u32>())?;
    let number = value.try_into().map_err(|_| io::ErrorKind::InvalidData)?;
    Ok(u32::from_ne_bytes(number) as usize)
}

/// Begins to connect.
///
/// # Errors
/// The system's.
pub fn connect(socket: &OwnedFd, to: &SocketAddr) -> io::Result<()> {
    match net::connect(socket, to) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Length and sender of a datagram that has come; None: none waits.
///
/// # Errors
/// The system's.
pub fn next_datagram(
    socket: &OwnedFd,
    buffer: &mut [u8],
) -> io::Result<Option<(usize, SocketAddr)>> {
    match net::recvfrom(socket, buffer, net::RecvFlags::empty()) {
        Ok((bytes, _, peer)) => Ok(peer
            .and_then(|peer| SocketAddr::try_from(peer).ok())
            .map(|peer| (bytes, peer))),
        Err(Errno::AGAIN) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What comes is thrown away by a thread of the guest's kernel (hosts/kernel/sink.c).
///
/// # Errors
/// The system's.
pub fn throw_away(socket: &OwnedFd) -> io::Result<()> {
    const TCP_ULP: libc::c_int = 31;
    set_option(socket, libc::IPPROTO_TCP, TCP_ULP, b"fl_sink")
}

/// SIGTERM and SIGINT as a descriptor.
///
/// # Errors
/// The system's.
pub fn stop_signals() -> io::Result<OwnedFd> {
    // SAFETY: sigemptyset initialises the set; nobody else owns the new descriptor.
    unsafe {
        let mut set: libc::sigset_t = zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGTERM);
        libc::sigaddset(&mut set, libc::SIGINT);
        libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        match libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
            -1 => Err(io::Error::last_os_error()),
            descriptor => Ok(OwnedFd::from_raw_fd(descriptor)),
        }
    }
}

/// An option of IPPROTO_TCP that is a number.
///
/// # Errors
/// The system's.
pub fn set_tcp_option(socket: &OwnedFd, option: libc::c_int, value: u32) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_TCP, option, &value.to_ne_bytes())
}

fn set_option(
    socket: &OwnedFd,
    level: libc::c_int,
    option: libc::c_int,
    value: &[u8],
) -> io::Result<()> {
    // SAFETY: the kernel reads the bytes of `value`.
    let code = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            value.as_ptr().cast(),
            value.len() as libc::socklen_t,
        )
    };
    match code {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// TCP_INFO of a connection.
///
/// # Errors
/// The system's; `Unsupported` of a kernel before Linux 5.15.
pub fn tcp_info(socket: &OwnedFd) -> io::Result<TcpInfo<Vec<u8>>> {
    let info = tcp_option(socket, libc::TCP_INFO, TCP_INFO_BYTES_MAX)?;
    TcpInfo::new(info).ok_or_else(|| io::ErrorKind::Unsupported.into())
}

/// At most `bytes_max` of an option of IPPROTO_TCP.
///
/// # Errors
/// The system's.
pub fn tcp_option(socket: &OwnedFd, option: libc::c_int, bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut value = vec![0u8; bytes_max];
    let mut len = value.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes into `value`.
    let code = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            option,
            value.as_mut_ptr().cast(),
            &mut len,
        )
    };
    if code != 0 {
        return Err(io::Error::last_os_error());
    }
    value.truncate(len as usize);
    Ok(value)
}

/// Takes no more while so much waits to be sent, or two segments: Nagle's algorithm holds back less than one. A write is taken whole
/// where there is room. It is connected already.
///
/// # Errors
/// The system's.
pub fn limit_unsent(socket: &OwnedFd, bytes: u32) -> io::Result<()> {
    const TCP_NOTSENT_LOWAT: libc::c_int = 25;
    let segments = 2 * tcp_number(socket, libc::TCP_MAXSEG)?;
    set_tcp_option(socket, TCP_NOTSENT_LOWAT, bytes.max(segments as u32))
}

/// From now on the error queue reports when each write was acknowledged (Documentation/networking/timestamping.rst). Bytes count from
/// here, so it is connected already.
///
/// # Errors
/// The system's.
pub fn report_acknowledgments(socket: &OwnedFd) -> io::Result<()> {
    let flags = libc::SOF_TIMESTAMPING_TX_ACK
        | libc::SOF_TIMESTAMPING_SOFTWARE
        | libc::SOF_TIMESTAMPING_OPT_ID
        | libc::SOF_TIMESTAMPING_OPT_TSONLY;
    set_option(
        socket,
        libc::SOL_SOCKET,
        libc::SO_TIMESTAMPING,
        &flags.to_ne_bytes(),
    )
}

/// How many bytes of the stream, modulo 2^32, were acknowledged by the oldest report of the error queue; None: it is empty.
pub fn next_acknowledged(socket: &OwnedFd) -> Option<u32> {
    loop {
        let mut control = [0u64; ERROR_QUEUE_BYTES / size_of::<u64>()]; // aligned as cmsghdr is
                                                                        // SAFETY: a msghdr of zeros is one without buffers.
        let mut message: libc::msghdr = unsafe { zeroed() };
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = ERROR_QUEUE_BYTES as _;
        // SAFETY: `message` points to `control`, which lives on; the kernel writes at most its length.
        let code =
            unsafe { libc::recvmsg(socket.as_fd().as_raw_fd(), &mut message, libc::MSG_ERRQUEUE) };
        if code < 0 {
            return None;
        }
        // SAFETY: the kernel has written whole control messages, and their length.
        unsafe {
            let mut next = libc::CMSG_FIRSTHDR(&message);
            while let Some(header) = next.as_ref() {
                if matches!(
                    (header.cmsg_level, header.cmsg_type),
                    (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR)
                ) {
                    let error = std::slice::from_raw_parts(
                        libc::CMSG_DATA(next),
                        EE_DATA + size_of::<u32>(),
                    );
                    if let Some(bytes) = acknowledged(error) {
                        return Some(bytes);
                    }
                }
                next = libc::CMSG_NXTHDR(&message, next);
            }
        }
    }
}

/// What a sock_extended_err reports; None: something else.
fn acknowledged(error: &[u8]) -> Option<u32> {
    const ORIGIN_TIMESTAMPING: u8 = 4;
    const SCM_TSTAMP_ACK: u32 = 2;
    let number = |at: usize| Some(u32::from_ne_bytes(error.get(at..at + 4)?.try_into().ok()?));
    let is_ack =
        *error.get(EE_ORIGIN)? == ORIGIN_TIMESTAMPING && number(EE_INFO)? == SCM_TSTAMP_ACK;
    Some(number(EE_DATA)?.wrapping_add(1)).filter(|_| is_ack)
}

/// Behind the last member that Linux 5.15 has.
const END: usize = 232;
const CA_STATES: [&str; 5] = ["open", "disorder", "cwr", "recovery", "loss"];

/// TCP_INFO as the kernel gave it: the members of `struct tcp_info` (include/uapi/linux/tcp.h) that are used. The kernel adds others
/// at its end only.
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
