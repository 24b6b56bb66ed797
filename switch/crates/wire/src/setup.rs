// SPDX-License-Identifier: Apache-2.0
//! From a configuration to the loop: interfaces opened, links made, ports bound.

use crate::config::{End, LinkConfig};
use crate::network::Network;
use crate::run::{Attached, Loop, NetworkHandle};
use fabric::Sink;
use netio::interface::LinkWatch;
use netio::socket::{RingOptions, TxSocket};
use netio::thread::Scheduling;
use netio::tx_batch::TxBatch;
use netio::{PortBinding, PortIo};

/// Ethernet header and two VLAN tags.
const LINK_HEADER_MAX: usize = 14 + 8;
/// Kernel memory that all receive rings share out among them.
const RING_BYTES_TOTAL: usize = 64 << 20;
const RING_FRAMES_MIN: usize = 128;
const RING_FRAMES_MAX: usize = 4096;
/// Memory of all frames.
const FRAME_BYTES_MAX: usize = 512 << 20;
/// With so many processors there is one for a thread that sends beside those of the packet thread and of the hosts.
const PROCESSORS_FOR_SENDING: usize = 3;

/// How the packet thread works, of one switch and of a network alike.
#[derive(clap::Args, Debug, Clone)]
pub struct LoopOptions {
    #[command(flatten)]
    pub scheduling: Scheduling,
    /// Look instead of sleep for so long around a frame or a departure, microseconds (0 to 10000): shorter delays, for up to a whole processor
    #[arg(long, default_value_t = 0, value_name = "US", value_parser = clap::value_parser!(u64).range(0..=10_000))]
    pub spin_us: u64,
    /// Wake up to this much before an instant, as the machine's latency asks for, and poll for the rest (0 to 1000)
    #[arg(long, default_value_t = 100, value_name = "US", value_parser = clap::value_parser!(u64).range(0..=1000))]
    pub lead_us: u64,
    /// Threads that send frames, each for a share of the interfaces; 0: the packet thread sends too; auto: one where the process has 3
    /// processors
    #[arg(long, default_value = "0", value_name = "auto|N", value_parser = parse_threads)]
    pub send_threads: SendThreads,
    /// Frames that the kernel keeps for each interface while the packet thread is busy (32 to 65536); without it 128 to 4096, as many as 64 MiB hold
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(32..=65_536))]
    pub ring_frames: Option<u32>,
}

/// How many threads send; None: what the machine has room for.
pub type SendThreads = Option<usize>;

fn parse_threads(text: &str) -> Result<SendThreads, String> {
    let number = text.parse().ok().filter(|number| *number <= 64);
    match (text, number) {
        ("auto", _) => Ok(None),
        (_, Some(number)) => Ok(Some(number)),
        _ => Err(format!(
            "\"{text}\" is neither auto nor a number from 0 to 64"
        )),
    }
}

impl LoopOptions {
    /// Threads that send on this machine.
    pub fn sending_threads(&self) -> usize {
        self.send_threads.unwrap_or_else(|| {
            let processors = std::thread::available_parallelism();
            usize::from(processors.is_ok_and(|number| number.get() >= PROCESSORS_FOR_SENDING))
        })
    }
}

/// A switch of the network: its name and its ports' interfaces.
pub struct SwitchPlan {
    pub name: String,
    pub ports: Vec<PortBinding>,
}

/// What the network has.
pub struct Setup<'a> {
    pub links: &'a [LinkConfig],
    pub switches: &'a [SwitchPlan],
    /// Of the links' chance.
    pub seed: u64,
    /// Most frames on all links together.
    pub frames: usize,
    pub options: &'a LoopOptions,
}

impl Setup<'_> {
    /// Opens everything. The switches are not there until they are started.
    ///
    /// # Errors
    /// One sentence that says what is wrong.
    pub fn open(&self) -> Result<(Loop, NetworkHandle), String> {
        let switches = self.switches;
        let failed = |e| format!("epoll, eventfd or netlink: {e}");
        // First: what changes while all is opened is looked up again.
        let watch = LinkWatch::open().map_err(failed)?;
        let mut network = Network::new(switches.len(), self.seed, self.frames);
        let mut found = Found {
            switches,
            interfaces: Vec::new(),
            owners: Vec::new(),
        };
        let mut ends = Vec::with_capacity(2 * self.links.len());
        for link in self.links {
            let owner = format!("link \"{}\"", link.name);
            let of = |e: String| format!("{owner}: {e}");
            let sinks = [found.end(&link.a, &owner), found.end(&link.b, &owner)];
            let [(a, end_a), (b, end_b)] = match sinks {
                [Ok(a), Ok(b)] => [a, b],
                [Err(e), _] | [_, Err(e)] => return Err(of(e)),
            };
            ends.extend([end_a, end_b]);
            let added = network.add_link(&link.name, [a, b], [&link.a_to_b, &link.b_to_a]);
            added.map_err(|e| of(e.to_string()))?;
        }
        // Ports that are at no link lead to their interfaces.
        for (index, switch) in switches.iter().enumerate() {
            for PortBinding { port, interface } in &switch.ports {
                let place = Some((index, *port));
                if found.interfaces.iter().any(|one| one.port == place) {
                    continue;
                }
                let owner = format!("port {port} of switch \"{}\"", switch.name);
                let number = found.interface(interface, &owner)?;
                let one = &mut found.interfaces[number];
                (one.has_frames, one.port) = (true, place);
                network.bind(number as u32, index as u32, *port);
            }
        }
        let mut interfaces = found.interfaces;
        let mtu = interfaces.iter().map(|one| one.io.mtu()).max();
        let slot_len = mtu.unwrap_or(0) as usize + LINK_HEADER_MAX;
        network.limit_frames(FRAME_BYTES_MAX / slot_len);
        let rings = interfaces.iter().filter(|one| one.has_frames).count();
        let share = RING_BYTES_TOTAL / slot_len.next_power_of_two() / rings.max(1);
        let ring = RingOptions {
            frames: match self.options.ring_frames {
                Some(frames) => frames as usize,
                None => share.clamp(RING_FRAMES_MIN, RING_FRAMES_MAX),
            },
        };
        // Without an interface no right is needed: P4Runtime alone, as for trying a program.
        let sockets =
            (0..rings.min(self.options.sending_threads().max(1))).map(|_| TxSocket::open());
        let sockets: std::io::Result<_> = sockets.collect();
        let sockets = sockets.map_err(|e| {
            format!("opening a packet socket (interfaces need root, or a user and network namespace: unshare -rn) failed: {e}")
        })?;
        let tx = TxBatch::new(sockets, interfaces.len());
        for one in interfaces.iter_mut().filter(|one| one.has_frames) {
            one.io.open(ring).map_err(|e| e.to_string())?;
        }
        let (options, switches) = (self.options, switches.len());
        Loop::new(network, interfaces, ends, tx, watch, options, switches).map_err(failed)
    }
}

/// The interfaces that were found, by their numbers.
struct Found<'a> {
    switches: &'a [SwitchPlan],
    interfaces: Vec<Attached>,
    /// What each belongs to.
    owners: Vec<String>,
}

impl Found<'_> {
    /// The number of an interface, which belongs to `owner` alone.
    fn interface(&mut self, name: &str, owner: &str) -> Result<usize, String> {
        let known = self.interfaces.iter().position(|one| one.io.name() == name);
        if let Some(number) = known {
            let other = &self.owners[number];
            return match other == owner {
                true => Ok(number),
                false => Err(format!(
                    "interface \"{name}\" is used twice, by {other} and by {owner}"
                )),
            };
        }
        self.owners.push(owner.to_owned());
        self.interfaces.push(Attached {
            io: PortIo::find(name).map_err(|e| e.to_string())?,
            has_frames: false,
            port: None,
        });
        Ok(self.interfaces.len() - 1)
    }

    /// Where an end is, and which interface stands for it.
    fn end(&mut self, end: &End, owner: &str) -> Result<(Sink, usize), String> {
        match end {
            End::Interface { interface: name } => {
                let number = self.interface(name, owner)?;
                self.interfaces[number].has_frames = true;
                Ok((Sink::Interface(number as u32), number))
            }
            End::Port { switch, port } => {
                let index = self.switches.iter().position(|one| one.name == *switch);
                let index = index.ok_or_else(|| format!("there is no switch \"{switch}\""))?;
                let ports = &self.switches[index].ports;
                let binding = ports.iter().find(|one| one.port == *port);
                let binding = binding.ok_or_else(|| {
                    format!("switch \"{switch}\" has no port {port} with an interface")
                })?;
                let number = self.interface(&binding.interface.clone(), owner)?;
                self.interfaces[number].port = Some((index, *port));
                let index = index as u32;
                Ok((Sink::Switch { index, port: *port }, number))
            }
        }
    }
}
