// SPDX-License-Identifier: Apache-2.0
//! One switch: its device, and its servers on a runtime of their own until it is stopped.

use crate::options::Options;
use crate::port_options::PortOptions;
use crate::{ready, security};
use device::{Device, DeviceConfig, DeviceHandle, PortConfig};
use gnmi::{Gnmi, Interface, KernelLinks};
use p4rt::{Server, ServerOptions, Tls};
use std::collections::hash_map::RandomState;
use std::future::Future;
use std::hash::{BuildHasher, Hasher};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use traffic::derived_seed;

/// Why the program ends with an error; the text is one sentence.
pub enum Failure {
    /// Before it served.
    Start(String),
    /// After.
    Running(String),
}

/// BMv2 JSON and P4Info.
type Program = (Vec<u8>, String);

/// The CPU port's name in gNMI's paths.
const CPU_NAME: &str = "cpu";
/// How often lines of log_msg are fetched.
const LOG_PERIOD: Duration = Duration::from_millis(50);

/// What a switch needs beside its device, read and checked.
pub struct Prepared {
    tls: Option<Tls>,
    program: Option<Program>,
}

impl Prepared {
    /// Reads the files that the options name.
    ///
    /// # Errors
    /// One sentence.
    pub fn read(options: &Options) -> Result<Prepared, String> {
        Ok(Prepared {
            tls: security::tls(options)?,
            program: read_program(options)?,
        })
    }
}

/// Serves a switch until `shutdown`; `serves` is told when it does.
pub async fn serve(
    options: &Options,
    Prepared { tls, program }: Prepared,
    handle: DeviceHandle,
    events: mpsc::Receiver<Vec<device::Event>>,
    serves: oneshot::Sender<()>,
    shutdown: impl Future<Output = ()>,
) -> Result<(), Failure> {
    let start = |e: String| Failure::Start(e);
    let server_options = ServerOptions {
        addr: options.grpc,
        device_id: options.device_id,
        cpu_port: Some(options.cpu_port),
        program_bytes: options.program_memory,
    };
    let server = Server::bind(server_options, handle.clone(), events);
    let mut server = server.await.map_err(start)?;
    server.tls = tls;
    let changes = server.port_changes();
    let gnmi = Gnmi::new(
        handle.clone(),
        Arc::new(KernelLinks),
        interfaces(options),
        changes,
    )
    .map_err(|e| start(format!("changes of interfaces cannot be listened to: {e}")))?;
    server.routes = gnmi.into_routes();
    if let Some((json, p4info)) = program {
        let names =
            [&options.pipeline, &options.p4info].map(|path| path.clone().unwrap_or_default());
        let [json_name, info_name] = names.each_ref().map(|path| path.display());
        let done = server.preload(json, &p4info).await;
        done.map_err(|e| start(format!("cannot load {json_name} with {info_name}: {e}")))?;
    }
    let line = ready::line(server.local_addr(), options.device_id);
    if options.log_msg {
        tokio::spawn(print_log(handle));
    }
    ready::tell(
        &line,
        options.process.ready_file.as_deref(),
        options.ready_fd,
    )
    .map_err(start)?;
    // Who waited for it may have gone.
    let _ = serves.send(());
    server.run(shutdown).await.map_err(Failure::Running)
}

/// The ports by their names in gNMI's paths: that of their interface, and [`CPU_NAME`].
fn interfaces(options: &Options) -> Vec<Interface> {
    let named = options.interface.iter().map(|binding| Interface {
        port: binding.port,
        name: binding.interface.clone(),
        cpu: false,
    });
    let cpu = Interface {
        port: options.cpu_port,
        name: CPU_NAME.to_owned(),
        cpu: true,
    };
    named.chain([cpu]).collect()
}

/// Fetches lines of log_msg and prints them until the switch is gone.
async fn print_log(handle: DeviceHandle) {
    if handle
        .call(|device, _| device.set_logging(true))
        .await
        .is_err()
    {
        return;
    }
    while let Ok(text) = handle.call(|device, _| device.take_log()).await {
        for line in text.lines() {
            tracing::info!(target: "log_msg", "{line}");
        }
        tokio::time::sleep(LOG_PERIOD).await;
    }
}

fn read_program(options: &Options) -> Result<Option<Program>, String> {
    let (Some(pipeline), Some(p4info)) = (&options.pipeline, &options.p4info) else {
        return Ok(None);
    };
    let failed = |path: &Path, e| format!("cannot read {}: {e}", path.display());
    let json = std::fs::read(pipeline).map_err(|e| failed(pipeline, e))?;
    let info = std::fs::read_to_string(p4info).map_err(|e| failed(p4info, e))?;
    Ok(Some((json, info)))
}

/// The seed of the device's chance, of the run's seed: switches of one run must not draw the same numbers.
fn seed(options: &Options) -> u64 {
    let run = options.seed.unwrap_or_else(|| {
        let drawn = RandomState::new().build_hasher().finish();
        tracing::info!("random() is seeded by chance; --seed {drawn} does the same again");
        drawn
    });
    derived_seed(run, &format!("switch/{}", options.device_id))
}

pub fn make_device(options: &Options) -> Result<Device, String> {
    let mut device = Device::new(DeviceConfig {
        cpu_port: Some(options.cpu_port),
        seed: seed(options),
        run_seed: options.seed.unwrap_or(1),
        ..DeviceConfig::default()
    });
    for (i, binding) in options.interface.iter().enumerate() {
        if binding.port == options.cpu_port {
            return Err(format!(
                "port {} is the CPU port and cannot be an interface; --cpu-port names another one",
                binding.port
            ));
        }
        if binding.interface == CPU_NAME {
            return Err(format!(
                "interface \"{CPU_NAME}\" of port {}: gNMI's paths name the CPU port so; give the interface another name",
                binding.port
            ));
        }
        if let Some(twin) = options.interface[..i]
            .iter()
            .find(|b| b.interface == binding.interface)
        {
            return Err(format!(
                "interface \"{}\" is given for port {} and for port {}",
                binding.interface, twin.port, binding.port
            ));
        }
        let named = options.port.iter().rev().find(|p| p.port == binding.port);
        let config = named.map_or_else(PortConfig::default, |named| named.config);
        let added = device.add_port(binding.port, config);
        let changed = added.and_then(|()| match named {
            Some(named) => device.change_port(0, binding.port, &named.change),
            None => Ok(()),
        });
        changed.map_err(|e| e.message)?;
    }
    for PortOptions { port, .. } in &options.port {
        if device.port(*port).is_none() || *port == options.cpu_port {
            return Err(format!(
                "--port {port}: port {port} has no interface; give it one by -i {port}@NAME"
            ));
        }
    }
    Ok(device)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn options(arguments: &str) -> Options {
        let command = format!("fairlane-switch {arguments}");
        Options::try_parse_from(command.split_whitespace()).unwrap()
    }

    fn refused(arguments: &str) -> String {
        make_device(&options(arguments)).err().unwrap()
    }

    #[test]
    fn chance_is_that_of_the_runs_seed_and_the_switch() {
        let of = |arguments| seed(&options(arguments));
        assert_eq!(
            of("--seed 7 --device-id 1"),
            of("--device-id 1 --seed 7 --cpu-port 9")
        );
        assert_ne!(of("--seed 7 --device-id 1"), of("--seed 7 --device-id 2"));
        assert_ne!(of("--seed 7 --device-id 1"), of("--seed 8 --device-id 1"));
        assert_ne!(
            of("--device-id 1"),
            of("--device-id 1"),
            "drawn without one"
        );
    }

    #[test]
    fn two_ports_of_one_name_are_refused() {
        assert_eq!(
            refused("-i 1@s1-eth1 -i 3@s1-eth1"),
            "interface \"s1-eth1\" is given for port 1 and for port 3"
        );
        assert_eq!(
            refused("-i 1@s1-eth1 -i 3@cpu"),
            "interface \"cpu\" of port 3: gNMI's paths name the CPU port so; give the interface another name"
        );
    }
}
