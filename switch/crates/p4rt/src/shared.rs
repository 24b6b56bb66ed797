// SPDX-License-Identifier: Apache-2.0
//! What all calls of the server share: the device, the configs, the clients, the digests.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use device::{DeviceGone, DeviceHandle};
use tokio::sync::watch;
use tonic::Status;
use v1model::{Nanos, Pipeline};

use crate::clients::Clients;
use crate::clock::Clock;
use crate::config::{Context, Loaded, State};
use crate::digests::Digests;
use crate::error::NO_PIPELINE;

/// The one instance of the server's state.
pub struct Shared {
    pub cpu_port: Option<u32>,
    pub handle: DeviceHandle,
    /// Configs with their software state. Writers of tables, and changes of the primary, hold it for writing: so a
    /// new primary hears of its election only when the old one's updates are done (P4Runtime 1.5 §5.3).
    pub state: Arc<tokio::sync::RwLock<State>>,
    clients: Mutex<Clients>,
    digests: Arc<Mutex<Digests>>,
    /// The config whose program runs, for packets and digests.
    running: RwLock<Option<Arc<Loaded>>>,
    /// Frames from the CPU port that nobody could take: too short, or no primary.
    pub packet_ins_lost: AtomicU64,
    /// The clock of the digest lists and of the timestamps in messages.
    pub clock: Clock,
    /// How often the options or the link state of any port changed.
    pub port_changes: watch::Sender<u64>,
}

impl Shared {
    pub fn new(device_id: u64, cpu_port: Option<u32>, handle: DeviceHandle, clock: Clock) -> Self {
        Self {
            cpu_port,
            handle,
            state: Arc::default(),
            clients: Mutex::new(Clients::new(device_id)),
            digests: Arc::default(),
            running: RwLock::new(None),
            packet_ins_lost: AtomicU64::new(0),
            clock,
            port_changes: watch::Sender::new(0),
        }
    }

    pub fn clients(&self) -> MutexGuard<'_, Clients> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn digests(&self) -> MutexGuard<'_, Digests> {
        self.digests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn digests_arc(&self) -> Arc<Mutex<Digests>> {
        self.digests.clone()
    }

    pub fn running(&self) -> Option<Arc<Loaded>> {
        self.running
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub fn set_running(&self, loaded: Arc<Loaded>) {
        *self.running.write().unwrap_or_else(PoisonError::into_inner) = Some(loaded);
    }

    /// Reads from the pipeline of a config, on the switch's thread when it runs there.
    ///
    /// # Errors
    /// UNAVAILABLE when the switch has stopped.
    pub async fn read<R: Send + 'static>(
        &self,
        context: &Context,
        f: impl FnOnce(&Pipeline, Nanos) -> R + Send + 'static,
    ) -> Result<R, Status> {
        if let Some(pipeline) = &context.pipeline {
            return Ok(f(
                &pipeline.lock().unwrap_or_else(PoisonError::into_inner),
                0,
            ));
        }
        let answer = self
            .handle
            .call(move |device, now| device.pipeline().map(|p| f(p, now)))
            .await;
        answer
            .map_err(gone)?
            .ok_or_else(|| Status::failed_precondition(NO_PIPELINE))
    }
}

/// The status of a call that the switch did not live to answer.
pub fn gone(error: DeviceGone) -> Status {
    Status::unavailable(error.to_string())
}
