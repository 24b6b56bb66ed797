// SPDX-License-Identifier: Apache-2.0
//! The way in from other threads: closures that run on the switch's thread, between two packets.

use crate::device::Device;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::sync::Arc;
use tokio::sync::oneshot;
use v1model::Nanos;

type Call = Box<dyn FnOnce(&mut Device, Nanos) + Send>;

/// The switch's thread has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the switch has stopped")]
pub struct DeviceGone;

/// Runs closures on the switch's thread. Cheap to clone; usable from any thread and any async runtime.
#[derive(Clone)]
pub struct DeviceHandle {
    calls: Sender<Call>,
    wake: Arc<dyn Fn() + Send + Sync>,
}

/// The switch's end of the handle.
pub struct Calls {
    calls: Receiver<Call>,
}

impl DeviceHandle {
    /// A handle and its other end; `wake` gets the switch's thread out of its sleep.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> (DeviceHandle, Calls) {
        let (sender, receiver) = std::sync::mpsc::channel();
        let handle = DeviceHandle {
            calls: sender,
            wake: Arc::new(wake),
        };
        (handle, Calls { calls: receiver })
    }

    fn send<R: Send + 'static>(
        &self,
        f: impl FnOnce(&mut Device, Nanos) -> R + Send + 'static,
    ) -> Result<oneshot::Receiver<R>, DeviceGone> {
        let (reply, answer) = oneshot::channel();
        let call: Call = Box::new(move |device, now| {
            // A caller that has gone does not want the answer.
            let _ = reply.send(f(device, now));
        });
        self.calls.send(call).map_err(|_| DeviceGone)?;
        (self.wake)();
        Ok(answer)
    }

    /// Runs `f` on the switch's thread and returns its result. `f` must be short: packets wait meanwhile.
    ///
    /// # Errors
    /// [`DeviceGone`] when the switch has stopped.
    pub async fn call<R: Send + 'static>(
        &self,
        f: impl FnOnce(&mut Device, Nanos) -> R + Send + 'static,
    ) -> Result<R, DeviceGone> {
        self.send(f)?.await.map_err(|_| DeviceGone)
    }

    /// As `call`, for threads without an async runtime.
    ///
    /// # Errors
    /// [`DeviceGone`] when the switch has stopped.
    pub fn call_blocking<R: Send + 'static>(
        &self,
        f: impl FnOnce(&mut Device, Nanos) -> R + Send + 'static,
    ) -> Result<R, DeviceGone> {
        self.send(f)?.blocking_recv().map_err(|_| DeviceGone)
    }
}

impl Calls {
    /// Runs one waiting closure; false when none waits. `prepare` has its say before it, and reads the time.
    pub fn run_one(
        &mut self,
        device: &mut Device,
        prepare: impl FnOnce(&mut Device) -> Nanos,
    ) -> bool {
        match self.calls.try_recv() {
            Ok(call) => {
                let now = prepare(device);
                call(device, now);
                true
            }
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => false,
        }
    }
}
