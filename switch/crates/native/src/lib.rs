// SPDX-License-Identifier: Apache-2.0
//! The Python module `fairlane_switch.native`: netsim and, of each switch in it, P4Runtime without gRPC.
//!
//! | module | idea |
//! |---|---|
//! | `simulation` | the class `Simulation` |
//! | `p4runtime` | the class `P4Runtime`: one switch of a simulation |
//! | `world` | what both share: the network and the switches' P4Runtime, one user at a time, panics made exceptions |
//! | `errors` | the exceptions, also those that Ctrl-C raises while a simulation runs |

#![forbid(unsafe_code)]

mod errors;
mod p4runtime;
mod simulation;
mod world;

use pyo3::prelude::*;

/// netsim and P4Runtime; `native.pyi` is the contract.
#[pymodule]
mod native {
    #[pymodule_export]
    use crate::errors::P4RuntimeError;
    #[pymodule_export]
    use crate::p4runtime::P4Runtime;
    #[pymodule_export]
    use crate::simulation::link_problem;
    #[pymodule_export]
    use crate::simulation::number_of;
    #[pymodule_export]
    use crate::simulation::Simulation;
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(_module: &Bound<'_, PyModule>) -> PyResult<()> {
        netsim::interrupt_waits(crate::errors::is_interrupted);
        Ok(())
    }
}
