// SPDX-License-Identifier: Apache-2.0
//! A pcapng file: one section, its interfaces, and the frames in the order in which they are written.

use crate::Nanos;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};
use pcap_file::{DataLink, PcapError};
use rustix::fs::{fcntl_setfl, OFlags};
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

/// `if_tsresol` of 10^-9 s.
const NANOSECONDS: u8 = 9;

/// What frames are seen at.
#[derive(Clone, Debug)]
pub struct Interface {
    pub name: String,
    pub description: String,
}

impl Interface {
    /// A direction of a link, as one of its ends sees it.
    pub fn of_link(link: &str, direction: &str, end: &str) -> Interface {
        Interface {
            name: format!("{link} {direction}"),
            description: format!("seen at end {end}"),
        }
    }
}

/// A frame that was seen.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Since 1970; of virtual time, since its beginning.
    pub at: Nanos,
    /// Its place in the list of interfaces.
    pub interface: u32,
    /// Of the whole frame.
    pub len_bytes: u32,
    /// Its beginning.
    pub bytes: &'a [u8],
}

/// A pcapng file that is being written.
pub struct CaptureFile {
    writer: PcapNgWriter<BufWriter<File>>,
}

impl CaptureFile {
    /// Creates the file; one that is there is replaced. It may be a pipe that somebody reads.
    ///
    /// # Errors
    /// The system's error, which for a pipe that nobody reads is ENXIO.
    pub fn create(
        path: &Path,
        interfaces: &[Interface],
        snap_bytes: u32,
    ) -> io::Result<CaptureFile> {
        let mut options = File::options();
        options.write(true).create(true).truncate(true);
        // To open waits for nobody; to write does.
        let file = options
            .custom_flags(OFlags::NONBLOCK.bits() as i32)
            .open(path)?;
        fcntl_setfl(&file, OFlags::empty())?;
        let mut writer = PcapNgWriter::new(BufWriter::new(file)).map_err(io_error)?;
        for Interface { name, description } in interfaces {
            let interface = InterfaceDescriptionBlock {
                linktype: DataLink::ETHERNET,
                snaplen: snap_bytes,
                options: vec![
                    InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
                    InterfaceDescriptionOption::IfDescription(Cow::Borrowed(description)),
                    InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
                ],
            };
            let block = interface.into_block();
            writer.write_block(&block).map_err(io_error)?;
        }
        writer.get_mut().flush()?;
        Ok(CaptureFile { writer })
    }

    /// Appends a frame.
    ///
    /// # Errors
    /// The system's error.
    pub fn write(&mut self, frame: Frame<'_>) -> io::Result<()> {
        let block = EnhancedPacketBlock {
            interface_id: frame.interface,
            timestamp: Duration::from_nanos(frame.at),
            original_len: frame.len_bytes,
            data: Cow::Borrowed(frame.bytes),
            options: Vec::new(),
        };
        let written = self.writer.write_block(&block.into_block());
        written.map(|_| ()).map_err(io_error)
    }

    /// Has the file hold all that was written.
    ///
    /// # Errors
    /// The system's error.
    pub fn flush(&mut self) -> io::Result<()> {
        self.writer.get_mut().flush()
    }
}

fn io_error(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other.to_string()),
    }
}
