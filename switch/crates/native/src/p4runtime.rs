// SPDX-License-Identifier: Apache-2.0
//! The class `P4Runtime`: one switch of a simulation; messages are serialized protobufs.

use std::sync::Arc;

use device::{Device, Nanos};
use p4rt::Local;
use prost::Message;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tonic::Status;

use crate::errors::{refused, undecodable};
use crate::world::{self, Shared};

/// P4Runtime of one simulated switch; messages are serialized protobufs of p4.v1.
#[pyclass(frozen, module = "fairlane_switch.native")]
pub struct P4Runtime {
    world: Shared,
    index: usize,
}

impl P4Runtime {
    pub fn new(world: Shared, index: usize) -> Self {
        Self { world, index }
    }

    fn call<R>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut Local, &mut Device, Nanos) -> Result<R, Status>,
    ) -> PyResult<R> {
        let done = world::with(&self.world, |world| world.p4runtime(self.index, f))?;
        done.map_err(|status| refused(py, &status))
    }
}

#[pymethods]
impl P4Runtime {
    /// A SetForwardingPipelineConfigRequest.
    fn set_pipeline(&self, py: Python<'_>, request: &[u8]) -> PyResult<()> {
        let request = decode(request, "SetForwardingPipelineConfigRequest")?;
        self.call(py, |local, device, now| {
            local.set_pipeline(device, now, request)
        })
    }

    /// A WriteRequest; the updates that are good are applied.
    fn write(&self, py: Python<'_>, request: &[u8]) -> PyResult<()> {
        let request = decode(request, "WriteRequest")?;
        self.call(py, |local, device, now| local.write(device, now, request))
    }

    /// A ReadRequest; the ReadResponses.
    fn read<'py>(&self, py: Python<'py>, request: &[u8]) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let request = decode(request, "ReadRequest")?;
        let responses = self.call(py, |local, device, now| local.read(device, now, request))?;
        Ok(encode_all(py, &responses))
    }

    /// The StreamMessageResponses since the last call.
    fn messages<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let messages = self.call(py, |local, device, now| local.messages(device, now))?;
        Ok(encode_all(py, &messages))
    }

    /// A StreamMessageRequest: packet-out, digest acknowledgement.
    fn send(&self, py: Python<'_>, request: &[u8]) -> PyResult<()> {
        let request = decode(request, "StreamMessageRequest")?;
        self.call(py, |local, device, now| local.send(device, now, request))
    }
}

/// P4Runtime of the switch `name`.
///
/// # Errors
/// ValueError with the switches that there are.
pub fn open(world: &Shared, name: &str) -> PyResult<P4Runtime> {
    let index = world::with(world, |world| world.open(name))?;
    index
        .map(|index| P4Runtime::new(Arc::clone(world), index))
        .map_err(crate::errors::bad_value)
}

fn decode<M: Message + Default>(bytes: &[u8], what: &str) -> PyResult<M> {
    M::decode(bytes).map_err(|error| undecodable(what, &error))
}

fn encode_all<'py, M: Message>(py: Python<'py>, messages: &[M]) -> Vec<Bound<'py, PyBytes>> {
    let encode = |message: &M| PyBytes::new(py, &message.encode_to_vec());
    messages.iter().map(encode).collect()
}
