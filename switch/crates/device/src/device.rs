// SPDX-License-Identifier: Apache-2.0
//! `Device`: what the outside calls — packets, time, program, ports, replication, events.

use crate::ahead::Ahead;
use crate::config::{DeviceConfig, PortChange, PortConfig, DROP_PORT, PORT_MAX};
use crate::events::{Event, EventBuffer, MissedEvents};
use crate::live_trace::LiveTrace;
use crate::pool::Pool;
use crate::ports::{Item, Port, QueueFields};
use crate::pre::Replication;
use crate::replace::{Before, Next};
use crate::stats::{Accounts, DeviceStats, DropReason, PortStats};
use std::sync::Arc;
use traffic::calendar::{Calendar, Moves};
use traffic::link::{Playing, Rate, Series};
use traffic::{QueueStats, SharedBuffer, Usage};
use v1model::{
    ControlError, Effects, Entry, ErrorKind, FrameBuffer, Nanos, Packet, Pipeline, TableId,
};

/// Where frames go that leave the switch.
pub trait Transmit {
    /// The frame of `packet` leaves at `port`; its last bit is on the line at `at` (which may have passed). Who keeps the
    /// frame copies it, or takes it by [`Packet::exchange`].
    fn transmit(&mut self, port: u32, packet: &mut Packet, at: Nanos);
}

/// How often idle time-outs are looked for.
const EXPIRY_PERIOD: Nanos = 100_000_000;

/// One v1model switch. No clock and no I/O: the caller passes time, which never runs backwards (an earlier
/// time than one seen before counts as that one).
pub struct Device {
    pub(crate) pipeline: Option<Pipeline>,
    pub(crate) core: Core,
    pub(crate) ahead: Ahead,
    /// While packets are shown as they come in.
    pub(crate) live: Option<Box<LiveTrace>>,
    /// What has shown all that it should.
    pub(crate) live_done: Option<Box<LiveTrace>>,
}

/// Everything of the device but the pipeline, so that both can be borrowed at once.
pub(crate) struct Core<O = ()> {
    pub(crate) config: DeviceConfig,
    pub(crate) now: Nanos,
    pub(crate) ports: Vec<Option<Box<Port>>>,
    /// When something is due at which port.
    pub(crate) calendar: Calendar,
    pub(crate) buffer: SharedBuffer,
    pub(crate) pool: Pool,
    pub(crate) pre: Replication,
    pub(crate) events: EventBuffer,
    pub(crate) stats: DeviceStats,
    pub(crate) effects: Effects,
    pub(crate) clone_effects: Effects,
    /// Of egress on a packet that ends, in which nothing is done.
    pub(crate) told_effects: Effects,
    pub(crate) log: String,
    /// Rounds left in this call from outside.
    pub(crate) rounds_left: u32,
    pub(crate) fields: QueueFields,
    pub(crate) observer: O,
    /// When the links that come to it have begun.
    begun: Nanos,
    next_expiry: Nanos,
    expires: bool,
    expired: Vec<(TableId, Entry)>,
}

impl<O> Core<O> {
    /// Without ports.
    pub fn new(config: DeviceConfig, observer: O) -> Core<O> {
        Core {
            now: 0,
            ports: Vec::new(),
            calendar: Calendar::default(),
            buffer: SharedBuffer::new(config.buffer),
            pool: Pool::default(),
            pre: Replication::default(),
            events: EventBuffer::new(config.events_max, config.event_bytes_max),
            stats: DeviceStats::default(),
            effects: Effects::new(),
            clone_effects: Effects::new(),
            told_effects: Effects::new(),
            log: String::new(),
            rounds_left: 0,
            fields: QueueFields::default(),
            observer,
            begun: 0,
            next_expiry: 0,
            expires: false,
            expired: Vec::new(),
            config,
        }
    }

    pub fn set_logging(&mut self, on: bool) {
        self.effects.log.enabled = on;
        self.clone_effects.log.enabled = on;
        self.told_effects.log.enabled = on;
    }
}

impl Device {
    /// A switch without program and without ports but the CPU port.
    ///
    /// # Panics
    /// When `config.cpu_port` is above [`PORT_MAX`].
    pub fn new(config: DeviceConfig) -> Device {
        let mut core = Core::new(config, ());
        core.ports.resize_with(DROP_PORT as usize + 1, || None);
        for _ in &core.ports {
            core.calendar.add_entity(Moves::Often);
        }
        if let Some(cpu) = core.config.cpu_port {
            core.ports[cpu as usize] = Some(Box::new(Port::new(PortConfig::default())));
        }
        Device {
            pipeline: None,
            ahead: Ahead::new(),
            live: None,
            live_done: None,
            core,
        }
    }

    /// Options of the device.
    pub fn config(&self) -> &DeviceConfig {
        &self.core.config
    }

    // ---- program ------------------------------------------------------------------------------------------

    /// Replaces the program at once. Packets that wait in queues are flushed and counted as
    /// [`DropReason::Flushed`]: they carry metadata of the old program. A frame on a line still leaves. Its chance
    /// begins anew with the device's seed.
    /// Multicast groups and clone sessions are kept. Returns the packets flushed.
    pub fn load(&mut self, now: Nanos, pipeline: Pipeline) -> u64 {
        self.replace(now, Next::new(pipeline)).flushed
    }

    /// The same with a program that was made ready before. What was there comes back, to be dropped elsewhere.
    pub fn replace(&mut self, now: Nanos, next: Next) -> Before {
        self.end_live_trace();
        // What the old program counted goes with it: it is not told.
        self.core.fields.drop = None;
        let flushed = self.flush(now);
        let core = &mut self.core;
        let Next {
            mut pipeline,
            pool,
            replication,
        } = next;
        pipeline.seed(core.config.seed);
        let pool = std::mem::replace(&mut core.pool, pool);
        let replication = replication.map(|new| std::mem::replace(&mut core.pre, new));
        core.fields = QueueFields::of(&pipeline);
        core.expires = pipeline.schema().tables.iter().any(|t| t.support_timeout);
        core.next_expiry = core.now + EXPIRY_PERIOD;
        core.events.clear_program();
        Before {
            flushed,
            _pipeline: self.pipeline.replace(pipeline),
            _pool: pool,
            _replication: replication,
        }
    }

    /// Takes the program out; frames are dropped and counted until the next `load`.
    pub fn unload(&mut self, now: Nanos) -> Option<Pipeline> {
        self.end_live_trace();
        self.core.fields.drop = None;
        self.flush(now);
        self.core.pool.clear();
        self.core.expires = false;
        self.pipeline.take()
    }

    /// The program in force.
    pub fn pipeline(&self) -> Option<&Pipeline> {
        self.pipeline.as_ref()
    }

    /// The program in force, to change its tables and state.
    pub fn pipeline_mut(&mut self) -> Option<&mut Pipeline> {
        self.pipeline.as_mut()
    }

    /// Drops everything that waits, as [`DropReason::Flushed`]; the program is told of each packet, where it wants to
    /// know. Returns how many. A frame on a line still leaves.
    pub fn flush(&mut self, now: Nanos) -> u64 {
        let core = &mut self.core;
        core.now = core.now.max(now);
        let Some(pipeline) = self.pipeline.as_mut() else {
            return 0;
        };
        let (mut flushed, mut packets) = (0, Vec::new());
        for number in 0..core.ports.len() {
            let Some(port) = core.ports[number].as_deref_mut() else {
                continue;
            };
            let keep = |item: Item| packets.push(item.packet);
            flushed += port.queues.flush(&mut core.buffer, keep);
            for packet in packets.drain(..) {
                core.discard_behind(pipeline, packet, number as u32, DropReason::Flushed);
            }
        }
        flushed
    }

    // ---- packets and time ---------------------------------------------------------------------------------

    /// A frame came in at `port`: parse, ingress, then enqueue, drop, clone, digest as the program says.
    /// Call `advance(now)` before, so that what left before this frame came has left.
    pub fn receive(&mut self, now: Nanos, port: u32, frame: &[u8]) {
        if let Some((core, pipeline)) = self.accept(now, port, frame) {
            core.receive(pipeline, port, |packet| packet.load(frame));
        }
    }

    /// The same without a copy: the buffer of a frame that is taken is the packet's, and another one is left.
    pub fn receive_buffer(&mut self, now: Nanos, port: u32, frame: &mut FrameBuffer) {
        if let Some((core, pipeline)) = self.accept(now, port, frame.as_ref()) {
            core.receive(pipeline, port, |packet| packet.exchange(frame));
        }
    }

    /// Counts a frame that came in; None: it goes no further.
    #[inline]
    pub(crate) fn accept(
        &mut self,
        now: Nanos,
        port: u32,
        frame: &[u8],
    ) -> Option<(&mut Core, &mut Pipeline)> {
        let core = &mut self.core;
        core.now = core.now.max(now);
        core.stats.received += 1;
        let Some(p) = core.ports.get_mut(port as usize).and_then(Option::as_mut) else {
            core.stats.drop(DropReason::NoSuchPort);
            return None;
        };
        p.stats.rx_packets += 1;
        p.stats.rx_bytes += frame.len() as u64;
        let unusable = match frame.len() {
            0 => Some(DropReason::Empty),
            len if len > core.config.frame_bytes_max as usize => Some(DropReason::TooLong),
            _ => None,
        };
        if let Some(reason) = unusable {
            p.stats.rx_errors += 1;
            core.stats.drop(reason);
            return None;
        }
        match &self.pipeline {
            Some(_) => p.stats.rx_frames.count(frame),
            None => p.stats.rx_unprocessed += 1,
        }
        if self.live.is_some() {
            self.show(port, frame);
        }
        let core = &mut self.core;
        let pipeline = self.pipeline.as_mut();
        if pipeline.is_none() {
            core.stats.drop(DropReason::NoPipeline);
        }
        Some((core, pipeline?))
    }

    /// A packet-out: a frame that enters at the CPU port, `packet_out` header first where the program has one.
    pub fn packet_out(&mut self, now: Nanos, frame: &[u8]) {
        match self.core.config.cpu_port {
            Some(port) => self.receive(now, port, frame),
            None => self.core.stats.drop(DropReason::NoSuchPort),
        }
    }

    /// Does everything that is due until `now`, in order of time, each at its scheduled instant.
    /// Returns when something is due next; None when nothing is until a frame comes.
    pub fn advance(&mut self, now: Nanos, tx: &mut dyn Transmit) -> Option<Nanos> {
        let core = &mut self.core;
        core.begin();
        while let Some((due, port)) = core.calendar.peek().filter(|(due, _)| *due <= now) {
            core.now = core.now.max(due);
            core.serve(self.pipeline.as_mut(), port, tx);
        }
        core.now = core.now.max(now);
        if core.expires && core.now >= core.next_expiry {
            self.expire();
        }
        self.next_due()
    }

    /// When something is due next.
    pub fn next_due(&self) -> Option<Nanos> {
        let departure = self.core.calendar.peek().map(|(due, _)| due);
        let expiry = self.core.expires.then_some(self.core.next_expiry);
        match (departure, expiry) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    #[cold]
    fn expire(&mut self) {
        let core = &mut self.core;
        core.next_expiry = core.now + EXPIRY_PERIOD;
        if let Some(pipeline) = self.pipeline.as_mut() {
            if core.events.takes_timeouts() {
                pipeline.expired(core.now, &mut core.expired);
            }
            for (table, entry) in core.expired.drain(..) {
                core.events.timeout(table, entry);
            }
        }
    }

    /// Moves the waiting events to `out`.
    pub fn take_events(&mut self, out: &mut Vec<Event>) {
        self.core.events.take(out);
    }

    /// True when events wait.
    pub fn has_events(&self) -> bool {
        !self.core.events.is_empty()
    }

    /// Events that did not fit into the buffers.
    pub fn missed_events(&self) -> MissedEvents {
        self.core.events.missed
    }

    /// Counts of the device.
    pub fn stats(&self) -> &DeviceStats {
        &self.core.stats
    }

    /// Where every packet is.
    pub fn accounts(&self) -> Accounts {
        let (stats, ports) = (&self.core.stats, &self.core.ports);
        let on_line = ports.iter().flatten().filter(|p| p.on_line.is_some());
        Accounts {
            received: stats.received,
            copied: stats.copied,
            transmitted: stats.transmitted,
            packet_ins: stats.packet_ins,
            dropped: stats.dropped_total(),
            waiting: self.core.buffer.usage.packets,
            on_line: on_line.count() as u64,
        }
    }

    /// Lines of `log_msg` and failed assertions are kept when on; read them by `take_log`.
    pub fn set_logging(&mut self, on: bool) {
        self.core.set_logging(on);
        for effects in &mut self.ahead.effects {
            effects.log.enabled = on;
        }
    }

    /// The lines since the last call; what is above 64 KiB is lost.
    pub fn take_log(&mut self) -> String {
        std::mem::take(&mut self.core.log)
    }

    // ---- ports --------------------------------------------------------------------------------------------

    /// Adds a port.
    ///
    /// # Errors
    /// InvalidArgument for a number above [`DROP_PORT`] or bad options, AlreadyExists for a number in use.
    pub fn add_port(&mut self, port: u32, config: PortConfig) -> Result<(), ControlError> {
        if port > DROP_PORT {
            return Err(ControlError::new(
                ErrorKind::InvalidArgument,
                format!("port {port}: port numbers are 0 to {PORT_MAX}"),
            ));
        }
        config.check(port)?;
        let slot = &mut self.core.ports[port as usize];
        if slot.is_some() {
            return Err(ControlError::new(
                ErrorKind::AlreadyExists,
                format!("port {port} exists already"),
            ));
        }
        *slot = Some(Box::new(Port::new(config)));
        Ok(())
    }

    /// Changes the options of a port while it runs. Packets that wait stay, and weights; the frame on the line goes
    /// on at the new rate; queues can be added, not taken away.
    ///
    /// # Errors
    /// NotFound for a port that is not there, InvalidArgument for bad options or fewer queues; nothing is changed then.
    pub fn set_port(
        &mut self,
        now: Nanos,
        port: u32,
        config: PortConfig,
    ) -> Result<(), ControlError> {
        config.check(port)?;
        let core = &mut self.core;
        core.now = core.now.max(now);
        let now = core.now;
        let p = core.port_mut(port)?;
        if config.queues < p.queues.queues() {
            return Err(ControlError::new(
                ErrorKind::InvalidArgument,
                format!(
                    "port {port}: {} queues are fewer than its {}; queues can only be added while it runs",
                    config.queues,
                    p.queues.queues()
                ),
            ));
        }
        p.queues.grow(config.queues, config.queue_limits);
        for queue in 0..config.queues {
            p.queues.set_queue_limits(queue, config.queue_limits);
        }
        p.queues.set_port_limits(config.port_limits);
        if config.rate_bps != p.config.rate_bps {
            p.set_rate(now, config.rate_bps);
        }
        p.queues.set_link_layer(config.link_layer);
        p.queues.set_scheduler(config.scheduler);
        if p.config != config {
            p.config = config;
            core.events.port_options(port);
        }
        core.reschedule(port);
        Ok(())
    }

    /// The links of the network have begun at `begun`: so did the series that rates follow.
    pub fn begin(&mut self, begun: Nanos) {
        let core = &mut self.core;
        (core.now, core.begun) = (core.now.max(begun), begun);
        let ports: Vec<u32> = self.ports().collect();
        for port in ports {
            let p = self.core.ports[port as usize].as_deref_mut();
            if let Some(series) = p.and_then(|p| p.rate.take()) {
                self.follow(port, series, begun);
            }
        }
    }

    /// The rate of a port, which is there, follows a series that begins at `since`.
    fn follow(&mut self, port: u32, series: Arc<Series>, since: Nanos) {
        let core = &mut self.core;
        let seeds = core.config.rate_seeds(port);
        if let Some(p) = core.ports[port as usize].as_deref_mut() {
            let playing = Playing::new(series.clone(), seeds, core.begun, since);
            p.queues.follow(core.now, playing, p.on_line_bytes());
            p.rate = Some(series);
        }
        core.reschedule(port);
    }

    /// Changes options of a port as [`Self::set_port`] does; a rate may follow a series.
    ///
    /// # Errors
    /// As `set_port`.
    pub fn change_port(
        &mut self,
        now: Nanos,
        port: u32,
        change: &PortChange,
    ) -> Result<(), ControlError> {
        let config = self.port(port).copied().unwrap_or_default();
        self.set_port(now, port, change.applied_to(&config))?;
        let core = &mut self.core;
        let now = core.now;
        let p = core.port_mut(port)?;
        match &change.rate_bps {
            Some(Rate::Follows(series)) if p.rate.as_ref() != Some(series) => {
                self.follow(port, series.clone(), now);
            }
            Some(Rate::Constant(rate_bps)) if p.rate.is_some() => {
                p.set_rate(now, *rate_bps);
                core.reschedule(port);
            }
            _ => {}
        }
        Ok(())
    }

    /// A delay spike: from `now` on nothing starts on a port's line for `duration`, packets wait in its queues; the frame on
    /// the line goes on. A spike within a spike can only make it longer.
    ///
    /// # Errors
    /// NotFound for a port that is not there.
    pub fn spike(&mut self, now: Nanos, port: u32, duration: Nanos) -> Result<(), ControlError> {
        let core = &mut self.core;
        core.now = core.now.max(now);
        let now = core.now;
        core.port_mut(port)?.queues.spike(now, duration);
        core.reschedule(port);
        Ok(())
    }

    /// From when to `until` a port's rate is what, bit/s; None: it is a number.
    pub fn rates(&self, port: u32, until: Nanos) -> Option<Vec<(Nanos, f64)>> {
        self.core.port(port)?.queues.rates(until)
    }

    /// What the rate of a port follows.
    pub fn rate(&self, port: u32) -> Option<&Series> {
        self.core.port(port)?.rate.as_deref()
    }

    /// Options of a port.
    pub fn port(&self, port: u32) -> Option<&PortConfig> {
        self.core.port(port).map(|p| &p.config)
    }

    /// Numbers of the ports, ascending, the CPU port among them.
    pub fn ports(&self) -> impl Iterator<Item = u32> + '_ {
        (0u32..)
            .zip(&self.core.ports)
            .filter_map(|(number, port)| port.as_ref().map(|_| number))
    }

    /// Counts of a port.
    pub fn port_stats(&self, port: u32) -> Option<PortStats> {
        self.core.port(port).map(|p| p.stats)
    }

    /// Counts of one queue of a port, and what waits in it.
    pub fn queue_stats(&self, port: u32, queue: usize) -> Option<(QueueStats, Usage)> {
        let p = self.core.port(port)?;
        (queue < p.queues.queues())
            .then(|| (p.queues.queue_stats(queue), p.queues.queue_usage(queue)))
    }

    /// A queue's share under WRR and DRR, in proportion to the others' weights.
    pub fn queue_weight(&self, port: u32, queue: usize) -> Option<u32> {
        self.core.port(port)?.queues.weight(queue)
    }

    /// Another weight from now on, until the program names one with a packet of this queue.
    ///
    /// # Errors
    /// NotFound for a port or queue that is not there, InvalidArgument for a weight of 0.
    pub fn set_queue_weight(
        &mut self,
        port: u32,
        queue: usize,
        weight: u32,
    ) -> Result<(), ControlError> {
        let p = self.core.port_mut(port)?;
        let Some(before) = p.queues.weight(queue) else {
            return Err(ControlError::new(
                ErrorKind::NotFound,
                format!(
                    "port {port}: there is no queue {queue}; it has {}, from 0 on",
                    p.queues.queues()
                ),
            ));
        };
        if weight == 0 {
            return Err(ControlError::new(
                ErrorKind::InvalidArgument,
                format!("port {port}: queue {queue}: a weight of 0; at least 1 is allowed"),
            ));
        }
        if weight != before {
            p.queues.set_weight(queue, weight);
            self.core.events.port_options(port);
        }
        Ok(())
    }

    /// What waits at a port, all queues.
    pub fn port_usage(&self, port: u32) -> Option<Usage> {
        self.core.port(port).map(|p| p.queues.usage())
    }

    /// The packets that wait at a port, in no order: for who wants to compare them with what the program counts.
    pub fn waiting_packets(&self, port: u32) -> impl Iterator<Item = &Packet> {
        let port = self.core.port(port).into_iter();
        port.flat_map(|p| p.queues.items().map(|item| &*item.packet))
    }

    /// True when the interface of the port is up.
    pub fn port_is_up(&self, port: u32) -> Option<bool> {
        self.core.port(port).map(|p| p.up)
    }

    /// The interface of a port went up or down: packets to a port that is down are dropped; a change is an event.
    pub fn set_port_up(&mut self, port: u32, up: bool) {
        if let Ok(p) = self.core.port_mut(port) {
            if p.up != up {
                p.up = up;
                self.core.events.port_status(port, up);
            }
        }
    }

    /// The interface did not take `packets` frames of together `bytes` that `transmit` gave it: they did not leave.
    /// To be reported before anybody reads counts.
    pub fn count_transmit_failures(&mut self, port: u32, packets: u64, bytes: u64) {
        if let Ok(p) = self.core.port_mut(port) {
            p.stats.tx_errors += packets;
            take_off(&mut p.stats.tx_packets, packets);
            take_off(&mut p.stats.tx_bytes, bytes);
        }
        take_off(&mut self.core.stats.transmitted, packets);
        self.core
            .stats
            .drop_many(DropReason::TransmitFailed, packets);
    }

    /// Frames came in at `port` and were lost before `receive` could be called.
    pub fn count_reception_losses(&mut self, port: u32, reason: DropReason, packets: u64) {
        if let Ok(p) = self.core.port_mut(port) {
            p.stats.rx_lost += packets;
        }
        self.core.stats.received += packets;
        self.core.stats.drop_many(reason, packets);
    }

    /// Multicast groups and clone sessions.
    pub fn replication(&self) -> &Replication {
        &self.core.pre
    }

    /// The same, to be changed.
    pub fn replication_mut(&mut self) -> &mut Replication {
        &mut self.core.pre
    }
}

/// Takes `less` off a count that it was counted in. A count that is wrong stays near zero, instead of at 2⁶⁴.
fn take_off(count: &mut u64, less: u64) {
    debug_assert!(*count >= less, "{less} of {count}");
    *count = count.saturating_sub(less);
}
