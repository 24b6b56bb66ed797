// SPDX-License-Identifier: Apache-2.0
//! Network namespaces, and interfaces in them: addresses, routes, neighbours, offloads, sysctls.

use rustix::fd::{AsRawFd, OwnedFd};
use rustix::net::{socket, AddressFamily, SocketType};
use rustix::thread::{move_into_link_name_space, LinkNameSpaceType, UnshareFlags};
use std::fs::File;
use std::io;
use std::mem::zeroed;
use std::net::IpAddr;
use uml::plan::{Host, Line, Route};

/// A network namespace.
pub struct Namespace(OwnedFd);

const RTM_NEWLINK: u16 = 16;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;
const RTM_NEWNEIGH: u16 = 28;
const RTM_NEWQDISC: u16 = 36;
const IFA_LOCAL: u16 = 2;
const IFA_F_NODAD: u8 = 2;
const RTA_OIF: u16 = 4;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const NUD_PERMANENT: u32 = 0x80;
const ETHTOOL_OFF: [u32; 3] = [0x1f, 0x24, 0x2c]; // SIOCETHTOOL: STSO, SGSO, SGRO

impl Namespace {
    /// The one that this process is in.
    pub fn current() -> io::Result<Namespace> {
        Ok(Namespace(File::open("/proc/thread-self/ns/net")?.into()))
    }

    /// A new one, entered.
    fn create() -> io::Result<Namespace> {
        // SAFETY: one thread, and only the network is new: files stay open, memory is the same.
        unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }?;
        Namespace::current()
    }

    /// Sockets are made in it from here on.
    pub fn enter(&self) -> io::Result<()> {
        use rustix::fd::AsFd;
        Ok(move_into_link_name_space(
            self.0.as_fd(),
            Some(LinkNameSpaceType::Network),
        )?)
    }
}

/// Makes the namespace of a host and moves the machine's interface `eth<index>` into it.
pub fn set_up(machine: &Namespace, index: usize, host: &Host) -> io::Result<Namespace> {
    let namespace = Namespace::create()?;
    let name = format!("eth{index}");
    machine.enter()?;
    move_interface(&name, &namespace)?;
    namespace.enter()?;
    set_mtu(&name, host.mtu)?;
    let control = Control::new()?;
    for offload in ETHTOOL_OFF {
        control.switch_off(&name, offload)?;
    }
    bring_up("lo")?;
    let index = index_of(&name)?;
    if host.addresses.iter().any(IpAddr::is_ipv6) {
        enable_ipv6(&name)?;
    }
    bring_up(&name)?;
    for ip in &host.addresses {
        let (family, octets) = bytes_of(ip);
        // ifaddrmsg: family, prefix length, flags, scope, index
        let body = [family, 8 * octets.len() as u8, IFA_F_NODAD, 0];
        Request::new(RTM_NEWADDR, Request::CREATE, &body)
            .number(index)
            .attribute(IFA_LOCAL, &octets)
            .call(&format!("{name}: address {ip}"))?;
        // Everybody is a neighbour.
        Request::route(family, 0)
            .attribute(RTA_OIF, &index.to_ne_bytes())
            .call(&format!("{name}: route"))?;
    }
    for (ip, mac) in &host.neighbours {
        // ndmsg: family, padding; index; state permanent, flags, type
        let (family, octets) = bytes_of(ip);
        Request::new(RTM_NEWNEIGH, Request::CREATE, &[family, 0, 0, 0])
            .number(index)
            .number(NUD_PERMANENT)
            .attribute(NDA_DST, &octets)
            .attribute(NDA_LLADDR, &parse_mac(mac)?)
            .call(&format!("neighbour {ip}"))?;
    }
    for route in &host.routes {
        add_route(&name, route)?;
    }
    for (key, value) in &host.sysctls {
        let path = format!("/proc/sys/{}", key.replace('.', "/"));
        std::fs::write(&path, value)
            .map_err(|error| io::Error::other(format!("{key} = {value}: {error}")))?;
    }
    Ok(namespace)
}

/// Family and octets of an address.
fn bytes_of(ip: &IpAddr) -> (u8, Vec<u8>) {
    match ip {
        IpAddr::V4(ip) => (libc::AF_INET as u8, ip.octets().into()),
        IpAddr::V6(ip) => (libc::AF_INET6 as u8, ip.octets().into()),
    }
}

/// Gives an interface IPv6, which the machine boots without; it sends nothing by itself.
fn enable_ipv6(name: &str) -> io::Result<()> {
    const NO_LINK_LOCAL_ADDRESS: (&str, &str) = ("addr_gen_mode", "1");
    for (key, value) in [
        NO_LINK_LOCAL_ADDRESS,
        ("accept_ra", "0"),
        ("disable_ipv6", "0"),
    ] {
        std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/{key}"), value)?;
    }
    Ok(())
}

/// Gives the interface `eth<index>` of the present namespace its queue.
pub fn set_up_line(index: usize, line: &Line) -> io::Result<()> {
    const TC_H_ROOT: u32 = u32::MAX;
    const TCA_KIND: u16 = 1;
    const TCA_OPTIONS: u16 = 2;
    let (name, qdisc) = (format!("eth{index}"), &line.qdisc);
    // Before the queue, which may derive a quantum or a threshold from it.
    set_mtu(&name, line.mtu)?;
    // tcmsg: family, padding; index; handle, parent, info
    Request::new(RTM_NEWQDISC, Request::CREATE, &[0; 4])
        .number(index_of(&name)?)
        .number(0)
        .number(TC_H_ROOT)
        .number(0)
        .attribute(TCA_KIND, &[qdisc.kind.as_bytes(), &[0]].concat())
        .attribute(TCA_OPTIONS, &qdisc.options)
        .call(&format!("qdisc {}", qdisc.kind))?;
    bring_up(&name)
}

/// A socket for ioctl, in the present namespace.
struct Control(OwnedFd);

impl Control {
    fn new() -> io::Result<Control> {
        Ok(Control(socket(
            AddressFamily::INET,
            SocketType::DGRAM,
            None,
        )?))
    }

    /// An ioctl whose argument is `argument`.
    fn call<T>(&self, request: libc::Ioctl, argument: &mut T, what: &str) -> io::Result<()> {
        // SAFETY: the callers pass the type that the request is defined with.
        match unsafe { libc::ioctl(self.0.as_raw_fd(), request, std::ptr::from_mut(argument)) } {
            -1 => {
                let error = io::Error::last_os_error();
                Err(io::Error::new(error.kind(), format!("{what}: {error}")))
            }
            _ => Ok(()),
        }
    }

    /// Switches an offload off: each packet is a frame, as on the wire.
    fn switch_off(&self, name: &str, command: u32) -> io::Result<()> {
        let mut value = [command, 0];
        let mut request = interface(name);
        request.ifr_ifru.ifru_data = value.as_mut_ptr().cast();
        const SIOCETHTOOL: libc::Ioctl = 0x8946;
        match self.call(SIOCETHTOOL, &mut request, &format!("{name}: offload")) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(()), // the device has none
            other => other,
        }
    }
}

fn interface(name: &str) -> libc::ifreq {
    // SAFETY: an ifreq of zeros is valid: numbers, characters, and a pointer that may be null.
    let mut request: libc::ifreq = unsafe { zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request
}

fn parse_mac(text: &str) -> io::Result<Vec<u8>> {
    let parts = text.split(':').map(|part| u8::from_str_radix(part, 16));
    let bytes = parts.collect::<Result<Vec<u8>, _>>().ok();
    bytes
        .filter(|bytes| bytes.len() == 6)
        .ok_or_else(|| io::Error::other(format!("\"{text}\" is no Ethernet address")))
}

fn index_of(name: &str) -> io::Result<u32> {
    Ok(rustix::net::netdevice::name_to_index(
        Control::new()?.0,
        name,
    )?)
}

/// RTM_NEWLINK with IFF_UP.
fn bring_up(name: &str) -> io::Result<()> {
    change_link(name, libc::IFF_UP as u32)?.call(&format!("{name}: up"))
}

/// RTM_NEWLINK with IFLA_MTU.
fn set_mtu(name: &str, mtu: u32) -> io::Result<()> {
    const IFLA_MTU: u16 = 4;
    change_link(name, 0)?
        .attribute(IFLA_MTU, &mtu.to_ne_bytes())
        .call(&format!("{name}: MTU {mtu}"))
}

/// RTM_NEWLINK of an interface of this namespace, in the making; `flags` are set.
fn change_link(name: &str, flags: u32) -> io::Result<Request> {
    // ifinfomsg: family, padding, type; index; flags, and which of them change
    Ok(Request::new(RTM_NEWLINK, 0, &[0; 4])
        .number(index_of(name)?)
        .number(flags)
        .number(flags))
}

/// A request of rtnetlink(7) in the making: no ioctl moves an interface, or gives a route metrics.
struct Request(Vec<u8>);

impl Request {
    const ACK: u16 = 0x1 | 0x4;
    const CREATE: u16 = 0x400;

    /// `body` is the message's fixed part.
    fn new(kind: u16, flags: u16, body: &[u8]) -> Request {
        let mut message = vec![0u8; 16]; // nlmsghdr
        message[4..6].copy_from_slice(&kind.to_ne_bytes());
        message[6..8].copy_from_slice(&(flags | Request::ACK).to_ne_bytes());
        message.extend_from_slice(body);
        Request(message)
    }

    /// RTM_NEWROUTE to destinations of a family with a prefix of this length.
    fn route(family: u8, prefix_len: u8) -> Request {
        // rtmsg: family, prefix lengths, TOS; table main, protocol boot, scope link, type unicast; flags
        let body = [family, prefix_len, 0, 0, 254, 3, 253, 1, 0, 0, 0, 0];
        Request::new(RTM_NEWROUTE, Request::CREATE, &body)
    }

    /// A number more of the fixed part.
    fn number(mut self, number: u32) -> Request {
        self.0.extend_from_slice(&number.to_ne_bytes());
        self
    }

    fn attribute(mut self, kind: u16, value: &[u8]) -> Request {
        self.0.extend_from_slice(&attribute(kind, value));
        self
    }

    /// Sends it and takes the answer.
    fn call(mut self, what: &str) -> io::Result<()> {
        let len = self.0.len() as u32;
        self.0[0..4].copy_from_slice(&len.to_ne_bytes());
        let route = socket(AddressFamily::NETLINK, SocketType::RAW, None)?;
        rustix::net::send(&route, &self.0, rustix::net::SendFlags::empty())?;
        let mut reply = [0u8; 256];
        let (len, _) = rustix::net::recv(&route, &mut reply, rustix::net::RecvFlags::empty())?;
        // nlmsghdr, then nlmsgerr with a negative errno, or 0.
        let code = match reply.get(16..20) {
            Some(code) if len >= 20 => i32::from_ne_bytes([code[0], code[1], code[2], code[3]]),
            _ => -libc::EIO,
        };
        match code {
            0 => Ok(()),
            code => {
                let error = io::Error::from_raw_os_error(-code);
                Err(io::Error::new(error.kind(), format!("{what}: {error}")))
            }
        }
    }
}

/// A rtattr with its value, padded.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = (4 + value.len() as u16).to_ne_bytes().to_vec();
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// RTM_NEWLINK with IFLA_NET_NS_FD.
fn move_interface(name: &str, to: &Namespace) -> io::Result<()> {
    const IFLA_IFNAME: u16 = 3;
    const IFLA_NET_NS_FD: u16 = 28;
    // ifinfomsg, whose index 0 means: by name
    Request::new(RTM_NEWLINK, 0, &[0; 16])
        .attribute(IFLA_IFNAME, &[name.as_bytes(), &[0]].concat())
        .attribute(IFLA_NET_NS_FD, &to.0.as_raw_fd().to_ne_bytes())
        .call(&format!("moving {name}"))
}

/// RTM_NEWROUTE to one host with metrics.
fn add_route(name: &str, route: &Route) -> io::Result<()> {
    const RTA_DST: u16 = 1;
    const RTA_METRICS: u16 = 8;
    const RTAX_LOCK: u16 = 1;
    const RTAX_CWND: u16 = 7;
    const RTAX_INITCWND: u16 = 11;
    const RTAX_RTO_MIN: u16 = 13;
    const RTAX_QUICKACK: u16 = 15;
    let metrics = [
        (RTAX_LOCK, route.cwnd.map(|_| 1 << RTAX_CWND)),
        (RTAX_CWND, route.cwnd),
        (RTAX_INITCWND, route.initcwnd),
        (RTAX_RTO_MIN, route.rto_min_ms),
        (RTAX_QUICKACK, route.quickack.then_some(1)),
    ];
    let given = metrics
        .iter()
        .filter_map(|(kind, value)| Some((*kind, (*value)?)));
    let metrics: Vec<u8> = given
        .flat_map(|(kind, value)| attribute(kind, &value.to_ne_bytes()))
        .collect();
    let (family, octets) = bytes_of(&route.to);
    Request::route(family, 8 * octets.len() as u8)
        .attribute(RTA_DST, &octets)
        .attribute(RTA_OIF, &index_of(name)?.to_ne_bytes())
        .attribute(RTA_METRICS, &metrics)
        .call(&format!("route to {}", route.to))
}
