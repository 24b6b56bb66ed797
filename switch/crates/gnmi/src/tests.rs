// SPDX-License-Identifier: Apache-2.0
//! For tests: ports in memory, whose device answers on a thread of its own.

use crate::links::{LinkStatus, Links};
use crate::view::{Interface, Viewer};
use device::{Device, DeviceConfig, DeviceHandle, PortConfig};
use netio::Ethernet;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{mpsc, Arc, Mutex};
use std::time::Duration;

/// Links in memory; those named here cannot be changed.
#[derive(Default)]
pub struct Told {
    /// Of all of them.
    pub ethernet: Ethernet,
    pub down: Mutex<Vec<String>>,
    pub refused: Vec<String>,
    pub gate: Option<Gate>,
}

/// Says that a link is about to change, and waits until it may.
pub struct Gate {
    pub began: mpsc::Sender<()>,
    pub go_on: Mutex<mpsc::Receiver<()>>,
}

/// Longest wait of a test.
pub const WAIT: Duration = Duration::from_secs(20);

impl Links for Told {
    fn status(&self, interface: &str) -> LinkStatus {
        let up = !self.down.lock().unwrap().iter().any(|n| n == interface);
        LinkStatus {
            admin_up: up,
            oper_up: up,
        }
    }

    fn ethernet(&self, _interface: &str) -> Ethernet {
        self.ethernet
    }

    fn set_up(&self, interface: &str, up: bool) -> io::Result<()> {
        if self.refused.iter().any(|n| n == interface) {
            return Err(io::Error::from(io::ErrorKind::PermissionDenied));
        }
        if let Some(gate) = &self.gate {
            gate.began.send(()).unwrap();
            gate.go_on.lock().unwrap().recv_timeout(WAIT).unwrap();
        }
        let mut down = self.down.lock().unwrap();
        down.retain(|name| name != interface);
        if !up {
            down.push(interface.to_owned());
        }
        Ok(())
    }
}

/// A device on a thread of its own, for as long as this lives.
pub struct Bench {
    pub viewer: Arc<Viewer>,
    /// Queues that one call of the device added, at most.
    pub queues_a_call: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        let ended = self.thread.take().map(|thread| thread.join());
        assert!(matches!(ended, Some(Ok(()))));
    }
}

/// The port `cpu` of [`bench`]: a device has it from the start.
pub const CPU_PORT: u32 = 510;

/// Ports 1 and 2, `a` and `b`, and the CPU port, with a device that answers on a thread of its own.
pub fn bench(links: Told) -> Bench {
    let stop = Arc::new(AtomicBool::new(false));
    let (handle, mut calls) = DeviceHandle::new(|| {});
    let ended = stop.clone();
    let queues_a_call = Arc::new(AtomicUsize::new(0));
    let added = queues_a_call.clone();
    let thread = std::thread::spawn(move || {
        let mut device = Device::new(DeviceConfig::default());
        for port in [1, 2] {
            device.add_port(port, PortConfig::default()).unwrap();
        }
        let queues = |device: &Device| -> usize {
            let all = [1, 2].into_iter().filter_map(|port| device.port(port));
            all.map(|config| config.queues).sum()
        };
        while !ended.load(Ordering::Acquire) {
            let before = queues(&device);
            if !calls.run_one(&mut device, |_| 0) {
                std::thread::yield_now();
            }
            added.fetch_max(queues(&device).saturating_sub(before), Ordering::Relaxed);
        }
    });
    let named = |port, name: &str| Interface {
        port,
        name: name.to_owned(),
        cpu: port == CPU_PORT,
    };
    let interfaces = vec![named(1, "a"), named(2, "b"), named(CPU_PORT, "cpu")];
    Bench {
        viewer: Arc::new(Viewer::new(handle, Arc::new(links), interfaces)),
        queues_a_call,
        stop,
        thread: Some(thread),
    }
}
