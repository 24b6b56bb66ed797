// SPDX-License-Identifier: Apache-2.0
//! One switch: its device, and its servers on a runtime of their own until it is stopped.

use crate::options::Options;
use crate::port_options::PortOptions;
use device::{Device, DeviceConfig, DeviceHandle, PortConfig};
use gnmi::{Gnmi, Interface, KernelLinks};
use p4rt::{Server, ServerOptions, Tls};
use std::collections::hash_map::RandomState;
use std::fs::File;
use std::future::Future;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::fd::FromRawFd;
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
            tls: tls(options)?,
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
    let line = ready_line(server.local_addr(), options.device_id);
    if options.log_msg {
        tokio::spawn(print_log(handle));
    }
    tell_ready(
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
    for binding in &options.interface {
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

/// The line that says that the switch serves.
fn ready_line(grpc: SocketAddr, device_id: u64) -> String {
    format!("fairlane-switch: ready grpc={grpc} device={device_id}\n")
}

/// Writes the line everywhere it is wanted, on standard output, to a file, to a file descriptor; a file appears with its whole content at once.
///
/// # Errors
/// A sentence naming the file or descriptor that could not be written.
pub fn tell_ready(line: &str, file: Option<&Path>, fd: Option<i32>) -> Result<(), String> {
    if let Some(path) = file {
        let new = path.with_extension("new");
        std::fs::write(&new, line)
            .and_then(|()| std::fs::rename(&new, path))
            .map_err(|e| format!("cannot write the ready file {}: {e}", path.display()))?;
    }
    if let Some(fd) = fd {
        // SAFETY: the starter gave us this descriptor for this use; it is closed after it.
        let mut pipe = unsafe { File::from_raw_fd(fd) };
        pipe.write_all(b"ready\n")
            .map_err(|e| format!("cannot write to the ready descriptor {fd}: {e}"))?;
    }
    // Whoever started us may not read our standard output any more; that is no reason to stop.
    let mut out = io::stdout().lock();
    let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
    Ok(())
}

/// Whom the server talks to: TLS by the files of the command line, and beyond loopback only clients with a certificate.
///
/// # Errors
/// A sentence: a file that cannot be read or used; an address that others can reach without TLS, or without a client CA.
fn tls(options: &Options) -> Result<Option<Tls>, String> {
    let loopback = options.grpc.ip().is_loopback();
    let (Some(cert), Some(key)) = (&options.tls_cert, &options.tls_key) else {
        return match loopback {
            true => Ok(None),
            false => Err(format!(
                "--grpc {}: without TLS only loopback addresses are served, such as 127.0.0.1:{}; give --tls-cert and \
                 --tls-key (and --tls-client-ca)",
                options.grpc,
                options.grpc.port()
            )),
        };
    };
    let client_ca = options.tls_client_ca.as_deref();
    if !loopback && client_ca.is_none() && !options.any_client {
        return Err(format!(
            "--grpc {}: without --tls-client-ca whoever reaches this address may change the switch; give the CA of your \
             clients, or --any-client if that is what you want",
            options.grpc
        ));
    }
    let ca = client_ca.map(|path| read("--tls-client-ca", path));
    Tls::new(
        &read("--tls-cert", cert)?,
        &read("--tls-key", key)?,
        ca.transpose()?.as_deref(),
    )
    .map(Some)
    .map_err(|error| match client_ca {
        Some(ca) => format!(
            "--tls-cert {}, --tls-key {}, --tls-client-ca {}: {error}",
            cert.display(),
            key.display(),
            ca.display()
        ),
        None => format!(
            "--tls-cert {}, --tls-key {}: {error}",
            cert.display(),
            key.display()
        ),
    })
}

fn read(option: &str, path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|e| format!("{option}: cannot read {}: {e}", path.display()))
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
    fn the_cpu_ports_name_is_refused() {
        assert_eq!(
            refused("-i 1@s1-eth1 -i 3@cpu"),
            "interface \"cpu\" of port 3: gNMI's paths name the CPU port so; give the interface another name"
        );
    }

    #[test]
    fn others_are_not_served_without_tls() {
        assert!(tls(&options("--grpc [::1]:50051")).unwrap().is_none());
        let error = tls(&options("--grpc 0.0.0.0:50051")).unwrap_err();
        assert!(
            error.starts_with(
                "--grpc 0.0.0.0:50051: without TLS only loopback addresses are served"
            ),
            "{error}"
        );
    }

    #[test]
    fn beyond_loopback_a_client_ca_is_asked_for() {
        let beyond = "--grpc 0.0.0.0:50051 --tls-cert /nowhere/c.pem --tls-key /nowhere/k.pem";
        let error = tls(&options(beyond)).unwrap_err();
        assert!(
            error.starts_with("--grpc 0.0.0.0:50051: without --tls-client-ca "),
            "{error}"
        );
        for chosen in ["--tls-client-ca /nowhere/ca.pem", "--any-client"] {
            let error = tls(&options(&format!("{beyond} {chosen}"))).unwrap_err();
            assert!(error.contains(": cannot read /nowhere/"), "{error}");
        }
        let both = format!("{beyond} --any-client --tls-client-ca /nowhere/ca.pem");
        assert!(Options::try_parse_from(
            ["fairlane-switch"]
                .into_iter()
                .chain(both.split_whitespace())
        )
        .is_err());
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = tls(&options(
            "--tls-cert /nowhere/c.pem --tls-key /nowhere/k.pem",
        ))
        .unwrap_err();
        assert!(
            error.starts_with("--tls-cert: cannot read /nowhere/c.pem: "),
            "{error}"
        );
        assert!(Options::try_parse_from(["fairlane-switch", "--tls-cert", "c.pem"]).is_err());
    }
}
