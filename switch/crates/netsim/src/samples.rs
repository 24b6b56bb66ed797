// SPDX-License-Identifier: Apache-2.0
//! What the guest reports of flows between real hosts: its files of samples and transfers, read as they grow.

use crate::config::Config;
use crate::results::{FlowReport, Transfer};
use device::Nanos;
use flows::TcpInfo;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use uml::plan::SAMPLE_NUMBERS;

/// In the machine's folder.
pub(crate) const FILE: &str = "samples";
const NUMBER_BYTES: usize = 8;
const TRANSFERS: &str = "transfers";
/// `tcpi_bytes_acked` counts the SYN.
const SYN_BYTES: u64 = 1;

/// What the last samples say of a flow between real hosts; zeros before the first.
#[derive(Clone, Debug, Default)]
pub(crate) struct RealFlow {
    /// Counts of connections that are closed, and what is the latest connection's.
    report: FlowReport,
    open: BTreeMap<u64, FlowReport>,
    datagrams: u64,
    /// Of the latest connection.
    pub(crate) ssthresh_packets: u32,
    pub(crate) in_flight: u32,
}

impl RealFlow {
    /// What it has but for the counts of open connections.
    pub(crate) fn latest(&self) -> &FlowReport {
        &self.report
    }

    /// Puts what is known into a flow's report.
    pub(crate) fn show_in(&self, report: &mut FlowReport) {
        let before = std::mem::replace(report, self.report.clone());
        self.open.values().for_each(|open| report.sum(open));
        report.sent_segments += self.datagrams;
        report.flow = before.flow;
        if report.cc.is_empty() {
            report.cc = before.cc;
        }
    }

    /// `numbers` of a sample, and TCP_INFO.
    fn take(&mut self, numbers: [u64; SAMPLE_NUMBERS], info: Option<TcpInfo<&[u8]>>) {
        let [_, _, connection, received, datagrams, is_last, undone, bw_est_pps, _] = numbers;
        self.report.received_bytes = received;
        self.datagrams = datagrams;
        let Some(info) = info else {
            return;
        };
        let counts = FlowReport {
            acked_bytes: info.bytes_acked().saturating_sub(SYN_BYTES),
            sent_segments: info.data_segments_out().into(),
            retransmits: info.retransmits().into(),
            timeouts: info.timeouts().unwrap_or_default().into(),
            spurious_timeouts: undone,
            bw_est_pps,
            ..FlowReport::default()
        };
        match is_last {
            0 => {
                self.open.insert(connection, counts);
            }
            _ => {
                self.open.remove(&connection);
                self.report.sum(&counts);
            }
        }
        if connection + 1 >= self.report.connections {
            self.report.connections = connection + 1;
            self.report.srtt_ns = Nanos::from(info.srtt_us()) * 1000;
            self.report.cwnd_packets = info.cwnd_packets();
            self.ssthresh_packets = info.ssthresh_packets();
            self.in_flight = info.in_flight();
        }
    }
}

/// A file that the guest writes, read as it grows.
struct Growing {
    name: &'static str,
    file: Option<File>,
    /// What has come and was not taken yet.
    unread: Vec<u8>,
}

impl Growing {
    fn new(name: &'static str) -> Growing {
        Growing {
            name,
            file: None,
            unread: Vec::new(),
        }
    }

    /// All that has come; `take` gives what it leaves.
    fn read(
        &mut self,
        folder: &Path,
        take: impl FnOnce(&[u8]) -> io::Result<usize>,
    ) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => match File::open(folder.join(self.name)) {
                Ok(file) => self.file.insert(file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(error) => return Err(error),
            },
        };
        file.read_to_end(&mut self.unread)?;
        let left = take(&self.unread)?;
        self.unread.drain(..self.unread.len() - left);
        Ok(())
    }
}

pub(crate) struct Samples {
    samples: Growing,
    transfer_lines: Growing,
    /// By the guest's number of a flow: its place in the configuration.
    places: Vec<usize>,
    /// By place in the configuration; None: it is simulated.
    flows: Vec<Option<RealFlow>>,
    names: Vec<String>,
    finished: Vec<Transfer>,
    unfinished: Vec<Transfer>,
}

impl Samples {
    /// `is_real` says it of each flow of the configuration.
    pub(crate) fn new(config: &Config, is_real: impl Fn(usize) -> bool) -> Samples {
        let places: Vec<usize> = (0..config.flows.len()).filter(|i| is_real(*i)).collect();
        let mut flows = vec![None; config.flows.len()];
        for &place in &places {
            let name = config.flows[place].linux.congestion_control.clone();
            let flow = flows[place].insert(RealFlow::default());
            flow.report.cc = name.unwrap_or_default();
        }
        Samples {
            samples: Growing::new(FILE),
            transfer_lines: Growing::new(TRANSFERS),
            places,
            flows,
            names: config.flows.iter().map(|flow| flow.name.clone()).collect(),
            finished: Vec::new(),
            unfinished: Vec::new(),
        }
    }

    /// A flow, by its place in the configuration; None: it is simulated.
    pub(crate) fn flow(&self, place: usize) -> Option<&RealFlow> {
        self.flows.get(place)?.as_ref()
    }

    /// Transfers that have ended since the last call.
    pub(crate) fn take_finished(&mut self) -> Vec<Transfer> {
        std::mem::take(&mut self.finished)
    }

    /// What was under way at the end.
    pub(crate) fn unfinished(&self) -> &[Transfer] {
        &self.unfinished
    }

    /// Takes in what the guest has written since.
    ///
    /// # Errors
    /// A file cannot be read, or holds something else.
    pub(crate) fn read(&mut self, folder: &Path) -> io::Result<()> {
        let (places, flows) = (&self.places, &mut self.flows);
        self.samples.read(folder, |mut rest| {
            while let Some((head, later)) = rest.split_at_checked(SAMPLE_NUMBERS * NUMBER_BYTES) {
                let numbers: [u64; SAMPLE_NUMBERS] =
                    std::array::from_fn(|index| u64_at(head, index * NUMBER_BYTES));
                let info_bytes = numbers[SAMPLE_NUMBERS - 1] as usize;
                let Some((info, later)) = later.split_at_checked(info_bytes) else {
                    break;
                };
                let place = places.get(numbers[1] as usize);
                match (
                    place.and_then(|place| flows[*place].as_mut()),
                    TcpInfo::new(info),
                ) {
                    (Some(flow), info) if info.is_some() || info_bytes == 0 => {
                        flow.take(numbers, info)
                    }
                    _ => return Err(io::Error::other("no sample of a flow")),
                }
                rest = later;
            }
            Ok(rest.len())
        })?;
        let mut lines = Vec::new();
        self.transfer_lines.read(folder, |rest| {
            let whole = rest
                .iter()
                .rposition(|byte| *byte == b'\n')
                .map_or(0, |end| end + 1);
            for line in rest[..whole].split_inclusive(|byte| *byte == b'\n') {
                lines.push(serde_json::from_slice::<flows::Transfer>(line)?);
            }
            Ok(rest.len() - whole)
        })?;
        lines.iter().try_for_each(|line| self.take_transfer(line))
    }

    fn take_transfer(&mut self, line: &flows::Transfer) -> io::Result<()> {
        let place = self.places.get(line.flow).copied();
        let Some((place, flow)) =
            place.and_then(|place| Some((place, self.flows[place].as_mut()?)))
        else {
            return Err(io::Error::other("no transfer of a flow"));
        };
        let transfer = Transfer {
            flow: self.names[place].clone(),
            start_ns: line.start_ns,
            end_ns: line.end_ns,
            bytes: line.bytes,
            retransmits: line.retransmits,
            first_sent_ns: line.first_sent_ns,
            segments: line.segments,
        };
        match line.is_finished {
            true => {
                flow.report.completed += 1;
                self.finished.push(transfer);
            }
            false => self.unfinished.push(transfer),
        }
        Ok(())
    }
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_ne_bytes(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn sample(flow: u64, connection: u64, is_last: u64, received: u64, cwnd: u32) -> Vec<u8> {
        let mut info = vec![0u8; 248];
        info[80..84].copy_from_slice(&cwnd.to_le_bytes());
        info[120..128].copy_from_slice(&1001u64.to_le_bytes());
        info[240] = 3;
        let info_bytes = info.len() as u64;
        let numbers: [u64; SAMPLE_NUMBERS] = [
            7, flow, connection, received, 0, is_last, 1, 250, info_bytes,
        ];
        let mut bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_ne_bytes()).collect();
        bytes.extend(info);
        bytes
    }

    fn report(samples: &Samples, place: usize) -> FlowReport {
        let mut report = FlowReport::default();
        samples.flow(place).unwrap().show_in(&mut report);
        report
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
        assert_eq!(samples.flow(1).unwrap().latest().cwnd_packets, 0);
        let mut file = File::create(folder.join(FILE)).unwrap();
        let second = sample(0, 0, 1, 500, 20);
        file.write_all(&sample(0, 0, 0, 100, 10)).unwrap();
        file.write_all(&second[..40]).unwrap();
        samples.read(&folder).unwrap();
        assert_eq!(samples.flow(1).unwrap().latest().cwnd_packets, 10);
        file.write_all(&second[40..]).unwrap();
        samples.read(&folder).unwrap();
        let real = report(&samples, 1);
        assert_eq!((real.cwnd_packets, real.received_bytes), (20, 500));
        assert_eq!((real.acked_bytes, real.timeouts), (1000, 3));
        assert_eq!((real.spurious_timeouts, real.bw_est_pps), (1, 250));
        file.write_all(&sample(0, 1, 0, 600, 5)).unwrap();
        samples.read(&folder).unwrap();
        let real = report(&samples, 1);
        assert_eq!(
            (real.acked_bytes, real.connections, real.cwnd_packets),
            (2000, 2, 5)
        );
        let mut transfers = File::create(folder.join(TRANSFERS)).unwrap();
        let line = r#"{"flow": 0, "start_ns": 1, "first_sent_ns": 2, "end_ns": 3, "bytes": 1000, "retransmits": 0, "segments": 2, "is_finished": true}"#;
        write!(transfers, "{line}\n{}", &line[..30]).unwrap();
        samples.read(&folder).unwrap();
        assert_eq!(report(&samples, 1).completed, 1);
        assert_eq!(samples.take_finished()[0].flow, "real");
        file.write_all(&sample(5, 0, 0, 0, 0)).unwrap();
        assert!(samples.read(&folder).is_err(), "there is no such flow");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
