// SPDX-License-Identifier: Apache-2.0
//! What the kernel says of an Ethernet interface: its address, its speed, and the frames that its hardware found damaged.

use crate::interface::{ask, index_of};
use rustix::net::{
    recv, send, socket_with, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType,
};
use std::io;

/// `ETHTOOL_GSET` of linux/ethtool.h, and its answers "unknown".
const GET_SETTINGS: u32 = 1;
const SPEED_UNKNOWN: u32 = u32::MAX;
const DUPLEX_HALF: u8 = 0;
const DUPLEX_FULL: u8 = 1;
/// `rx_crc_errors` of `struct rtnl_link_stats64`, counted in 64-bit words.
const CRC_ERRORS: usize = 12;

/// An Ethernet interface as its driver describes it; what a driver does not say is None.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ethernet {
    pub mac: Option<[u8; 6]>,
    pub speed_mbps: Option<u32>,
    pub full_duplex: Option<bool>,
    /// Speed and duplex are agreed with the other end.
    pub auto_negotiate: Option<bool>,
    /// Frames that came in with a wrong frame check sequence, since the interface was made.
    pub fcs_errors: Option<u64>,
}

/// All None for an interface that is not there.
pub fn ethernet(interface: &str) -> Ethernet {
    let settings = settings(interface).ok();
    let speed = settings.map(|s| u32::from(s.speed_hi) << 16 | u32::from(s.speed));
    Ethernet {
        mac: mac(interface).ok().flatten(),
        speed_mbps: speed.filter(|speed| !matches!(*speed, 0 | 0xffff | SPEED_UNKNOWN)),
        full_duplex: settings.and_then(|s| match s.duplex {
            DUPLEX_HALF => Some(false),
            DUPLEX_FULL => Some(true),
            _ => None,
        }),
        auto_negotiate: settings.map(|s| s.autoneg != 0),
        fcs_errors: fcs_errors(interface).ok(),
    }
}

/// None for an interface of another kind than Ethernet.
fn mac(interface: &str) -> io::Result<Option<[u8; 6]>> {
    let answer = ask(interface, libc::SIOCGIFHWADDR, |_| ())?;
    // SAFETY: the call has filled the address.
    let address = unsafe { answer.ifr_ifru.ifru_hwaddr };
    let mac = std::array::from_fn(|i| address.sa_data[i] as u8);
    Ok((address.sa_family == libc::ARPHRD_ETHER).then_some(mac))
}

/// `struct ethtool_cmd` of linux/ethtool.h.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Settings {
    cmd: u32,
    supported: u32,
    advertising: u32,
    speed: u16,
    duplex: u8,
    port: u8,
    phy_address: u8,
    transceiver: u8,
    autoneg: u8,
    mdio_support: u8,
    maxtxpkt: u32,
    maxrxpkt: u32,
    speed_hi: u16,
    mdix: [u8; 2],
    lp_advertising: u32,
    reserved: [u32; 2],
}

fn settings(interface: &str) -> io::Result<Settings> {
    let mut settings = Settings {
        cmd: GET_SETTINGS,
        ..Settings::default()
    };
    ask(interface, libc::SIOCETHTOOL, |request| {
        request.ifr_ifru.ifru_data = (&raw mut settings).cast();
    })?;
    Ok(settings)
}

/// Asked by netlink: `/sys/class/net` is that of the namespace in which it was mounted.
fn fcs_errors(interface: &str) -> io::Result<u64> {
    // `struct nlmsghdr`, and `struct if_stats_msg` of linux/if_link.h: family, index, which statistics, one bit each.
    let [a, b] = libc::RTM_GETSTATS.to_ne_bytes();
    let [c, d] = (libc::NLM_F_REQUEST as u16).to_ne_bytes();
    let kind = u32::from_ne_bytes([a, b, c, d]);
    let ask = [28, kind, 0, 0, 0, index_of(interface)? as u32, 1].map(u32::to_ne_bytes);
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        None,
    )?;
    send(&socket, ask.as_flattened(), SendFlags::empty())?;
    let mut answer = [0; 1024];
    let (n, _) = recv(&socket, &mut answer, RecvFlags::DONTWAIT)?;
    // Header of the message (16 bytes) and of the answer (12), then one attribute: its header (4), the counters.
    let at = 16 + 12 + 4 + CRC_ERRORS * size_of::<u64>();
    let counter = answer[..n]
        .get(at..at + 8)
        .and_then(|counter| counter.try_into().ok());
    match counter {
        Some(counter) if answer[4..6] == libc::RTM_NEWSTATS.to_ne_bytes() => {
            Ok(u64::from_ne_bytes(counter))
        }
        _ => Err(io::Error::from(io::ErrorKind::Unsupported)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_no_speed_and_no_damaged_frames() {
        let lo = ethernet("lo");
        assert_eq!((lo.mac, lo.speed_mbps, lo.full_duplex), (None, None, None));
        assert_eq!(lo.fcs_errors, Some(0));
    }

    #[test]
    fn an_interface_that_is_not_there_says_nothing() {
        for name in ["nosuchif0", "", "a\0b"] {
            assert_eq!(ethernet(name), Ethernet::default(), "{name:?}");
        }
    }
}
