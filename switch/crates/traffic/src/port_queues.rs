// SPDX-License-Identifier: Apache-2.0
//! One output port: queues of opaque items, a scheduler, limits on what waits, and a line of exact rate.

use crate::bit_set::{BitSet, MEMBERS_MAX};
use crate::limits::{QueueLimits, SharedBuffer, Usage};
use crate::line::LinkLayer;
use crate::line::Nanos;
use crate::link::{Playing, Service};
use crate::ring::{List, Slab};
use crate::scheduler::{Scheduler, SchedulerKind, Turn};

/// Most queues of a port.
pub const QUEUES_MAX: usize = MEMBERS_MAX;

/// Why a packet was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// Its queue is full (in one of the units).
    QueueFull,
    /// The port is full, all queues together.
    PortFull,
    /// The buffer that the ports share is full.
    BufferFull,
    /// The port has no queue of this number.
    NoSuchQueue,
}

/// Counts of one queue since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct QueueStats {
    /// Packets taken.
    pub enqueued_packets: u64,
    /// Bytes taken.
    pub enqueued_bytes: u64,
    /// The most that ever waited.
    pub high_water: Usage,
    /// Packets refused: queue full.
    pub dropped_queue_full: u64,
    /// Packets refused, or taken out again for others: port full.
    pub dropped_port_full: u64,
    /// Packets refused: shared buffer full.
    pub dropped_buffer_full: u64,
    /// Bytes of all of these.
    pub dropped_bytes: u64,
    /// Packets taken out unserved: by `flush`, or by `make_room`, where they are among those refused too.
    pub removed_packets: u64,
    /// Their bytes.
    pub removed_bytes: u64,
}

impl QueueStats {
    fn remove(&mut self, len_bytes: u64) {
        self.removed_packets += 1;
        self.removed_bytes += len_bytes;
    }
}

/// A packet whose service starts.
#[derive(Debug)]
pub struct Dequeued<T> {
    /// What was enqueued.
    pub item: T,
    /// From which queue.
    pub queue: usize,
    /// When it was enqueued.
    pub enq: Nanos,
    /// Packets that were waiting in its queue when it came.
    pub depth_at_enq: u32,
    /// Packets waiting in its queue behind it.
    pub depth_now: u32,
}

struct Waiting<T> {
    item: T,
    len_bytes: u32,
    depth_at_enq: u32,
    enq: Nanos,
}

#[repr(C, align(64))] // two cache lines for each packet
struct Queue {
    list: List,
    usage: Usage,
    limits: QueueLimits,
    weight: u32,
    stats: QueueStats,
}

impl Queue {
    fn new(limits: QueueLimits) -> Queue {
        Queue {
            list: List::EMPTY,
            usage: Usage::default(),
            limits,
            weight: 1,
            stats: QueueStats::default(),
        }
    }
}

/// The queues of one port. Limits count what waits; the packet on the line does not count.
///
/// The owner calls `dequeue` at the instants that `next_departure` names, runs egress on the item, then says by
/// `served` how long the frame became: that fixes when the line is free again.
///
/// What each packet meets is side by side.
#[repr(C)]
pub struct PortQueues<T> {
    queues: Vec<Queue>,
    usage: Usage,
    /// Nothing starts on the line before.
    blocked_until: Nanos,
    line: Service,
    kind: SchedulerKind,
    link_layer: LinkLayer,
    scheduler: Scheduler,
    port_limits: QueueLimits,
    slab: Slab<Waiting<T>>,
    /// The queues that hold something.
    backlog: BitSet,
}

impl<T> PortQueues<T> {
    /// `queues` queues with the same limits each and a weight of 1, no limit on the port as a whole, strict priority, a
    /// line of the link layer `none`.
    ///
    /// # Panics
    /// When `queues` is not 1 to [`QUEUES_MAX`] or `rate_bps` is above [`crate::line::RATE_BPS_MAX`].
    pub fn new(queues: usize, queue_limits: QueueLimits, rate_bps: u64) -> PortQueues<T> {
        assert!(
            (1..=QUEUES_MAX).contains(&queues),
            "a port has 1 to {QUEUES_MAX} queues"
        );
        PortQueues {
            queues: (0..queues).map(|_| Queue::new(queue_limits)).collect(),
            slab: Slab::with_capacity(64),
            backlog: BitSet::EMPTY,
            kind: SchedulerKind::Strict,
            scheduler: Scheduler::Strict,
            port_limits: QueueLimits::NONE,
            usage: Usage::default(),
            line: Service::new(rate_bps),
            blocked_until: 0,
            link_layer: LinkLayer::None,
        }
    }

    /// Number of queues.
    pub fn queues(&self) -> usize {
        self.queues.len()
    }

    /// More queues with these limits; a smaller number changes nothing.
    ///
    /// # Panics
    /// When `queues` is above [`QUEUES_MAX`].
    pub fn grow(&mut self, queues: usize, limits: QueueLimits) {
        assert!(queues <= QUEUES_MAX, "a port has at most {QUEUES_MAX}");
        while self.queues.len() < queues {
            self.queues.push(Queue::new(limits));
        }
        self.scheduler.grow(queues);
    }

    /// The scheduling discipline.
    pub fn scheduler(&self) -> SchedulerKind {
        self.kind
    }

    /// Another scheduling discipline, at any time: what waits stays, weights too.
    pub fn set_scheduler(&mut self, kind: SchedulerKind) {
        if kind != self.kind {
            self.kind = kind;
            self.begin_scheduler();
        }
    }

    /// What a frame takes on the line.
    pub fn link_layer(&self) -> LinkLayer {
        self.link_layer
    }

    /// Another link layer; it counts from the next frame on.
    pub fn set_link_layer(&mut self, layer: LinkLayer) {
        if layer != self.link_layer {
            self.link_layer = layer;
            self.begin_scheduler();
        }
    }

    /// A scheduler that begins with what waits.
    fn begin_scheduler(&mut self) {
        self.scheduler = Scheduler::new(self.kind, self.link_layer, self.queues.len());
        for (number, queue) in self.queues.iter().enumerate() {
            if let Some(first) = self.slab.front(&queue.list) {
                self.scheduler
                    .activate(number, queue.weight, first.len_bytes);
                self.scheduler.set_bytes(number, queue.usage.bytes);
            }
        }
    }

    /// A queue's share under WRR and DRR, in proportion to the others' weights.
    pub fn weight(&self, queue: usize) -> Option<u32> {
        self.queues.get(queue).map(|q| q.weight)
    }

    /// Another weight from now on; 0, or a queue that is not there, changes nothing.
    #[inline]
    pub fn set_weight(&mut self, queue: usize, weight: u32) {
        if let Some(q) = self.queues.get_mut(queue) {
            if weight != q.weight && weight != 0 {
                q.weight = weight;
                if let Scheduler::RoundRobin(scheduler) = &mut self.scheduler {
                    scheduler.set_weight(queue, weight);
                }
            }
        }
    }

    /// Under a calendar: this queue first from now on, whatever was served last, then the next larger numbers, around to 0.
    /// A queue that is not there changes nothing, nor does it under another discipline.
    #[inline]
    pub fn set_turn(&mut self, queue: usize) {
        if let Scheduler::Calendar(turn) = &mut self.scheduler {
            if queue < self.queues.len() {
                *turn = Turn { queue, told: true };
            }
        }
    }

    /// Under `fq`: bytes that a queue may send in a round, from now on, at least 256; 0 changes nothing, nor does any under
    /// another discipline.
    #[inline]
    pub fn set_quantum(&mut self, bytes: u32) {
        if let Scheduler::Fq(scheduler) = &mut self.scheduler {
            scheduler.set_quantum(bytes);
        }
    }

    /// New limits of one queue; what waits already stays, also when it is more.
    pub fn set_queue_limits(&mut self, queue: usize, limits: QueueLimits) {
        self.queues[queue].limits = limits;
    }

    /// New limits of all queues together; what waits already stays, also when it is more.
    pub fn set_port_limits(&mut self, limits: QueueLimits) {
        self.port_limits = limits;
    }

    /// New rate, also for what is left of the frame on the line, which has so many bytes.
    pub fn set_rate(&mut self, now: Nanos, rate_bps: u64, on_line_bytes: Option<u32>) {
        let bytes = on_line_bytes.map(|bytes| self.link_layer.line_bytes(bytes));
        self.line.set_rate(now, rate_bps, bytes);
    }

    /// The rate follows a series from now on. The frame on the line goes on as a link's.
    pub fn follow(&mut self, now: Nanos, playing: Playing, on_line_bytes: Option<u32>) {
        let bytes = on_line_bytes.map(|bytes| self.link_layer.line_bytes(bytes));
        self.line.follow(now, playing, bytes);
    }

    /// From when to `until` the rate is what, where it is no number ([`Service::rates`]).
    pub fn rates(&self, until: Nanos) -> Option<Vec<(Nanos, f64)>> {
        self.line.rates(until)
    }

    /// Whether the line is free at `now`. What is due is brought up to it.
    #[inline]
    pub fn is_free(&mut self, now: Nanos) -> bool {
        self.line.is_free(now)
    }

    /// Before this instant the frame on the line has not left it.
    #[inline]
    pub fn busy_until(&self) -> Nanos {
        self.line.busy_until()
    }

    /// First whole nanosecond at which the line is free.
    #[inline]
    pub fn free_at(&self) -> Nanos {
        self.line.free_at()
    }

    /// A delay spike: from `now` on nothing starts on the line for `duration`; the packet on it goes on. A spike within a
    /// spike can only make it longer.
    pub fn spike(&mut self, now: Nanos, duration: Nanos) {
        self.blocked_until = self.blocked_until.max(now.saturating_add(duration));
    }

    /// First whole nanosecond at which a packet's service may start: the line may be free, and nothing blocks it.
    #[inline]
    pub fn ready_at(&self) -> Nanos {
        self.line.busy_until().max(self.blocked_until)
    }

    /// Packets waiting in a queue; 0 for a queue that is not there.
    #[inline]
    pub fn depth(&self, queue: usize) -> u32 {
        self.queues.get(queue).map_or(0, |q| q.usage.packets as u32)
    }

    /// What waits in all queues.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// What waits in one queue.
    pub fn queue_usage(&self, queue: usize) -> Usage {
        self.queues[queue].usage
    }

    /// Counts of one queue.
    pub fn queue_stats(&self, queue: usize) -> QueueStats {
        self.queues[queue].stats
    }

    /// What waits, in no order.
    pub fn items(&self) -> impl Iterator<Item = &T> {
        self.slab.items().map(|waiting| &waiting.item)
    }

    /// True when nothing waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.usage.packets == 0
    }

    /// Why a packet of this length would not be taken now; None when it would.
    pub fn refuses(
        &self,
        queue: usize,
        len_bytes: u32,
        buffer: &SharedBuffer,
    ) -> Option<DropReason> {
        let reason = self.no_room(queue, len_bytes, buffer)?;
        self.fattest(queue, len_bytes).is_none().then_some(reason)
    }

    /// What is full for a packet of this length. Under `fq` its queue's limits are limits of the port.
    #[inline]
    fn no_room(&self, queue: usize, len_bytes: u32, buffer: &SharedBuffer) -> Option<DropReason> {
        let Some(q) = self.queues.get(queue) else {
            return Some(DropReason::NoSuchQueue);
        };
        if let Scheduler::Fq(_) = self.scheduler {
            if !self.usage.fits(len_bytes, &q.limits) {
                return Some(DropReason::PortFull);
            }
        } else if !q.usage.fits(len_bytes, &q.limits) {
            return Some(DropReason::QueueFull);
        }
        if !self.usage.fits(len_bytes, &self.port_limits) {
            return Some(DropReason::PortFull);
        }
        (!buffer.usage.fits(len_bytes, &buffer.limits)).then_some(DropReason::BufferFull)
    }

    /// Under `fq`, for a packet that comes to `queue` while there is no room for it: takes out the first packet of the queue
    /// with the most bytes, those of the new packet counted (RFC 8290 section 4.1; one at a time, where Linux takes up to 64).
    /// To be called until it is None: then the packet has room, or is in the way itself; always under another discipline.
    #[inline]
    pub fn make_room(
        &mut self,
        queue: usize,
        len_bytes: u32,
        buffer: &mut SharedBuffer,
    ) -> Option<T> {
        match self.scheduler {
            Scheduler::Fq(_) => self.evict(queue, len_bytes, buffer),
            _ => None,
        }
    }

    fn evict(&mut self, queue: usize, len_bytes: u32, buffer: &mut SharedBuffer) -> Option<T> {
        self.no_room(queue, len_bytes, buffer)?;
        let fattest = self.fattest(queue, len_bytes)?;
        let before = self.queues[fattest].usage.bytes;
        let item = self.take(fattest, buffer).item;
        let q = &mut self.queues[fattest];
        let len_bytes = before - q.usage.bytes;
        q.stats.remove(len_bytes);
        q.stats.dropped_port_full += 1;
        q.stats.dropped_bytes += len_bytes;
        Some(item)
    }

    /// Under `fq`: the queue with the most bytes once it has the packet that comes to `queue`; None where that packet is all
    /// it has.
    fn fattest(&self, queue: usize, len_bytes: u32) -> Option<usize> {
        let Scheduler::Fq(scheduler) = &self.scheduler else {
            return None;
        };
        self.queues.get(queue)?;
        let fattest = scheduler.fattest(queue, len_bytes);
        (!self.queues[fattest].list.is_empty()).then_some(fattest)
    }

    /// Takes a packet, or gives it back with the reason. `Ok` holds the packets that waited in its queue before it.
    ///
    /// # Errors
    /// The reason of the drop and the packet.
    #[inline]
    pub fn enqueue(
        &mut self,
        now: Nanos,
        queue: usize,
        len_bytes: u32,
        item: T,
        buffer: &mut SharedBuffer,
    ) -> Result<u32, (DropReason, T)> {
        let refused = self.no_room(queue, len_bytes, buffer);
        let Some(q) = self.queues.get_mut(queue) else {
            return Err((DropReason::NoSuchQueue, item));
        };
        if let Some(reason) = refused {
            match reason {
                DropReason::QueueFull => q.stats.dropped_queue_full += 1,
                DropReason::PortFull => q.stats.dropped_port_full += 1,
                DropReason::BufferFull => q.stats.dropped_buffer_full += 1,
                DropReason::NoSuchQueue => {}
            }
            q.stats.dropped_bytes += u64::from(len_bytes);
            return Err((reason, item));
        }
        let depth_at_enq = q.usage.packets as u32;
        if depth_at_enq == 0 {
            self.backlog.insert(queue);
            self.scheduler.activate(queue, q.weight, len_bytes);
        }
        self.slab.push_back(
            &mut q.list,
            Waiting {
                item,
                len_bytes,
                depth_at_enq,
                enq: now,
            },
        );
        q.usage.add(len_bytes);
        self.scheduler.set_bytes(queue, q.usage.bytes);
        q.stats.enqueued_packets += 1;
        q.stats.enqueued_bytes += u64::from(len_bytes);
        q.stats.high_water = q.stats.high_water.max(&q.usage);
        self.usage.add(len_bytes);
        buffer.usage.add(len_bytes);
        buffer.high_water = buffer.high_water.max(&buffer.usage);
        Ok(depth_at_enq)
    }

    /// When the next waiting packet's service can start (`ready_at`), which may have passed; None when nothing waits.
    #[inline]
    pub fn next_departure(&self) -> Option<Nanos> {
        (!self.is_empty()).then(|| self.ready_at())
    }

    /// Starts the service of the packet that the scheduler picks. None when nothing waits or the line is not ready.
    #[inline]
    pub fn dequeue(&mut self, now: Nanos, buffer: &mut SharedBuffer) -> Option<Dequeued<T>> {
        // The lists of `fq` are gone through also when nothing waits (RFC 8290 section 4.2): they are empty then.
        let nothing = self.is_empty() && !matches!(self.scheduler, Scheduler::Fq(_));
        if nothing || self.blocked_until > now || !self.line.is_free(now) {
            return None;
        }
        let (queues, slab) = (&self.queues, &self.slab);
        let queue = match &mut self.scheduler {
            Scheduler::Strict => self.backlog.highest(),
            Scheduler::Calendar(turn) => {
                let next = self.backlog.next_from(turn.queue);
                if !turn.told {
                    turn.queue = next.unwrap_or(turn.queue);
                }
                next
            }
            Scheduler::RoundRobin(scheduler) => {
                scheduler.pick(|queue| slab.front(&queues[queue].list).map_or(0, |w| w.len_bytes))
            }
            Scheduler::Fq(scheduler) => scheduler.pick(|queue| queues[queue].list.is_empty()),
        }?;
        Some(self.take(queue, buffer))
    }

    fn take(&mut self, queue: usize, buffer: &mut SharedBuffer) -> Dequeued<T> {
        let q = &mut self.queues[queue];
        let waiting = self
            .slab
            .pop_front(&mut q.list)
            .expect("the backlog names queues that hold something");
        q.usage.remove(waiting.len_bytes);
        self.scheduler.set_bytes(queue, q.usage.bytes);
        self.usage.remove(waiting.len_bytes);
        buffer.usage.remove(waiting.len_bytes);
        if q.list.is_empty() {
            self.backlog.remove(queue);
            if let Scheduler::RoundRobin(scheduler) = &mut self.scheduler {
                scheduler.emptied(queue);
            }
        }
        Dequeued {
            item: waiting.item,
            queue,
            enq: waiting.enq,
            depth_at_enq: waiting.depth_at_enq,
            depth_now: q.usage.packets as u32,
        }
    }

    /// The packet that waits first in a queue.
    #[inline]
    pub fn front(&self, queue: usize) -> Option<&T> {
        self.slab.front(&self.queues[queue].list).map(|w| &w.item)
    }

    /// The packet dequeued last goes to the line at `now` with this length; not called for one that egress dropped.
    #[inline]
    pub fn served(&mut self, now: Nanos, len_bytes: u32) {
        let line_bytes = self.link_layer.line_bytes(len_bytes);
        self.line.occupy(now, line_bytes);
        match &mut self.scheduler {
            Scheduler::RoundRobin(scheduler) => scheduler.served(len_bytes),
            Scheduler::Fq(scheduler) => scheduler.served(line_bytes),
            Scheduler::Strict | Scheduler::Calendar(_) => {}
        }
    }

    /// Takes out everything that waits, highest queue first; returns how many packets `each` was given.
    pub fn flush(&mut self, buffer: &mut SharedBuffer, mut each: impl FnMut(T)) -> u64 {
        let mut count = 0;
        while let Some(queue) = self.backlog.highest() {
            let before = self.queues[queue].usage.bytes;
            each(self.take(queue, buffer).item);
            let q = &mut self.queues[queue];
            q.stats.remove(before - q.usage.bytes);
            count += 1;
        }
        count
    }
}
