// SPDX-License-Identifier: Apache-2.0
//! The way in from other threads: closures that run on the switch's thread, between two packets.

use crate::device::Device;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::Arc;
use tokio::sync::oneshot;
use v1model::Nanos;

/// A piece of a call; true when it was the last.
type Call = Box<dyn FnMut(&mut Device, Nanos) -> bool + Send>;

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
    /// Those that have come, in turns.
    waiting: VecDeque<Call>,
}

impl DeviceHandle {
    /// A handle and its other end; `wake` gets the switch's thread out of its sleep.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> (DeviceHandle, Calls) {
        let (sender, receiver) = std::sync::mpsc::channel();
        let handle = DeviceHandle {
            calls: sender,
            wake: Arc::new(wake),
        };
        let calls = Calls {
            calls: receiver,
            waiting: VecDeque::new(),
        };
        (handle, calls)
    }

    fn send<R: Send + 'static>(
        &self,
        mut f: impl FnMut(&mut Device, Nanos) -> Option<R> + Send + 'static,
    ) -> Result<oneshot::Receiver<R>, DeviceGone> {
        let (reply, answer) = oneshot::channel();
        let mut reply = Some(reply);
        let call: Call = Box::new(move |device, now| {
            let Some(result) = f(device, now) else {
                return false;
            };
            // A caller that has gone does not want the answer.
            let _ = reply.take().map(|reply| reply.send(result));
            true
        });
        self.calls.send(call).map_err(|_| DeviceGone)?;
        (self.wake)();
        Ok(answer)
    }

    /// Runs `f` on the switch's thread again and again until it gives a result: packets and other calls come between two
    /// times, each of which must be short.
    ///
    /// # Errors
    /// [`DeviceGone`] when the switch has stopped.
    pub async fn call_in_pieces<R: Send + 'static>(
        &self,
        f: impl FnMut(&mut Device, Nanos) -> Option<R> + Send + 'static,
    ) -> Result<R, DeviceGone> {
        self.send(f)?.await.map_err(|_| DeviceGone)
    }

    /// Runs `f` on the switch's thread and returns its result. `f` must be short: packets wait meanwhile.
    ///
    /// # Errors
    /// [`DeviceGone`] when the switch has stopped.
    pub async fn call<R: Send + 'static>(
        &self,
        f: impl FnOnce(&mut Device, Nanos) -> R + Send + 'static,
    ) -> Result<R, DeviceGone> {
        self.call_in_pieces(once(f)).await
    }

    /// As `call`, for threads without an async runtime.
    ///
    /// # Errors
    /// [`DeviceGone`] when the switch has stopped.
    pub fn call_blocking<R: Send + 'static>(
        &self,
        f: impl FnOnce(&mut Device, Nanos) -> R + Send + 'static,
    ) -> Result<R, DeviceGone> {
        self.send(once(f))?.blocking_recv().map_err(|_| DeviceGone)
    }
}

fn once<R>(f: impl FnOnce(&mut Device, Nanos) -> R) -> impl FnMut(&mut Device, Nanos) -> Option<R> {
    let mut f = Some(f);
    move |device, now| f.take().map(|f| f(device, now))
}

impl Calls {
    /// Runs one waiting closure, or a piece of it; false when none waits. `prepare` has its say before it, and reads the
    /// time.
    pub fn run_one(
        &mut self,
        device: &mut Device,
        prepare: impl FnOnce(&mut Device) -> Nanos,
    ) -> bool {
        self.waiting.extend(self.calls.try_iter());
        let Some(mut call) = self.waiting.pop_front() else {
            return false;
        };
        let now = prepare(device);
        if !call(device, now) {
            self.waiting.push_back(call);
        }
        true
    }
}
