// SPDX-License-Identifier: Apache-2.0
//! The server's calls without gRPC, threads and runtime: over a device that the caller holds, at an instant of virtual time.
//!
//! The calls are the server's own futures. All they ever wait for is a closure that must run on the switch's thread;
//! here it runs between two polls, so a call is done when the function returns.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use device::{Calls, Device, DeviceHandle, Event};
use tonic::Status;
use v1model::{Nanos, BUDGET_BYTES};

use crate::arbitration::{from_u128, StreamId};
use crate::error::{bail, MetadataRoom};
use crate::proto::p4rt::stream_message_request::Update;
use crate::proto::p4rt::*;
use crate::server::ServerOptions;
use crate::shared::{Clock, Shared};
use crate::stream::{self, Outgoing};
use crate::{events, pipeline, read, write};

/// The device id of the one client.
const DEVICE_ID: u64 = 1;
/// Events that become messages at a time: fewer than a stream holds.
const EVENTS_AT_A_TIME: usize = 1024;

/// P4Runtime of one device in virtual time. Its caller is the only client, and always primary: device id, role and
/// election id of requests are not looked at.
///
/// Pass the same device each time, and a time that never runs backwards. What the device tells becomes messages when
/// [`Local::take_events`] (or another call) is made; digest lists are closed at the instant at which they are full or
/// due, however late that is.
pub struct Local {
    shared: Arc<Shared>,
    calls: Calls,
    stream: StreamId,
    outgoing: Outgoing,
    waiting: VecDeque<StreamMessageResponse>,
}

impl Local {
    /// P4Runtime of a device whose packet-ins leave at `cpu_port`.
    pub fn new(cpu_port: Option<u32>) -> Self {
        let (handle, calls) = DeviceHandle::new(|| {});
        let options = ServerOptions {
            addr: ([0, 0, 0, 0], 0).into(), // nobody listens
            device_id: DEVICE_ID,
            cpu_port,
            program_bytes: BUDGET_BYTES,
        };
        let shared = Arc::new(Shared::new(&options, handle, Clock::virtual_time()));
        let (stream, outgoing) = shared.clients().open().expect("it is the only one");
        shared
            .clients()
            .arbiter
            .update(stream, &arbitration())
            .expect("the only client is always elected");
        Self {
            shared,
            calls,
            stream,
            outgoing,
            waiting: VecDeque::new(),
        }
    }

    /// SetForwardingPipelineConfig.
    ///
    /// # Errors
    /// As the server's, but for the caller's right.
    pub fn set_pipeline(
        &mut self,
        device: &mut Device,
        now: Nanos,
        request: SetForwardingPipelineConfigRequest,
    ) -> Result<(), Status> {
        self.take_events(device, now)?;
        let call = pipeline::set(self.shared.clone(), request);
        self.run(device, now, call)?.map(drop)
    }

    /// GetForwardingPipelineConfig.
    ///
    /// # Errors
    /// None that a caller could mend.
    pub fn get_pipeline(
        &mut self,
        device: &mut Device,
        now: Nanos,
        request: GetForwardingPipelineConfigRequest,
    ) -> Result<GetForwardingPipelineConfigResponse, Status> {
        let shared = self.shared.clone();
        self.run(device, now, pipeline::get(&shared, request))?
    }

    /// Write: the updates that are good are applied.
    ///
    /// # Errors
    /// As the server's, but for the caller's right: FAILED_PRECONDITION without a program, UNIMPLEMENTED for other
    /// atomicities, UNKNOWN with one `p4.v1.Error` per update.
    pub fn write(
        &mut self,
        device: &mut Device,
        now: Nanos,
        request: WriteRequest,
    ) -> Result<(), Status> {
        self.take_events(device, now)?;
        let call = write::write(self.shared.clone(), request, MetadataRoom::max());
        self.run(device, now, call)?.map(drop)
    }

    /// Read: all responses at once.
    ///
    /// # Errors
    /// FAILED_PRECONDITION without a program, UNKNOWN with one `p4.v1.Error` per entity of the request.
    pub fn read(
        &mut self,
        device: &mut Device,
        now: Nanos,
        request: ReadRequest,
    ) -> Result<Vec<ReadResponse>, Status> {
        let call = read::read_here(self.shared.clone(), request);
        self.run(device, now, call)?
    }

    /// A message to the stream: packet-out, digest acknowledgement, arbitration. What is wrong with it comes back as
    /// a `StreamError` among the messages, as from the server.
    ///
    /// # Errors
    /// INTERNAL only.
    pub fn send(
        &mut self,
        device: &mut Device,
        now: Nanos,
        mut message: StreamMessageRequest,
    ) -> Result<(), Status> {
        self.take_events(device, now)?;
        if let Some(Update::Arbitration(update)) = &mut message.update {
            *update = arbitration();
        }
        let shared = self.shared.clone();
        let done = self.run(device, now, stream::handle(&shared, self.stream, message))?;
        self.outgoing.take(&mut self.waiting);
        done
    }

    /// Makes messages of what the device tells, and closes the digest lists that are due.
    ///
    /// # Errors
    /// INTERNAL only.
    pub fn take_events(&mut self, device: &mut Device, now: Nanos) -> Result<(), Status> {
        if device.has_events() {
            let mut batch = Vec::new();
            device.take_events(&mut batch);
            let mut events = batch.into_iter();
            loop {
                let piece: Vec<Event> = events.by_ref().take(EVENTS_AT_A_TIME).collect();
                if piece.is_empty() {
                    break;
                }
                let shared = self.shared.clone();
                self.run(device, now, events::handle(&shared, piece))?;
                self.outgoing.take(&mut self.waiting);
            }
        }
        self.shared.clock.set(now);
        events::send_due(&self.shared);
        self.outgoing.take(&mut self.waiting);
        Ok(())
    }

    /// Does a message wait? Only what `take_events` has seen counts.
    pub fn has_messages(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// When the next digest list is due, as far as `take_events` has seen samples.
    pub fn next_due(&self) -> Option<Nanos> {
        self.shared.digests().next_due()
    }

    /// All messages until now, in order: packet-ins, digest lists, idle timeouts, errors.
    ///
    /// # Errors
    /// INTERNAL only.
    pub fn messages(
        &mut self,
        device: &mut Device,
        now: Nanos,
    ) -> Result<Vec<StreamMessageResponse>, Status> {
        self.take_events(device, now)?;
        Ok(self.waiting.drain(..).collect())
    }

    /// Polls a call to its end; what it asks of the device is done between two polls.
    fn run<T>(
        &mut self,
        device: &mut Device,
        now: Nanos,
        call: impl Future<Output = T>,
    ) -> Result<T, Status> {
        self.shared.clock.set(now);
        let mut call = pin!(call);
        let mut context = Context::from_waker(Waker::noop());
        loop {
            if let Poll::Ready(done) = call.as_mut().poll(&mut context) {
                return Ok(done);
            }
            if !self.calls.run_one(device, |_| now) {
                bail!(
                    internal,
                    "the call waits for something that is not the switch"
                );
            }
        }
    }
}

fn arbitration() -> MasterArbitrationUpdate {
    MasterArbitrationUpdate {
        device_id: DEVICE_ID,
        role: None,
        election_id: Some(from_u128(1)),
        status: None,
    }
}
