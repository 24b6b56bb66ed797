// SPDX-License-Identifier: Apache-2.0
//! Reads a capture back.

use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use std::fs::File;
use std::path::{Path, PathBuf};

/// A frame of a file.
#[derive(Debug, PartialEq, Eq)]
pub struct Seen {
    pub interface: String,
    pub at_ns: u64,
    pub len_bytes: u32,
    pub bytes: Vec<u8>,
}

/// All frames of a file; each interface counts nanoseconds.
pub fn read(path: &Path) -> Vec<Seen> {
    let mut reader = PcapNgReader::new(File::open(path).unwrap()).unwrap();
    let (mut names, mut seen) = (Vec::new(), Vec::new());
    while let Some(block) = reader.next_block() {
        match block.unwrap() {
            Block::InterfaceDescription(interface) => {
                let options = interface.options;
                assert!(options.contains(&InterfaceDescriptionOption::IfTsResol(9)));
                names.extend(options.into_iter().find_map(|option| match option {
                    InterfaceDescriptionOption::IfName(name) => Some(name.into_owned()),
                    _ => None,
                }));
            }
            Block::EnhancedPacket(packet) => seen.push(Seen {
                interface: names[packet.interface_id as usize].clone(),
                at_ns: packet.timestamp.as_nanos() as u64,
                len_bytes: packet.original_len,
                bytes: packet.data.into_owned(),
            }),
            _ => {}
        }
    }
    seen
}

/// A path for this test.
pub fn temporary(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("fairlane-{}-{name}.pcapng", std::process::id()))
}
