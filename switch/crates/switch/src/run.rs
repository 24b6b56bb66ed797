// SPDX-License-Identifier: Apache-2.0
//! The process: one switch, or all switches and links of a topology. Each switch has its own servers at its own addresses;
//! those of a network can be stopped and started by themselves. A signal stops all.

use crate::control;
use crate::options::{NetworkOptions, Options};
use crate::port_report::log;
use crate::serve::{make_device, serve, tell_ready, Failure, Prepared};
use clap::Parser;
use netio::own_socket::{self, reply, Removal};
use netio::process;
use netio::thread::Scheduling;
use serde_json::{json, Value};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{signal, SignalKind};
use tokio::sync::{mpsc, oneshot};
use tracing::info_span;
use wire::config::{self, LinkConfig};
use wire::request::{self, missing, nothing_left, take_word, Fields, OPERATIONS};
use wire::run::NetworkHandle;
use wire::setup::{Setup, SwitchPlan};

/// Batches of events that may wait for a switch's server.
const EVENT_BATCHES: usize = 64;
/// How long a switch may take to end its connections, and what its runtime does beside them.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
const RUNTIME_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a switch may take to start: it loads a program.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Frames under way in a switch without links.
const FRAMES_ALONE: u64 = 131_072;

/// A switch that runs.
struct Running {
    stop: oneshot::Sender<()>,
    served: tokio::task::JoinHandle<Result<(), Failure>>,
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
    fn end(self) -> Result<(), Failure> {
        let _ = self.stop.send(());
        let served = async { tokio::time::timeout(STOP_TIMEOUT, self.served).await };
        let served = self.runtime.block_on(served);
        self.runtime.shutdown_timeout(RUNTIME_TIMEOUT);
        match served {
            Ok(Ok(result)) => result,
            _ => Ok(()),
        }
    }
}

/// The switches, by their place in the configuration.
struct Switches {
    names: Vec<String>,
    options: Vec<Options>,
    network: NetworkHandle,
    running: Vec<Mutex<Option<Running>>>,
    /// What is said of the threads that carry frames.
    threads: Value,
    /// Where one that is alone tells that it does not serve any more.
    over: Option<mpsc::UnboundedSender<&'static str>>,
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
            let _ = failed.end();
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
            let (options, over) = (options.clone(), self.over.clone());
            async move {
                // Who dropped the sender wants the end as well.
                let shutdown = async { drop(stopped.await) };
                let served = serve(&options, prepared, handle, events, ready_in, shutdown).await;
                let _ = over.map(|over| over.send("the server"));
                served
            }
        };
        // The log has the name.
        let runtime = Builder::new_multi_thread()
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

    /// Stops one, with all that waits in it; None: it does not run.
    fn stop(&self, index: usize) -> Option<Result<(), Failure>> {
        let served = self.lock(index).take()?.end();
        if let Some(device) = self.network.stop(index) {
            let name = &self.names[index];
            let span = (self.over.is_none()).then(|| info_span!("switch", name).entered());
            log(&device);
            drop(span);
        }
        Some(served)
    }

    fn lock(&self, index: usize) -> MutexGuard<'_, Option<Running>> {
        let lock = self.running[index].lock();
        lock.unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a line of the network's control socket: `{"op": "stop_switch", "switch": "s1"}`, `start_switch`, `switches`; all
    /// else is about links.
    fn answer(&self, line: &str) -> Result<Fields, String> {
        let (op, mut request) = request::read(line, &OPERATIONS)?;
        if op == "switches" {
            nothing_left(&request, "op")?;
            let states = self.names.iter().enumerate().map(|(index, name)| {
                let runs = self.lock(index).as_ref().is_some_and(Running::serves);
                json!({"name": name, "running": runs})
            });
            let threads = ("threads".to_owned(), self.threads.clone());
            return Ok([("switches".to_owned(), states.collect()), threads]
                .into_iter()
                .collect());
        }
        if !op.ends_with("_switch") {
            return self.network.answer(op, request);
        }
        let index = take_word(&mut request, "switch", &self.names)?;
        let index = index.ok_or_else(|| missing("switch"))?;
        nothing_left(&request, "op, switch")?;
        if op == "start_switch" {
            self.start(index)?;
        } else if self.stop(index).is_none() {
            return Err(format!("switch \"{}\" does not run", self.names[index]));
        }
        Ok(Fields::new())
    }
}

/// Runs the network, or the switch that is alone, until SIGTERM or SIGINT.
pub fn run(network: Option<&NetworkOptions>, alone: Options) -> Result<(), Failure> {
    let start = Failure::Start;
    if let Err(error) = process::raise_limit() {
        tracing::warn!("the limit of open files stays as it is: {error}");
    }
    let process = network.map_or(&alone.process, |network| &network.process);
    let process = process.clone();
    let (names, options, links) = match network {
        Some(network) => read(network).map_err(start)?,
        None => (vec!["switch".to_owned()], vec![alone], Vec::new()),
    };
    let plan = |(name, options): (&String, &Options)| SwitchPlan {
        name: name.clone(),
        ports: options.interface.clone(),
    };
    let plans: Vec<_> = names.iter().zip(&options).map(plan).collect();
    let setup = Setup {
        links: &links,
        switches: &plans,
        seed: network.map_or(0, |network| network.seed),
        frames: network.map_or(FRAMES_ALONE, |network| network.frames) as usize,
        options: &process.packets,
    };
    let (packets, handle) = setup.open().map_err(start)?;
    let control = network.map(|NetworkOptions { control, .. }| {
        own_socket::bind(control)
            .map_err(|e| start(format!("control socket {}: {e}", control.display())))
    });
    let control = control.transpose()?;
    let (over_in, mut over) = mpsc::unbounded_channel();
    let ended_in = over_in.clone();
    let (packets, scheduling) = packet_thread(process.packets.scheduling, move || {
        let result = packets.run();
        let _ = ended_in.send("the packet thread");
        result
    })?;
    let runtime = Builder::new_current_thread().enable_io().build();
    let runtime = runtime.map_err(|e| start(format!("cannot start the runtime: {e}")))?;
    // A signal may come with the ready line.
    let [mut terminate, mut interrupt] = {
        let _in_runtime = runtime.enter();
        let listen =
            |kind| signal(kind).map_err(|e| start(format!("signals cannot be listened to: {e}")));
        [
            listen(SignalKind::terminate())?,
            listen(SignalKind::interrupt())?,
        ]
    };
    let send_threads = process.packets.sending_threads();
    let switches = Arc::new(Switches {
        running: plans.iter().map(|_| Mutex::default()).collect(),
        threads: json!({"scheduling": scheduling, "send_threads": send_threads}),
        over: network.is_none().then_some(over_in),
        network: handle.clone(),
        names,
        options,
    });
    for (index, name) in switches.names.iter().enumerate() {
        switches.start(index).map_err(|e| match network {
            Some(_) => start(format!("switch \"{name}\": {e}")),
            None => start(e),
        })?;
    }
    let answering = switches.clone();
    let control = control.map(|it| it.serve(move |line| reply(answering.answer(line))));
    let _control = control
        .transpose()
        .map_err(|e| start(format!("cannot start a thread: {e}")))?;
    if let Some(network) = network {
        let ready = format!(
            "fairlane-switch: ready switches={} links={} scheduling={scheduling} send_threads={send_threads} control={}\n",
            switches.names.len(),
            links.len(),
            network.control.display()
        );
        tell_ready(&ready, process.ready_file.as_deref(), None).map_err(start)?;
    }
    runtime.block_on(async {
        tokio::select! {
            _ = terminate.recv() => tracing::info!("SIGTERM: stopping"),
            _ = interrupt.recv() => tracing::info!("SIGINT: stopping"),
            Some(what) = over.recv() => tracing::error!("{what} ended"),
        }
    });
    let served: Vec<_> = (0..switches.names.len())
        .filter_map(|index| switches.stop(index))
        .collect();
    handle.end();
    let ended = packets
        .join()
        .map_err(|_| Failure::Running("the packet thread panicked".to_owned()))?;
    ended.map_err(|e| Failure::Running(format!("the packet thread failed: {e}")))?;
    match network {
        Some(_) => Ok(()),
        None => served.into_iter().collect(),
    }
}

/// The names and options of a network's switches, and its links.
type Parts = (Vec<String>, Vec<Options>, Vec<LinkConfig>);

fn read(network: &NetworkOptions) -> Result<Parts, String> {
    let config = config::read(&network.config).map_err(|e| e.to_string())?;
    let (mut names, mut options) = (Vec::new(), Vec::new());
    for (i, switch) in config.switches.into_iter().enumerate() {
        let program = ["fairlane-switch".to_owned()].into_iter();
        let parsed = Options::try_parse_from(program.chain(switch.arguments));
        let wrong = |e| format!("{}: /switches/{i}/arguments: {e}", network.config.display());
        let parsed = parsed.map_err(|e| wrong(e.to_string()))?;
        if parsed.ready_fd.is_some() || parsed.engine.is_some() {
            let words = "--ready-fd and --engine are for a switch alone; a network has --ready-file, and the variable FAIRLANE_ENGINE";
            return Err(wrong(words.to_owned()));
        }
        options.push(parsed);
        names.push(switch.name);
    }
    Ok((names, options, config.links))
}

/// Starts the packet thread; it does `work` when it is scheduled as asked for. Returns its scheduling too.
fn packet_thread(
    scheduling: Scheduling,
    work: impl FnOnce() -> io::Result<()> + Send + 'static,
) -> Result<(JoinHandle<io::Result<()>>, &'static str), Failure> {
    let (scheduled_in, scheduled) = std::sync::mpsc::channel();
    let builder = std::thread::Builder::new().name("packets".to_owned());
    let thread = builder.spawn(move || {
        let scheduled = scheduling.apply();
        let is_scheduled = scheduled.is_ok();
        // The receiver waits for it.
        let _ = scheduled_in.send(scheduled);
        match is_scheduled {
            true => work(),
            false => Err(io::ErrorKind::Other.into()),
        }
    });
    let thread = thread.map_err(|e| Failure::Start(format!("cannot start a thread: {e}")))?;
    match scheduled.recv() {
        Ok(Ok(scheduling)) => Ok((thread, scheduling)),
        Ok(Err(error)) => Err(Failure::Start(error)),
        Err(_) => Err(Failure::Start("the packet thread ended".to_owned())),
    }
}
