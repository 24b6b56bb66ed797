// SPDX-License-Identifier: Apache-2.0
//! What a Simulation and its P4Runtimes share: the network, P4Runtime of each switch; for one user at a time.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Mutex, TryLockError};

use device::{Device, Nanos};
use p4rt::Local;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use tonic::Status;

/// A network and the control planes of its switches.
pub struct World {
    pub network: netsim::Simulation,
    switches: Vec<Switch>,
    broken: bool,
}

/// A switch whose events somebody may want.
struct Switch {
    name: String,
    /// None until somebody asks for it.
    p4runtime: Option<Local>,
}

/// A world that several Python objects hold.
pub type Shared = Arc<Mutex<World>>;

/// Does something with the world.
///
/// # Errors
/// RuntimeError when another thread is using it, when `f` panics (a bug; the simulation is of no use then), or when
/// it did before.
pub fn with<R>(shared: &Mutex<World>, f: impl FnOnce(&mut World) -> R) -> PyResult<R> {
    let mut world = match shared.try_lock() {
        Ok(world) => world,
        Err(TryLockError::WouldBlock) => {
            return Err(PyRuntimeError::new_err(
                "the simulation is in use by another thread; one at a time may use it",
            ))
        }
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
    };
    if world.broken {
        return Err(PyRuntimeError::new_err(
            "the simulation broke down at an earlier call; make a new one",
        ));
    }
    caught(|| f(&mut world)).inspect_err(|_| world.broken = true)
}

/// Runs `f`; a panic in it is a RuntimeError.
///
/// # Errors
/// RuntimeError with the words of the panic.
pub fn caught<R>(f: impl FnOnce() -> R) -> PyResult<R> {
    catch_unwind(AssertUnwindSafe(f)).map_err(|panic| {
        let words = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no words");
        PyRuntimeError::new_err(format!("the simulator broke down, which is a bug: {words}"))
    })
}

impl World {
    pub fn new(network: netsim::Simulation) -> World {
        let switches = network.switch_names().map(|name| Switch {
            name: name.to_owned(),
            p4runtime: None,
        });
        World {
            switches: switches.collect(),
            network,
            broken: false,
        }
    }

    /// The number of a switch, whose P4Runtime is there from now on.
    ///
    /// # Errors
    /// A sentence with the switches that there are.
    pub fn open(&mut self, name: &str) -> Result<usize, String> {
        let found = self.switches.iter().position(|s| s.name == name);
        let (Some(index), Some(device)) = (found, self.network.switch(name)) else {
            let names: Vec<String> = self
                .switches
                .iter()
                .map(|s| format!("\"{}\"", s.name))
                .collect();
            return Err(format!(
                "there is no switch \"{name}\"; there are: {}",
                names.join(", ")
            ));
        };
        let cpu_port = device.config().cpu_port;
        self.switches[index]
            .p4runtime
            .get_or_insert_with(|| Local::new(cpu_port));
        Ok(index)
    }

    /// Does something with P4Runtime of a switch, now.
    ///
    /// # Errors
    /// What `f` says.
    pub fn p4runtime<R>(
        &mut self,
        index: usize,
        f: impl FnOnce(&mut Local, &mut Device, Nanos) -> Result<R, Status>,
    ) -> Result<R, Status> {
        let now = self.network.now();
        let Some(Switch {
            name,
            p4runtime: Some(local),
        }) = self.switches.get_mut(index)
        else {
            return Err(Status::internal("the switch was not opened"));
        };
        let device = self
            .network
            .switch_mut(name)
            .ok_or_else(|| Status::internal(format!("there is no switch \"{name}\"")))?;
        f(local, device, now)
    }

    /// Lets time pass until `t`.
    pub fn run_until(&mut self, t: Nanos) -> Nanos {
        self.network.run_until(t)
    }

    /// Lets time pass until `t`, or until a P4Runtime has messages.
    ///
    /// # Errors
    /// INTERNAL only.
    pub fn run_until_message(&mut self, t: Nanos) -> Result<Nanos, Status> {
        loop {
            let (ready, due) = self.take_events()?;
            let now = self.network.now();
            if ready || now >= t {
                return Ok(now);
            }
            self.network
                .run_until_message(due.map_or(t, |due| due.min(t)));
            if self.network.endless().is_some() {
                return Ok(self.network.now());
            }
        }
    }

    /// Makes messages of all events: does any wait, and when is a digest list due?
    fn take_events(&mut self) -> Result<(bool, Option<Nanos>), Status> {
        let now = self.network.now();
        let (mut ready, mut due) = (false, None::<Nanos>);
        for Switch { name, p4runtime } in &mut self.switches {
            let Some(device) = self.network.switch_mut(name) else {
                continue;
            };
            match p4runtime {
                Some(local) => {
                    local.take_events(device, now)?;
                    ready |= local.has_messages();
                    due = [due, local.next_due()].into_iter().flatten().min();
                }
                // Nobody listens.
                None if device.has_events() => device.take_events(&mut Vec::new()),
                None => {}
            }
        }
        Ok((ready, due))
    }
}
