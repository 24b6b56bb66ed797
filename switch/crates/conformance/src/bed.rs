// SPDX-License-Identifier: Apache-2.0
//! A `Device` in virtual time, and what leaves it: the bed of these tests and of the fuzz targets.

use device::{Device, DeviceConfig, Nanos, Packet, PortConfig, Transmit};

/// A frame that left, and by which port.
pub type Sent = (u32, Vec<u8>);

/// A device, its time, and the frames that left it.
pub struct Bed {
    pub device: Device,
    /// Virtual time in nanoseconds; never runs backwards.
    pub now: Nanos,
    sent: Wire,
}

struct Wire {
    sent: Vec<Sent>,
    most: usize,
}

impl Transmit for Wire {
    fn transmit(&mut self, port: u32, packet: &mut Packet, _at: Nanos) {
        if self.sent.len() < self.most {
            self.sent.push((port, packet.frame().to_vec()));
        }
    }
}

impl Bed {
    /// A device with these ports and no program. Of the frames that nobody takes, only the first `most` are kept.
    ///
    /// # Panics
    /// When a port is given twice, or is none that a device may have.
    pub fn new(
        config: DeviceConfig,
        ports: impl IntoIterator<Item = u32>,
        port: PortConfig,
        most: usize,
    ) -> Bed {
        let mut device = Device::new(config);
        for number in ports {
            device.add_port(number, port).expect("a port");
        }
        let sent = Wire {
            sent: Vec::new(),
            most,
        };
        Bed {
            device,
            now: 0,
            sent,
        }
    }

    /// Lets so many nanoseconds pass; frames leave. When something is due next.
    pub fn pass(&mut self, time: Nanos) -> Option<Nanos> {
        self.now += time;
        self.device.advance(self.now, &mut self.sent)
    }

    /// A frame comes in at a port, now.
    pub fn receive(&mut self, port: u32, frame: &[u8]) {
        self.device.receive(self.now, port, frame);
    }

    /// What left since it was asked for last.
    pub fn take(&mut self) -> Vec<Sent> {
        std::mem::take(&mut self.sent.sent)
    }
}
