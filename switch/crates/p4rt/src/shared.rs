// SPDX-License-Identifier: Apache-2.0
//! What all calls of the server share: the device, the configs, the clients, the digests.
//!
//! The clock of digest lists and of the timestamps in messages: this machine's, or the simulation's.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Instant, SystemTime};

use device::{DeviceGone, DeviceHandle};
use tokio::sync::{watch, Semaphore};
use tokio::task::JoinError;
use tonic::Status;
use v1model::{Nanos, Pipeline};

use crate::digests::Digests;
use crate::error::NO_PIPELINE;
use crate::pipeline::{Context, Loaded, State};
use crate::proto::p4rt::Uint128;
use crate::read::{self, Room};
use crate::server::ServerOptions;
use crate::stream::Clients;

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
    /// Memory that a program may take.
    pub program_bytes: u64,
    /// How often the options or the link state of any port changed.
    pub port_changes: watch::Sender<u64>,
    /// The reads that are under way.
    pub reads: Arc<Room>,
    /// Held while a program is loaded.
    pub loading: Arc<tokio::sync::Mutex<()>>,
    /// The reads that may hold the state.
    pub collecting: Arc<Semaphore>,
}

impl Shared {
    pub fn new(options: &ServerOptions, handle: DeviceHandle, clock: Clock) -> Self {
        Self {
            cpu_port: options.cpu_port,
            handle,
            state: Arc::default(),
            clients: Mutex::new(Clients::new(options.device_id)),
            digests: Arc::default(),
            running: RwLock::new(None),
            packet_ins_lost: AtomicU64::new(0),
            clock,
            program_bytes: options.program_bytes,
            port_changes: watch::Sender::new(0),
            reads: Arc::default(),
            loading: Arc::default(),
            collecting: Arc::new(Semaphore::new(read::COLLECTING)),
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

    /// # Errors
    /// NOT_FOUND for another device. In virtual time there is one caller, and no other device.
    pub fn check_device(&self, device_id: u64) -> Result<(), Status> {
        match self.clock.is_virtual() {
            true => Ok(()),
            false => self.clients().arbiter.check_device(device_id),
        }
    }

    /// # Errors
    /// As [`crate::arbitration::Arbiter::check_primary`]; in virtual time the one caller is always primary.
    pub fn check_primary(
        &self,
        device_id: u64,
        role: &str,
        election_id: Option<&Uint128>,
    ) -> Result<(), Status> {
        match self.clock.is_virtual() {
            true => Ok(()),
            false => self
                .clients()
                .arbiter
                .check_primary(device_id, role, election_id),
        }
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

    /// Does a call to its end as a task of its own: a client that hangs up leaves nothing half done. In virtual time there
    /// are no tasks, and the caller waits.
    ///
    /// # Errors
    /// The call's; INTERNAL after a panic.
    pub async fn finish<T: Send + 'static>(
        &self,
        what: &str,
        call: impl Future<Output = Result<T, Status>> + Send + 'static,
    ) -> Result<T, Status> {
        match self.clock.is_virtual() {
            true => call.await,
            false => tokio::spawn(call).await.map_err(|e| failed(what, &e))?,
        }
    }

    /// Does what takes long on a thread where it keeps nobody from being served.
    ///
    /// # Errors
    /// INTERNAL after a panic.
    pub async fn aside<T: Send + 'static>(
        &self,
        what: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Status> {
        match self.clock.is_virtual() {
            true => Ok(work()),
            false => {
                let done = tokio::task::spawn_blocking(work).await;
                done.map_err(|e| failed(what, &e))
            }
        }
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
            let saved = pipeline.lock().unwrap_or_else(PoisonError::into_inner);
            return Ok(f(&saved.0, 0));
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

fn failed(what: &str, error: &JoinError) -> Status {
    Status::internal(format!("{what} failed: {error}"))
}

/// Drops what takes long to drop on a thread where nobody waits for it; without a runtime here.
pub fn discard<T: Send + 'static>(what: T) {
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => drop(runtime.spawn_blocking(move || drop(what))),
        Err(_) => drop(what),
    }
}

/// The status of a call that the switch did not live to answer.
pub fn gone(error: DeviceGone) -> Status {
    Status::unavailable(error.to_string())
}

/// Where time comes from.
pub enum Clock {
    /// This machine's clocks; `now` counts from when the server was made.
    Wall(Instant),
    /// Virtual time, as its owner set it last.
    Virtual(AtomicU64),
}

impl Clock {
    pub fn wall() -> Self {
        Self::Wall(Instant::now())
    }

    pub fn virtual_time() -> Self {
        Self::Virtual(AtomicU64::new(0))
    }

    /// Nanoseconds since the server was made, or virtual time.
    pub fn now(&self) -> Nanos {
        match self {
            Self::Wall(started) => {
                Nanos::try_from(started.elapsed().as_nanos()).unwrap_or(Nanos::MAX)
            }
            Self::Virtual(now) => now.load(Ordering::Relaxed),
        }
    }

    /// What messages carry as `timestamp`: nanoseconds since the Unix epoch, or virtual time.
    pub fn timestamp_ns(&self) -> i64 {
        let ns = match self {
            Self::Wall(_) => SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap_or_default()
                .as_nanos(),
            Self::Virtual(_) => u128::from(self.now()),
        };
        i64::try_from(ns).unwrap_or(i64::MAX)
    }

    pub fn is_virtual(&self) -> bool {
        matches!(self, Self::Virtual(_))
    }

    /// Sets virtual time; this machine's clock does not listen.
    pub fn set(&self, at: Nanos) {
        if let Self::Virtual(now) = self {
            now.store(at, Ordering::Relaxed);
        }
    }
}
