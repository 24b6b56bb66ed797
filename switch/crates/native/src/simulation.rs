// SPDX-License-Identifier: Apache-2.0
//! The class `Simulation`: time, changes and results of a network, results as JSON and columns.

use std::sync::{Arc, Mutex};

use device::{PortChange, Rate, UnknownName};
use netsim::{Direction, LinkSettings, RequestError, SpikeBlocks};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::errors::{bad_value, detached, refused};
use crate::p4runtime::{self, P4Runtime};
use crate::world::{self, Shared, World};

/// The number that stands for a form of a link's setting.
#[pyfunction]
pub fn number_of(setting: &str, form: &str) -> PyResult<f64> {
    let form = serde_json::from_str(form).map_err(bad_value)?;
    netsim::number_of(setting, &form, netsim::Unit::Us).map_err(bad_value)
}

/// A key and what is wrong with it in a link's settings, an object with times in µs.
#[pyfunction]
pub fn link_problem(settings: &str) -> PyResult<Option<(String, String)>> {
    let settings = serde_json::from_str(settings).map_err(bad_value)?;
    let problem = netsim::LinkOptions::read(&settings, netsim::Unit::Us).err();
    Ok(problem.map(|problem| (problem.key, problem.message)))
}

/// A network in virtual time. Not for use by two threads at once.
#[pyclass(frozen, module = "fairlane_switch.native")]
pub struct Simulation {
    world: Shared,
}

impl Simulation {
    fn with<R>(&self, f: impl FnOnce(&mut World) -> R) -> PyResult<R> {
        world::with(&self.world, f)
    }

    fn change(
        &self,
        f: impl FnOnce(&mut netsim::Simulation) -> Result<(), RequestError>,
    ) -> PyResult<()> {
        self.with(|world| f(&mut world.network))?.map_err(bad_value)
    }

    fn report<T: serde::Serialize>(
        &self,
        f: impl FnOnce(&netsim::Simulation) -> T,
    ) -> PyResult<String> {
        self.with(|world| serde_json::to_string(&f(&world.network)))?
            .map_err(bad_value)
    }
}

#[pymethods]
impl Simulation {
    #[new]
    fn new(py: Python<'_>, config: &str) -> PyResult<Self> {
        let network = detached(py, || {
            world::caught(|| netsim::Simulation::from_json(config))
        })??;
        let network = network.map_err(bad_value)?;
        Ok(Self {
            world: Arc::new(Mutex::new(World::new(network))),
        })
    }

    #[getter]
    fn now_ns(&self) -> PyResult<u64> {
        self.with(|world| world.network.now())
    }

    /// Lets virtual time pass until `t_ns`; with `stop_on_messages` only until a P4Runtime has messages.
    /// ValueError when a change of the configuration could not be made meanwhile; time has passed all the same. ValueError too
    /// when time stands still, as frames go round where nothing takes time.
    #[pyo3(signature = (t_ns, stop_on_messages = false))]
    fn run_until(&self, py: Python<'_>, t_ns: u64, stop_on_messages: bool) -> PyResult<u64> {
        let (now, wrong) = detached(py, || {
            self.with(|world| {
                let now = match stop_on_messages {
                    true => world.run_until_message(t_ns),
                    false => Ok(world.run_until(t_ns)),
                };
                let refused = world.network.take_refused_change();
                let refused = refused.map(|error| error.to_string());
                (now, refused.or_else(|| world.network.endless()))
            })
        })??;
        if let Some(error) = wrong {
            return Err(bad_value(error));
        }
        now.map_err(|status| refused(py, &status))
    }

    /// Changes settings of a link from now on: the JSON object of `set` in the configuration's changes.
    fn set_link(&self, link: &str, direction: &str, changes: &str) -> PyResult<()> {
        let direction = direction_of(direction)?;
        let wrong = |e: String| bad_value(format!("link \"{link}\": changes: {e}"));
        let changes = serde_json::from_str(changes).map_err(|e| wrong(e.to_string()))?;
        let settings = LinkSettings::read(&changes).map_err(|e| wrong(e.to_string()))?;
        self.change(|network| network.set_link(link, direction, &settings))
    }

    /// Changes options of a switch port from now on; None: stays.
    #[allow(clippy::too_many_arguments)] // keywords, in Python
    #[pyo3(signature = (switch, port, rate_bps = None, queue_packets = None, *, queue_bytes = None, queue_cells = None,
        port_packets = None, port_bytes = None, port_cells = None, queues = None, scheduler = None, link_layer = None))]
    fn set_port(
        &self,
        switch: &str,
        port: u32,
        rate_bps: Option<u64>,
        queue_packets: Option<u64>,
        queue_bytes: Option<u64>,
        queue_cells: Option<u64>,
        port_packets: Option<u64>,
        port_bytes: Option<u64>,
        port_cells: Option<u64>,
        queues: Option<usize>,
        scheduler: Option<&str>,
        link_layer: Option<&str>,
    ) -> PyResult<()> {
        let named = |e: UnknownName| bad_value(format!("switch \"{switch}\": port {port}: {e}"));
        let change = PortChange {
            rate_bps: rate_bps.map(Rate::Constant),
            link_layer: link_layer.map(str::parse).transpose().map_err(named)?,
            scheduler: scheduler.map(str::parse).transpose().map_err(named)?,
            queues,
            queue_packets,
            queue_bytes,
            queue_cells,
            port_packets,
            port_bytes,
            port_cells,
        };
        self.change(|network| network.set_port(switch, port, &change))
    }

    /// A delay spike: nothing is delivered for `duration_ns`, then all that is due at once; or it blocks the link's line.
    #[pyo3(signature = (link, direction, duration_ns, blocks = "delivery"))]
    fn spike(&self, link: &str, direction: &str, duration_ns: u64, blocks: &str) -> PyResult<()> {
        let direction = direction_of(direction)?;
        let blocks: SpikeBlocks = serde_json::from_value(blocks.into())
            .map_err(|_| bad_value(format!("blocks: {blocks:?}; allowed: delivery, line")))?;
        self.change(|network| network.spike(link, direction, duration_ns, blocks))
    }

    /// A delay spike of a switch port: nothing starts on its line for `duration_ns`, packets wait in its queues.
    fn spike_port(&self, switch: &str, port: u32, duration_ns: u64) -> PyResult<()> {
        self.change(|network| network.spike_port(switch, port, duration_ns))
    }

    /// An outage: what enters the link for `duration_ns` is lost.
    fn outage(&self, link: &str, direction: &str, duration_ns: u64) -> PyResult<()> {
        let direction = direction_of(direction)?;
        self.change(|network| network.outage(link, direction, duration_ns))
    }

    /// What went wrong with the machine of the real hosts; None: nothing.
    fn machine_failure(&self) -> PyResult<Option<String>> {
        self.with(|world| world.network.machine_failure().map(str::to_owned))
    }

    /// Ends the machine of the real hosts, if there is one; nothing is asked of the simulation afterwards.
    fn end_machine(&self) -> PyResult<()> {
        self.with(|world| world.network.end_machine())
    }

    /// Counts of all flows, JSON.
    fn flows(&self) -> PyResult<String> {
        self.report(netsim::Simulation::flows)
    }

    /// Counts of all switch ports but the CPU port, JSON.
    fn port_rates(
        &self,
        switch: &str,
        port: u32,
        until_ns: u64,
    ) -> PyResult<Option<Vec<(u64, f64)>>> {
        self.with(|world| world.network.port_rates(switch, port, until_ns))?
            .map_err(bad_value)
    }

    fn ports(&self) -> PyResult<String> {
        self.report(netsim::Simulation::ports)
    }

    /// Counts of both directions of all links, JSON.
    fn links(&self) -> PyResult<String> {
        self.report(netsim::Simulation::links)
    }

    /// Counts of all switches, JSON.
    fn switches(&self) -> PyResult<String> {
        self.report(netsim::Simulation::switches)
    }

    /// Counts of all hosts, JSON.
    fn hosts(&self) -> PyResult<String> {
        self.report(netsim::Simulation::hosts)
    }

    /// What the captures have come to, JSON; their files have all of that.
    fn captures(&self) -> PyResult<String> {
        self.report(netsim::Simulation::captures)
    }

    /// Finished transfers in the order in which they finished, JSON.
    fn transfers(&self) -> PyResult<String> {
        self.report(|network| network.transfers().to_vec())
    }

    /// Files (`bytes` applications) that are under way, as of now, JSON.
    fn unfinished_transfers(&self) -> PyResult<String> {
        self.report(netsim::Simulation::unfinished_transfers)
    }

    /// Columns of samples by name, little-endian u64.
    fn series<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.with(|world| {
            let columns = PyDict::new(py);
            for (name, values) in world.network.series() {
                let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
                columns.set_item(name, PyBytes::new(py, &bytes))?;
            }
            Ok(columns)
        })?
    }

    /// P4Runtime of a switch.
    fn p4rt(&self, switch: &str) -> PyResult<P4Runtime> {
        p4runtime::open(&self.world, switch)
    }
}

fn direction_of(name: &str) -> PyResult<Direction> {
    Direction::from_name(name).ok_or_else(|| {
        bad_value(format!(
            "direction \"{name}\" is unknown; known: \"a_to_b\", \"b_to_a\", \"both\""
        ))
    })
}
