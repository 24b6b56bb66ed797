// SPDX-License-Identifier: Apache-2.0
//! `fairlane-switch network`: all switches and links of a topology in one process. Each switch has its own servers at
//! its own addresses, as if it were alone, and can be stopped and started by itself.

use crate::options::{LogFormat, Options};
use crate::run::{ended, make_device, packet_thread, serve, Failure, Prepared, EVENT_BATCHES};
use crate::{control, stats_log};
use clap::Parser;
use netio::open_files;
use netio::own_socket::{self, refusal, Removal};
use netio::thread::Scheduling;
use serde_json::{json, Value};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tracing::info_span;
use wire::config::{self, NetworkConfig};
use wire::run::{NetworkHandle, Signals};
use wire::setup::{Setup, SwitchPlan};

/// How long a switch may take to end its connections.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a switch may take to start: it loads a program.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// All switches and links of a topology in one process; frames between two switches do not leave it
#[derive(Parser, Debug)]
pub struct NetworkOptions {
    /// The switches, each with its name and its arguments, and the links, as JSON
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Unix-domain socket through which links are changed and read, and switches stopped and started
    #[arg(long, value_name = "SOCKET")]
    control: PathBuf,
    /// Seed of the links' chance
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// File to write the ready line to when all switches serve and the links carry frames
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
    #[command(flatten)]
    scheduling: Scheduling,
    /// Wake up to this much before an instant, as the machine's latency asks for, and poll for the rest (0 to 1000)
    #[arg(long, default_value_t = 100, value_name = "US", value_parser = clap::value_parser!(u64).range(0..=1000))]
    spin_us: u64,
    /// Most frames on all links together (64 to 1048576)
    #[arg(long, default_value_t = 131_072, value_name = "N", value_parser = clap::value_parser!(u64).range(64..=1 << 20))]
    frames: u64,
    /// Least severe messages to print: error, warn, info, debug or trace
    #[arg(long, default_value = "info")]
    pub log_level: tracing::Level,
    /// Form of the messages on standard error
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
}

/// A switch that runs.
struct Running {
    stop: oneshot::Sender<()>,
    served: JoinHandle<Result<(), Failure>>,
    /// Of its servers: with it all connections of its clients end.
    runtime: Runtime,
    _control: Option<Removal>,
}

impl Running {
    /// Its servers are there.
    fn serves(&self) -> bool {
        !self.served.is_finished()
    }

    /// Ends its connections, and waits for that.
    fn end(self) {
        let _ = self.stop.send(());
        let _ = self
            .runtime
            .block_on(async { tokio::time::timeout(STOP_TIMEOUT, self.served).await });
        self.runtime.shutdown_timeout(STOP_TIMEOUT);
    }
}

/// The switches, by their place in the configuration.
struct Switches {
    names: Vec<String>,
    options: Vec<Options>,
    network: NetworkHandle,
    running: Vec<Mutex<Option<Running>>>,
}

impl Switches {
    /// Starts one and waits until it serves.
    fn start(&self, index: usize) -> Result<(), String> {
        let mut running = self.lock(index);
        let name = &self.names[index];
        if running.as_ref().is_some_and(Running::serves) {
            return Err(format!("switch \"{name}\" runs already"));
        }
        // One whose servers have failed makes room.
        if let Some(failed) = running.take() {
            failed.end();
            self.network.stop(index);
        }
        let options = &self.options[index];
        let prepared = Prepared::read(options)?;
        let device = make_device(options)?;
        let control = options.control.as_ref().map(|path| {
            own_socket::bind(path)
                .map_err(|e| format!("--control {}: cannot listen: {e}", path.display()))
        });
        let control = control.transpose()?;
        let (events_in, events) = mpsc::channel(EVENT_BATCHES);
        let handle = self.network.start(index, name, device, events_in);
        let handle = handle.ok_or("the network has stopped")?;
        let control = control.map(|socket| control::serve(socket, handle.clone()));
        let control = control
            .transpose()
            .map_err(|e| format!("cannot start a thread: {e}"))?;
        let (stop, stopped) = oneshot::channel();
        let (ready_in, ready) = oneshot::channel();
        let task = {
            let options = options.clone();
            async move {
                // Who dropped the sender wants the end as well.
                let shutdown = async { drop(stopped.await) };
                serve(&options, prepared, handle, events, Some(ready_in), shutdown).await
            }
        };
        // The log has the name.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name(name)
            .enable_all()
            .build()
            .map_err(|e| format!("cannot start the runtime: {e}"))?;
        let mut served = runtime.spawn(task);
        let started = runtime.block_on(async {
            tokio::select! {
                Ok(()) = ready => Ok(()),
                ended = &mut served => Err(match ended {
                    Ok(Err(Failure::Start(text) | Failure::Running(text))) => text,
                    _ => "it ended while it started".to_owned(),
                }),
                () = tokio::time::sleep(START_TIMEOUT) => Err(format!("it does not serve within {START_TIMEOUT:?}")),
            }
        });
        if started.is_err() {
            self.network.stop(index);
            return started;
        }
        *running = Some(Running {
            stop,
            served,
            runtime,
            _control: control,
        });
        Ok(())
    }

    /// Stops one, with all that waits in it.
    fn stop(&self, index: usize) -> Result<(), String> {
        let Some(running) = self.lock(index).take() else {
            return Err(format!("switch \"{}\" does not run", self.names[index]));
        };
        running.end();
        if let Some(device) = self.network.stop(index) {
            info_span!("switch", name = self.names[index]).in_scope(|| stats_log::log(&device));
        }
        Ok(())
    }

    fn lock(&self, index: usize) -> std::sync::MutexGuard<'_, Option<Running>> {
        let lock = self.running[index].lock();
        lock.unwrap_or_else(PoisonError::into_inner)
    }

    /// `{"op": "stop_switch", "switch": "s1"}`, `start_switch`, `switches`; None: it is not about switches.
    fn answer(&self, line: &str) -> Option<Value> {
        let request: Value = serde_json::from_str(line).ok()?;
        let op = request.get("op")?.as_str()?;
        if op == "switches" {
            let states = self.names.iter().enumerate().map(|(index, name)| {
                let runs = self.lock(index).as_ref().is_some_and(Running::serves);
                json!({"name": name, "running": runs})
            });
            return Some(json!({"ok": true, "switches": states.collect::<Vec<_>>()}));
        }
        let act = match op {
            "stop_switch" => Switches::stop,
            "start_switch" => Switches::start,
            _ => return None,
        };
        let name = request.get("switch").unwrap_or(&Value::Null);
        let index = self.names.iter().position(|one| name == one.as_str());
        let done = match index {
            Some(index) => act(self, index),
            None => Err(format!(
                "switch: {name} is not known; allowed: {}",
                self.names.join(", ")
            )),
        };
        Some(match done {
            Ok(()) => json!({"ok": true}),
            Err(error) => refusal(&error),
        })
    }
}

/// Runs the network until SIGTERM or SIGINT.
pub fn run(options: &NetworkOptions) -> Result<(), Failure> {
    let start = Failure::Start;
    if let Err(error) = open_files::raise_limit() {
        tracing::warn!("the limit of open files stays as it is: {error}");
    }
    let signals = Signals::block().map_err(|e| start(format!("signals: {e}")))?;
    let config = config::read(&options.config).map_err(|e| start(e.to_string()))?;
    let NetworkConfig { switches, links } = config;
    let mut plans = Vec::new();
    let mut switch_options = Vec::new();
    for (i, switch) in switches.into_iter().enumerate() {
        let command = ["fairlane-switch".to_owned()]
            .into_iter()
            .chain(switch.arguments);
        let one = Options::try_parse_from(command).map_err(|e| {
            start(format!(
                "{}: /switches/{i}/arguments: {e}",
                options.config.display()
            ))
        })?;
        plans.push(SwitchPlan {
            name: switch.name,
            ports: one.interface.clone(),
        });
        switch_options.push(one);
    }
    let setup = Setup {
        seed: options.seed,
        spin_us: options.spin_us,
        frames: options.frames as usize,
        control: &options.control,
    };
    let asked: Arc<Mutex<Option<Arc<Switches>>>> = Arc::default();
    let switches_of = asked.clone();
    let intercept = move |line: &str| {
        let switches = switches_of
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        switches.and_then(|switches| switches.answer(line))
    };
    let (wire, network) = setup.wire(&links, &plans, intercept).map_err(start)?;
    let (packets, scheduling) = packet_thread(options.scheduling, move || wire.run(&signals))?;
    let switches = Arc::new(Switches {
        running: plans.iter().map(|_| Mutex::default()).collect(),
        names: plans.into_iter().map(|plan| plan.name).collect(),
        options: switch_options,
        network,
    });
    for (index, name) in switches.names.iter().enumerate() {
        switches
            .start(index)
            .map_err(|e| start(format!("switch \"{name}\": {e}")))?;
    }
    *asked.lock().unwrap_or_else(PoisonError::into_inner) = Some(switches.clone());
    let ready = format!(
        "fairlane-switch: ready switches={} links={} scheduling={scheduling} control={}\n",
        switches.names.len(),
        links.len(),
        options.control.display()
    );
    crate::ready::tell(&ready, options.ready_file.as_deref(), None).map_err(start)?;
    let result = ended(packets);
    tracing::info!("stopping");
    for running in &switches.running {
        if let Some(running) = running
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
        {
            running.end();
        }
    }
    result
}
