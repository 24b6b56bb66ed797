// SPDX-License-Identifier: Apache-2.0
//! A direction of a link with the frames that are on it: waiting, on the line, and on their way.
//!
//! All instants are computed, never observed: calling late changes nothing in what happens when.

use super::impairments::JitterDraw;
use super::medium::{Medium, Window};
use super::options::{LOSS, RATE_BPS};
use super::segments::{Newest, Segment};
use super::series::Playing;
use super::service::Service;
use super::settings::present;
use super::streams::unit;
use super::{
    BitErrors, DropReason, ErrorsIn, GilbertElliott, LinkOptionError, LinkOptions, LinkStats,
    LinkStreams, LossModel, Nanos, Series, SpikeBlocks, Unit, UNTOUCHED_BYTES,
};
use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// One direction of a link; `T` is the caller's handle of a frame. What a frame meets on a link that only delays is in front,
/// in as few cache lines as can be.
#[derive(Debug)]
#[repr(C)]
pub struct Link<T> {
    /// From here on a frame meets nothing but the delay; `Nanos::MAX`: it may meet more.
    plain_from: Nanos,
    last_arrival: Nanos,
    medium: Medium<T>,
    stats: LinkStats,
    /// Frames that wait for the line.
    queue: VecDeque<Entry<T>>,
    /// Lost frames that the caller has not taken back yet.
    dropped: VecDeque<(Nanos, T, DropReason)>,
    /// The frame on the line; its last bit leaves at `line.free_at()`.
    on_line: Option<Entry<T>>,
    options: LinkOptions,
    streams: LinkStreams,
    line: Service,
    bursts: GilbertElliott,
    loss: LossModel,
    /// Of the good state and of the bad one.
    bit_errors: [BitErrors; 2],
    has_bit_errors: bool,
    newest: Newest,
    varying: Option<Box<[Option<Playing>; 4]>>,
    /// When the link began.
    begun: Nanos,
    outage: Window,
    /// Nothing starts on the line before.
    blocked_until: Nanos,
}

/// A frame before the medium; its chance is already decided.
#[derive(Debug)]
struct Entry<T> {
    len_bytes: u32,
    flips: u32,
    lost: bool,
    jitter: JitterDraw,
    item: T,
}

/// The link refused a frame at its entrance: the queue was full. The item goes back.
#[derive(Debug, PartialEq, Eq)]
pub struct Refused<T>(pub T);

/// A frame that has left the link.
#[derive(Debug, PartialEq, Eq)]
pub struct Exit<T> {
    /// The instant it was due; the caller may be later.
    pub at: Nanos,
    pub item: T,
    /// None: deliver it.
    pub dropped: Option<DropReason>,
}

impl<T> Link<T> {
    /// A link with these options; allocates for `frames` frames on their way, and grows at a new high water only.
    ///
    /// # Errors
    /// The first option that is out of range.
    pub fn new(
        options: LinkOptions,
        streams: LinkStreams,
        frames: usize,
    ) -> Result<Self, LinkOptionError> {
        let perfect = LinkOptions::default();
        let mut link = Self {
            bursts: GilbertElliott::default(),
            loss: LossModel::default(),
            bit_errors: [BitErrors::none(), BitErrors::none()],
            has_bit_errors: false,
            newest: Newest::default(),
            varying: None,
            begun: 0,
            line: Service::new(0),
            options: perfect,
            streams,
            queue: VecDeque::with_capacity(frames.min(options.queue_packets)),
            on_line: None,
            last_arrival: 0,
            medium: Medium::new(frames),
            dropped: VecDeque::with_capacity(64),
            outage: Window::default(),
            blocked_until: 0,
            plain_from: Nanos::MAX,
            stats: LinkStats::default(),
        };
        link.set(0, options)?;
        Ok(link)
    }

    pub fn options(&self) -> &LinkOptions {
        &self.options
    }

    pub fn stats(&self) -> &LinkStats {
        &self.stats
    }

    /// Frames waiting for the line and on it.
    pub fn queued(&self) -> usize {
        self.queue.len() + usize::from(self.on_line.is_some())
    }

    /// Frames on the medium.
    pub fn in_flight(&self) -> usize {
        self.medium.len()
    }

    /// When a running delay spike ends, if there is one at `now`.
    pub fn spike_until(&self, now: Nanos) -> Option<Nanos> {
        let held = self.medium.held_until(now);
        held.max((now < self.blocked_until).then_some(self.blocked_until))
    }

    /// When a running outage ends, if there is one at `now`.
    pub fn outage_until(&self, now: Nanos) -> Option<Nanos> {
        self.outage.end_at(now)
    }

    /// The link begins at `now`: so do its series, its frames of grants and its bursts in time. Instants before are of no meaning.
    pub fn begin(&mut self, now: Nanos) {
        self.begun = now;
        let has_beginning =
            self.options.series[RATE_BPS].is_some() || self.options.dama_frame_ns > 0;
        if has_beginning && self.on_line.is_none() {
            let rate = self.options.series[RATE_BPS].as_ref();
            let playing = rate.map(|series| self.play(RATE_BPS, series, now));
            self.line = Service::of(now, &self.options, playing);
        }
        self.bursts.begin(now, &mut self.streams);
        let series = std::mem::take(&mut self.options.series);
        self.vary(now, &series);
        self.options.series = series;
    }

    fn play(&self, setting: usize, series: &Arc<Series>, now: Nanos) -> Playing {
        Playing::new(
            series.clone(),
            self.streams.series[setting],
            self.begun,
            now,
        )
    }

    /// Series that are not there yet begin now, the line's left aside.
    fn vary(&mut self, now: Nanos, new: &[Option<Arc<Series>>; 4]) {
        let mut before = self.varying.take();
        let play =
            |setting: usize| match (&self.options.series[setting], &new[setting], &mut before) {
                _ if setting == RATE_BPS => None,
                (old, new, Some(before)) if old == new => before[setting].take(),
                (_, new, _) => new.as_ref().map(|series| self.play(setting, series, now)),
            };
        let playing = [0, 1, RATE_BPS, LOSS].map(play);
        self.varying = playing
            .iter()
            .any(Option::is_some)
            .then(|| Box::new(playing));
    }

    /// What holds at `now` of the settings that are series, in the form that [`LinkOptions::show`] has.
    pub fn present(&self, now: Nanos, unit: Unit) -> Map<String, Value> {
        let varying = self.varying.as_deref();
        let playing = (0..4).filter_map(|setting| match setting {
            RATE_BPS => Some((RATE_BPS, self.line.playing()?)),
            _ => Some((setting, varying?[setting].as_ref()?)),
        });
        let present =
            playing.map(|(setting, playing)| present(setting, playing.clone().at(now), unit));
        present.collect()
    }

    /// Changes the settings from `now` on. No frame is lost by it: frames on the medium keep their instants; the
    /// rest of the frame on the line, and the frames that wait (also those above a shorter queue), get the new settings.
    /// A new trace or series begins now; one that stays goes on.
    ///
    /// # Errors
    /// The first option that is out of range; then nothing has changed.
    pub fn set(&mut self, now: Nanos, options: LinkOptions) -> Result<(), LinkOptionError> {
        options.check()?;
        self.advance(now);
        let on_line_bytes = self.on_line.as_ref().map(|entry| entry.len_bytes);
        let waiting = self.queue.iter().map(|entry| entry.len_bytes);
        let (seeds, begun) = (self.streams.series[RATE_BPS], self.begun);
        let play = |series: &Arc<Series>| Playing::new(series.clone(), seeds, begun, now);
        let change = [&self.options, &options];
        self.line.change(now, change, play, on_line_bytes, waiting);
        self.vary(now, &options.series);
        self.bursts.set(now, &options, &mut self.streams);
        self.loss = LossModel {
            good: options.loss,
            bad: options.ge_loss,
        };
        let [good, bad] = &mut self.bit_errors;
        good.set(options.ber, &mut self.streams.bit_errors);
        bad.set(options.ge_ber, &mut self.streams.bad_bit_errors);
        self.has_bit_errors = options.ber > 0.0 || options.ge_ber > 0.0;
        if options.spare_retransmissions {
            self.newest.prepare();
        }
        self.options = options;
        self.advance(now);
        self.plain_from = match self.has_delay_only() {
            true => self.blocked_until.max(self.outage.until),
            false => Nanos::MAX,
        };
        Ok(())
    }

    /// Whether the settings say that a frame enters the medium at once, unharmed, and leaves it in order.
    fn has_delay_only(&self) -> bool {
        let options = &self.options;
        let has_chance = options.loss > 0.0
            || options.ge_enter > 0.0
            || options.ge_good_ns > 0
            || options.duplicate > 0.0
            || options.jitter_ns > 0
            || self.has_bit_errors;
        let varies = options.series.iter().any(Option::is_some);
        self.line.is_unlimited() && !has_chance && !options.reorder && !varies
    }

    /// A delay spike: from `now` on nothing is delivered for `duration`, and then all that is due comes at once, in order;
    /// or nothing starts on the line, and then what has waited leaves at its rate (the frame on it goes on).
    /// A spike within a spike can only make it longer.
    pub fn spike(&mut self, now: Nanos, duration: Nanos, blocks: SpikeBlocks) {
        self.advance(now);
        match blocks {
            SpikeBlocks::Delivery => self.medium.hold(now, duration),
            SpikeBlocks::Line => {
                self.blocked_until = self.blocked_until.max(now.saturating_add(duration));
                self.plain_from = self.plain_from.max(self.blocked_until);
            }
        }
    }

    /// An outage: every frame whose last bit enters the medium from `now` on for `duration` is lost; frames that are
    /// on the medium already arrive. An outage within an outage can only make it longer.
    pub fn outage(&mut self, now: Nanos, duration: Nanos) {
        self.advance(now);
        self.outage = self.outage.opened(now, duration);
        self.plain_from = self.plain_from.max(self.outage.until);
    }

    /// Whether a frame that is offered at `now` meets nothing but the delay: then `pass` does what `transmit` does, sooner.
    #[inline]
    pub fn is_plain(&self, now: Nanos) -> bool {
        now >= self.plain_from
    }

    /// Offers a frame of so many bytes that meets nothing but the delay (`is_plain`). False: `next_event` is as before.
    #[inline]
    pub fn pass(&mut self, now: Nanos, len_bytes: usize, item: T) -> bool {
        let line_moves = self.on_line.is_some() || !self.queue.is_empty();
        let now = self.offer(now, len_bytes);
        self.streams.skip_frame();
        let is_next = line_moves || self.next_items().next().is_none();
        let due = self.medium.last_due().max(now + self.options.delay_ns);
        self.medium.fly(due, len_bytes as u32, 0, item);
        is_next
    }

    /// A frame comes: counts it and brings the line up to its instant, which is not before that of the last one.
    #[inline]
    fn offer(&mut self, now: Nanos, len_bytes: usize) -> Nanos {
        let now = now.max(self.last_arrival);
        self.last_arrival = now;
        self.advance(now);
        self.stats.offered_packets += 1;
        self.stats.offered_bytes += len_bytes as u64;
        now
    }

    /// Whether the frame that is offered next comes twice; its copy is to be offered right behind it.
    #[inline]
    pub fn draw_duplicate(&mut self) -> bool {
        self.streams.settle();
        if self.options.duplicate == 0.0 {
            self.streams.duplicates.skip(1);
            return false;
        }
        let is_duplicated = unit(self.streams.duplicates.draw()) < self.options.duplicate;
        self.stats.duplicated_packets += u64::from(is_duplicated);
        is_duplicated
    }

    /// Offers a frame at `now` (an instant before the last one offered counts as that one). Flips bits in it.
    ///
    /// # Errors
    /// [`Refused`] gives the item back when the queue is full.
    pub fn transmit(
        &mut self,
        now: Nanos,
        frame: &mut (impl AsRef<[u8]> + AsMut<[u8]> + ?Sized),
        item: T,
    ) -> Result<(), Refused<T>> {
        self.streams.settle();
        let len_bytes = frame.as_ref().len();
        let now = self.offer(now, len_bytes);
        // All draws come first, for every frame: its fate must not depend on the queue's state.
        let bad = self.bursts.step(now, &mut self.streams);
        self.stats.bad_state_packets += u64::from(bad);
        let flips = match self.has_bit_errors {
            false => 0,
            true => self.flip_bits(frame.as_mut(), bad),
        };
        let is_free = self.on_line.is_none() && now >= self.blocked_until;
        // An unlimited line lets a frame into the medium at once, before an option can change.
        let no_jitter = self.options.jitter_ns == 0 && is_free && self.line.is_unlimited();
        if let Some([.., Some(loss)]) = self.varying.as_deref_mut() {
            self.loss.good = loss.at(now);
        }
        let entry = Entry {
            len_bytes: len_bytes as u32,
            lost: self.loss.is_lost(bad, &mut self.streams.loss),
            flips,
            jitter: match no_jitter {
                true => JitterDraw::none(&mut self.streams.jitter),
                false => JitterDraw::next(&mut self.streams.jitter),
            },
            item,
        };
        if is_free {
            self.line.request(now, entry.len_bytes);
            self.start(now.max(self.line.free_at()), entry);
        } else if self.queue.len() < self.options.queue_packets {
            self.line.request(now, entry.len_bytes);
            self.queue.push_back(entry);
        } else {
            self.stats.count_drop(DropReason::QueueFull);
            return Err(Refused(entry.item));
        }
        Ok(())
    }

    /// How many.
    fn flip_bits(&mut self, frame: &mut [u8], bad: bool) -> u32 {
        let exposed = self.exposed(frame);
        let [good_errors, bad_errors] = &mut self.bit_errors;
        good_errors.apply(frame, exposed.clone(), !bad, &mut self.streams.bit_errors)
            + bad_errors.apply(frame, exposed, bad, &mut self.streams.bad_bit_errors)
    }

    /// The bytes that bit errors may hit.
    fn exposed(&mut self, frame: &[u8]) -> Range<usize> {
        let all = frame.len().min(UNTOUCHED_BYTES)..frame.len();
        let (errors_in, spare) = (self.options.errors_in, self.options.spare_retransmissions);
        if errors_in == ErrorsIn::Frame && !spare {
            return all;
        }
        match (Segment::find(frame), errors_in) {
            (Some(segment), _) if spare && self.newest.is_sent_again(&segment) => 0..0,
            (Some(segment), ErrorsIn::Payload) => segment.payload,
            (None, ErrorsIn::Payload) => 0..0,
            (_, ErrorsIn::Frame) => all,
        }
    }

    /// Puts a frame on the free line.
    #[inline]
    fn start(&mut self, start: Nanos, entry: Entry<T>) {
        self.line.occupy(start, entry.len_bytes);
        if self.line.free_at() <= start {
            self.enter_medium(start, entry);
        } else {
            self.on_line = Some(entry);
        }
    }

    /// Brings the line up to `now`: frames that have left it enter the medium at their exact instants.
    #[inline]
    fn advance(&mut self, now: Nanos) {
        if self.on_line.is_some() || !self.queue.is_empty() {
            self.advance_line(now);
        }
    }

    #[inline(never)]
    fn advance_line(&mut self, now: Nanos) {
        while self.line.is_free(now) {
            if let Some(entry) = self.on_line.take() {
                self.enter_medium(self.line.free_at(), entry);
            }
            while self.on_line.is_none() {
                let start = self.line.free_at().max(self.blocked_until);
                if start > now {
                    return;
                }
                let Some(next) = self.queue.pop_front() else {
                    return;
                };
                self.start(start, next);
            }
        }
    }

    fn enter_medium(&mut self, at: Nanos, entry: Entry<T>) {
        let reason = if self.outage.end_at(at).is_some() {
            Some(DropReason::Outage)
        } else if entry.lost {
            Some(DropReason::Loss)
        } else {
            None
        };
        if let Some(reason) = reason {
            self.stats.count_drop(reason);
            self.dropped.push_back((at, entry.item, reason));
            return;
        }
        let mut delays = [self.options.delay_ns, self.options.jitter_ns];
        if let Some(varying) = &mut self.varying {
            for (delay, playing) in delays.iter_mut().zip(varying.iter_mut()) {
                if let Some(playing) = playing {
                    *delay = libm::round(playing.at(at)) as Nanos;
                }
            }
        }
        let mut due = at
            + entry
                .jitter
                .delay_ns(delays, self.options.jitter_distribution);
        if !self.options.reorder {
            due = due.max(self.medium.last_due());
        }
        self.medium
            .fly(due, entry.len_bytes, entry.flips, entry.item);
    }

    /// The next frame that has left the link by `now`: lost ones first, then those to deliver, in order of their instants.
    pub fn poll(&mut self, now: Nanos) -> Option<Exit<T>> {
        self.poll_offered(now, now)
    }

    /// The same while frames are still to be offered at instants from `offered` on: the line stands there. All that leaves by
    /// `now` must be on the medium by then, as it is less than the least delay later.
    #[inline]
    pub fn poll_offered(&mut self, offered: Nanos, now: Nanos) -> Option<Exit<T>> {
        self.advance(offered);
        if let Some((at, item, reason)) = self.dropped.pop_front() {
            return Some(Exit {
                at,
                item,
                dropped: Some(reason),
            });
        }
        let (due, flight) = self.medium.take_due(now)?;
        self.stats.delivered_packets += 1;
        self.stats.delivered_bytes += u64::from(flight.len_bytes);
        if flight.flips > 0 {
            self.stats.corrupted_packets += 1;
            self.stats.flipped_bits += u64::from(flight.flips);
        }
        Some(Exit {
            at: due,
            item: flight.item,
            dropped: None,
        })
    }

    /// When `poll` should be called next: no delivery is due before. None: not until something is transmitted.
    #[inline]
    pub fn next_event(&self) -> Option<Nanos> {
        let delivery = self.medium.next_due();
        match self.on_line.is_none() && self.queue.is_empty() && self.dropped.is_empty() {
            true => delivery,
            false => self.next_event_with(delivery),
        }
    }

    /// The same, where there is more than the next delivery.
    #[inline(never)]
    fn next_event_with(&self, delivery: Option<Nanos>) -> Option<Nanos> {
        let dropped = self.dropped.front().map(|(at, ..)| *at);
        earlier(earlier(delivery, self.next_from_line()), dropped)
    }

    /// A frame on the line arrives at the end of its service and the least delay at the earliest; one before a blocked line,
    /// from the end of the spike on.
    fn next_from_line(&self) -> Option<Nanos> {
        let leaves = match self.on_line {
            Some(_) => Some(self.line.busy_until()),
            None => (!self.queue.is_empty()).then_some(self.blocked_until),
        };
        leaves.map(|at| self.medium.due(at + self.options.delay_min_ns()))
    }

    /// The least delay that a frame can meet, by the settings of now.
    pub fn least_delay(&self) -> Nanos {
        self.options.delay_min_ns()
    }

    /// Before this instant the link delivers nothing but what `arrivals_before` gives now, if the next frame is offered at
    /// `offered` at the earliest and nothing changes the link.
    pub fn known_until(&self, offered: Nanos) -> Nanos {
        let known = earlier(self.next_from_line(), self.medium.next_overtaking());
        let offered = offered.saturating_add(self.least_delay());
        known.map_or(offered, |known| known.min(offered))
    }

    /// Frames on the medium that are due before `limit`, at most that of `known_until`, in the order of their delivery.
    pub fn arrivals_before(&self, limit: Nanos) -> impl Iterator<Item = (Nanos, &T)> {
        self.medium.arrivals_before(limit)
    }

    /// What is probably delivered next, and behind it.
    #[inline]
    pub fn next_items(&self) -> impl Iterator<Item = &T> {
        self.medium.in_order()
    }
}

fn earlier(a: Option<Nanos>, b: Option<Nanos>) -> Option<Nanos> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
