// SPDX-License-Identifier: Apache-2.0
//! What the kernel says of flows between real hosts: the file of samples that the guest writes, read as it grows.

use crate::config::Config;
use crate::results::FlowReport;
use device::Nanos;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use uml::plan::SAMPLE_NUMBERS;

/// In the machine's folder.
pub(crate) const FILE: &str = "samples";
const NUMBER_BYTES: usize = 8;
/// `tcpi_bytes_acked` counts the SYN.
const SYN_BYTES: u64 = 1;

/// Offsets in `struct tcp_info` (include/uapi/linux/tcp.h); members are only ever added at its end.
mod offset {
    pub(super) const UNACKED: usize = 24;
    pub(super) const SACKED: usize = 28;
    pub(super) const LOST: usize = 32;
    pub(super) const RETRANS: usize = 36;
    pub(super) const RTT_US: usize = 68;
    pub(super) const SND_SSTHRESH: usize = 76;
    pub(super) const SND_CWND: usize = 80;
    pub(super) const TOTAL_RETRANS: usize = 100;
    pub(super) const BYTES_ACKED: usize = 120;
    pub(super) const DATA_SEGS_OUT: usize = 156;
    pub(super) const TOTAL_RTO: usize = 240;
    /// Behind the last of these.
    pub(super) const END: usize = 242;
}

/// The last sample of a flow between real hosts; zeros before the first.
#[derive(Clone, Debug, Default)]
pub(crate) struct RealFlow {
    pub(crate) acked_bytes: u64,
    pub(crate) received_bytes: u64,
    pub(crate) sent_segments: u64,
    pub(crate) retransmits: u64,
    pub(crate) timeouts: u64,
    pub(crate) srtt_ns: Nanos,
    pub(crate) cwnd_packets: u32,
    pub(crate) ssthresh_packets: u32,
    pub(crate) in_flight: u32,
    congestion_control: String,
    connections: u64,
}

impl RealFlow {
    /// Puts what is known into a flow's report.
    pub(crate) fn show_in(&self, report: &mut FlowReport) {
        report.acked_bytes = self.acked_bytes;
        report.received_bytes = self.received_bytes;
        report.sent_segments = self.sent_segments;
        report.retransmits = self.retransmits;
        report.timeouts = self.timeouts;
        report.srtt_ns = self.srtt_ns;
        report.cwnd_packets = self.cwnd_packets;
        report.connections = self.connections;
        report.cc.clone_from(&self.congestion_control);
    }
}

pub(crate) struct Samples {
    file: Option<File>,
    /// Bytes of a sample of which the end is missing.
    unread: Vec<u8>,
    /// By the guest's number of a flow: its place in the configuration.
    places: Vec<usize>,
    /// By place in the configuration; None: it is simulated.
    flows: Vec<Option<RealFlow>>,
}

impl Samples {
    /// `is_real` says it of each flow of the configuration.
    pub(crate) fn new(config: &Config, is_real: impl Fn(usize) -> bool) -> Samples {
        let places: Vec<usize> = (0..config.flows.len()).filter(|i| is_real(*i)).collect();
        let mut flows = vec![None; config.flows.len()];
        for &place in &places {
            let name = config.flows[place].linux.congestion_control.clone();
            flows[place] = Some(RealFlow {
                congestion_control: name.unwrap_or_default(),
                ..RealFlow::default()
            });
        }
        Samples {
            file: None,
            unread: Vec::new(),
            places,
            flows,
        }
    }

    /// The last sample of a flow, by its place in the configuration; None: it is simulated.
    pub(crate) fn flow(&self, place: usize) -> Option<&RealFlow> {
        self.flows.get(place)?.as_ref()
    }

    /// Takes in what the guest has written since.
    ///
    /// # Errors
    /// The file cannot be read, or holds something else.
    pub(crate) fn read(&mut self, folder: &Path) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => match File::open(folder.join(FILE)) {
                Ok(file) => self.file.insert(file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(error) => return Err(error),
            },
        };
        file.read_to_end(&mut self.unread)?;
        let mut rest = self.unread.as_slice();
        while let Some((numbers, later)) = rest.split_at_checked(SAMPLE_NUMBERS * NUMBER_BYTES) {
            let number = |index: usize| u64_at(numbers, index * NUMBER_BYTES);
            let Some((info, later)) = later.split_at_checked(number(3) as usize) else {
                break;
            };
            let place = self.places.get(number(1) as usize);
            let flow = place.and_then(|place| self.flows[*place].as_mut());
            match flow {
                Some(flow) if info.len() >= offset::END => take(flow, number(2), info),
                _ => return Err(io::Error::other("no sample of a flow")),
            }
            rest = later;
        }
        let left = rest.len();
        self.unread.drain(..self.unread.len() - left);
        Ok(())
    }
}

fn take(flow: &mut RealFlow, received_bytes: u64, info: &[u8]) {
    let number = |offset: usize| u32_at(info, offset);
    flow.connections = 1;
    flow.received_bytes = received_bytes;
    flow.acked_bytes = u64_at(info, offset::BYTES_ACKED).saturating_sub(SYN_BYTES);
    flow.sent_segments = number(offset::DATA_SEGS_OUT).into();
    flow.retransmits = number(offset::TOTAL_RETRANS).into();
    flow.timeouts =
        u16::from_le_bytes([info[offset::TOTAL_RTO], info[offset::TOTAL_RTO + 1]]).into();
    flow.srtt_ns = Nanos::from(number(offset::RTT_US)) * 1000;
    flow.cwnd_packets = number(offset::SND_CWND);
    flow.ssthresh_packets = number(offset::SND_SSTHRESH);
    let left_out = number(offset::SACKED) + number(offset::LOST);
    flow.in_flight = (number(offset::UNACKED) + number(offset::RETRANS)).saturating_sub(left_out);
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn sample(flow: u64, received: u64, cwnd: u32) -> Vec<u8> {
        let mut info = vec![0u8; offset::END + 6];
        info[offset::SND_CWND..offset::SND_CWND + 4].copy_from_slice(&cwnd.to_le_bytes());
        info[offset::BYTES_ACKED..offset::BYTES_ACKED + 8].copy_from_slice(&1001u64.to_le_bytes());
        info[offset::TOTAL_RTO] = 3;
        let numbers = [7, flow, received, info.len() as u64];
        let mut bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        bytes.extend(info);
        bytes
    }

    #[test]
    fn samples_are_taken_in_as_they_come_also_in_halves() {
        let folder = std::env::temp_dir().join(format!("fairlane-samples-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let flow = |name: &str| {
            format!(r#"{{"name": "{name}", "from": "a", "to": "b", "app": {{"kind": "greedy"}}}}"#)
        };
        let text = format!(r#"{{"flows": [{}, {}]}}"#, flow("simulated"), flow("real"));
        let config: Config = serde_json::from_str(&text).unwrap();
        let mut samples = Samples::new(&config, |place| place == 1);
        samples.read(&folder).unwrap();
        assert!(samples.flow(0).is_none());
        assert_eq!(samples.flow(1).unwrap().cwnd_packets, 0);
        let mut file = File::create(folder.join(FILE)).unwrap();
        let second = sample(0, 500, 20);
        file.write_all(&sample(0, 100, 10)).unwrap();
        file.write_all(&second[..40]).unwrap();
        samples.read(&folder).unwrap();
        assert_eq!(samples.flow(1).unwrap().cwnd_packets, 10);
        file.write_all(&second[40..]).unwrap();
        samples.read(&folder).unwrap();
        let real = samples.flow(1).unwrap();
        assert_eq!((real.cwnd_packets, real.received_bytes), (20, 500));
        assert_eq!((real.acked_bytes, real.timeouts), (1000, 3));
        file.write_all(&sample(5, 0, 0)).unwrap();
        assert!(samples.read(&folder).is_err(), "there is no such flow");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
