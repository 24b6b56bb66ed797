// SPDX-License-Identifier: Apache-2.0
//! Network namespaces, and interfaces in them: addresses, routes, neighbours, offloads, sysctls.

use rustix::fd::{AsRawFd, OwnedFd};
use rustix::net::{socket, AddressFamily, SocketType};
use rustix::thread::{move_into_link_name_space, LinkNameSpaceType, UnshareFlags};
use std::fs::File;
use std::io;
use std::mem::zeroed;
use std::net::Ipv4Addr;
use uml::plan::{Host, Route};

/// A network namespace.
pub struct Namespace(OwnedFd);

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
    let control = Control::new()?;
    for offload in ETHTOOL_OFF {
        control.switch_off(&name, offload)?;
    }
    control.bring_up("lo")?;
    control.set_address(&name, libc::SIOCSIFADDR, host.ip)?;
    control.set_address(&name, libc::SIOCSIFNETMASK, Ipv4Addr::BROADCAST)?;
    control.bring_up(&name)?;
    control.route_all_to(&name)?;
    for (ip, mac) in &host.neighbours {
        control.set_neighbour(&name, *ip, mac)?;
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

    fn bring_up(&self, name: &str) -> io::Result<()> {
        let mut request = interface(name);
        request.ifr_ifru.ifru_flags = libc::IFF_UP as i16;
        self.call(libc::SIOCSIFFLAGS, &mut request, name)
    }

    fn set_address(&self, name: &str, what: libc::Ioctl, ip: Ipv4Addr) -> io::Result<()> {
        let mut request = interface(name);
        request.ifr_ifru.ifru_addr = address(ip);
        self.call(what, &mut request, &format!("{name}: address {ip}"))
    }

    fn set_neighbour(&self, name: &str, ip: Ipv4Addr, mac: &str) -> io::Result<()> {
        // SAFETY: an arpreq of zeros is valid: numbers and characters only.
        let mut request: libc::arpreq = unsafe { zeroed() };
        request.arp_pa = address(ip);
        request.arp_ha.sa_family = libc::ARPHRD_ETHER;
        for (to, part) in request.arp_ha.sa_data.iter_mut().zip(mac.split(':')) {
            *to = u8::from_str_radix(part, 16)
                .map_err(|_| io::Error::other(format!("\"{mac}\" is no Ethernet address")))?
                as libc::c_char;
        }
        request.arp_flags = libc::ATF_COM | libc::ATF_PERM;
        for (to, from) in request.arp_dev.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        self.call(libc::SIOCSARP, &mut request, &format!("neighbour {ip}"))
    }

    /// Everybody is a neighbour.
    fn route_all_to(&self, name: &str) -> io::Result<()> {
        let device = std::ffi::CString::new(name)?;
        // SAFETY: a rtentry of zeros is valid: numbers and a pointer that may be null.
        let mut route: libc::rtentry = unsafe { zeroed() };
        route.rt_dst = address(Ipv4Addr::UNSPECIFIED);
        route.rt_genmask = address(Ipv4Addr::UNSPECIFIED);
        route.rt_flags = libc::RTF_UP;
        route.rt_dev = device.as_ptr().cast_mut();
        self.call(libc::SIOCADDRT, &mut route, &format!("{name}: route"))
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

fn address(ip: Ipv4Addr) -> libc::sockaddr {
    // SAFETY: a sockaddr of zeros is valid: numbers only.
    let mut address: libc::sockaddr = unsafe { zeroed() };
    address.sa_family = libc::AF_INET as libc::sa_family_t;
    for (to, from) in address.sa_data[2..].iter_mut().zip(ip.octets()) {
        *to = from as libc::c_char;
    }
    address
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
    const RTM_NEWLINK: u16 = 16;
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
    const RTM_NEWROUTE: u16 = 24;
    const RTA_DST: u16 = 1;
    const RTA_OIF: u16 = 4;
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
    let index = rustix::net::netdevice::name_to_index(Control::new()?.0, name)?;
    // rtmsg: family, prefix length, 0, 0; table main, protocol boot, scope link, type unicast; flags
    let body = [libc::AF_INET as u8, 32, 0, 0, 254, 3, 253, 1, 0, 0, 0, 0];
    Request::new(RTM_NEWROUTE, Request::CREATE, &body)
        .attribute(RTA_DST, &route.to.octets())
        .attribute(RTA_OIF, &index.to_ne_bytes())
        .attribute(RTA_METRICS, &metrics)
        .call(&format!("route to {}", route.to))
}
