// SPDX-License-Identifier: Apache-2.0
//! Subscribe: ONCE, POLL and STREAM with SAMPLE, ON_CHANGE and TARGET_DEFINED (gNMI 0.10 §3.5).
//!
//! A subscriber that reads slowly gets fewer samples and the latest values, never a queue that grows: the next
//! picture is taken when there is room for it again. One that does not read at all is cut off. What all of them ask
//! for together is bounded ([`Budgets`]).

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use p4rt::budget::{Budget, Share};
use p4rt::proto::gnmi::subscribe_request::Request as Asked;
use p4rt::proto::gnmi::subscribe_response::Response;
use p4rt::proto::gnmi::subscription_list::Mode;
use p4rt::proto::gnmi::{
    Encoding, Notification, Path, SubscribeRequest, SubscribeResponse, Subscription,
    SubscriptionList, SubscriptionMode,
};
use p4rt::{bail, short};
use serde_json::Value as Json;
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep_until, timeout, Instant};
use tokio_stream::{Stream, StreamExt};
use tonic::Status;

use crate::get::{self, check_encoding, check_models, leaf_update, target_of};
use crate::path::Pattern;
use crate::select::{Found, Instance, Selection};
use crate::view::{View, Viewer};

/// Messages that may wait for a subscriber.
pub const QUEUE: usize = 2;
/// A subscriber that takes no message for so long is cut off.
const DEAF: Duration = Duration::from_secs(30);
/// A stream whose first message does not come is cut off.
const FIRST: Duration = Duration::from_secs(30);
/// Shortest interval of samples; a `sample_interval` of 0 or below it gets this one, for few leaves.
const INTERVAL_MIN: Duration = Duration::from_millis(10);
/// Who asks for the shortest interval gets no more leaves a second than these, by a longer interval.
const FASTEST_LEAVES_PER_S: u32 = 100_000;
/// Interval of what TARGET_DEFINED samples.
const INTERVAL_TARGET: Duration = Duration::from_secs(10);
/// Most subscriptions in one list.
const SUBSCRIPTIONS_MAX: usize = 1_000;
/// Leaves in one notification: with all that may wait for a subscriber some 2 MB.
const LEAVES_MAX: usize = 250;

type Item = Result<SubscribeResponse, Status>;

/// What the client sends.
pub type Incoming = Pin<Box<dyn Stream<Item = Result<SubscribeRequest, Status>> + Send>>;

/// What all subscribers together may ask for.
pub struct Budgets {
    /// Remembered as sent: some 0.5 GB.
    leaves: Budget,
    /// By samples and heartbeats.
    leaves_per_s: Budget,
}

impl Default for Budgets {
    fn default() -> Budgets {
        Budgets {
            leaves: Budget::new(4_000_000),
            leaves_per_s: Budget::new(1_000_000),
        }
    }
}

/// One client.
pub struct Subscriber {
    pub viewer: Arc<Viewer>,
    pub changes: watch::Receiver<u64>,
    pub budgets: Arc<Budgets>,
    pub out: mpsc::Sender<Item>,
}

/// An instant that comes again and again.
struct Timer {
    every: Duration,
    at: Instant,
    /// What has not changed is sent too.
    all: bool,
}

struct Watched {
    selection: Selection,
    /// Sent when it changes.
    on_change: bool,
    /// The interval of its samples follows the number of leaves.
    fastest: bool,
    /// Samples first, then heartbeats; with neither it is sent when the client polls, or once.
    timers: Vec<Timer>,
    /// What the client has; empty where nothing follows from it.
    sent: HashMap<Instance, Json>,
    /// Leaves that it had last.
    leaves: usize,
}

/// What the client asked for.
struct Plan {
    mode: Mode,
    encoding: Encoding,
    prefix: Option<Path>,
    updates_only: bool,
    watched: Vec<Watched>,
    leaves: Share,
    leaves_per_s: Share,
}

/// The client has gone, or was cut off with a status.
struct End(Option<Status>);

impl From<Status> for End {
    fn from(status: Status) -> End {
        End(Some(status))
    }
}

impl Subscriber {
    /// Serves until the client ends or is cut off.
    pub async fn serve(mut self, mut incoming: Incoming) {
        let out = self.out.clone();
        if let Err(End(Some(status))) = self.run(&mut incoming).await {
            // No room means that the client does not read: the end of the stream tells it.
            let _ = out.try_send(Err(short(status)));
        }
    }

    async fn run(&mut self, incoming: &mut Incoming) -> Result<(), End> {
        let first = timeout(FIRST, incoming.next()).await.map_err(|_| {
            Status::deadline_exceeded("no subscription came in the stream's first 30 s")
        })?;
        let Some(first) = first else { return Ok(()) };
        let Some(Asked::Subscribe(list)) = first?.request else {
            return Err(unexpected("`subscribe`", "at first"));
        };
        let mut plan = Plan::from_list(list, &self.budgets)?;
        let with_values = !plan.updates_only; // else only the sync (gNMI 0.10 §3.5.2.3)
        self.send_all(&mut plan, with_values).await?;
        match plan.mode {
            Mode::Once => Ok(()),
            Mode::Poll => {
                while let Some(message) = incoming.next().await {
                    match message?.request {
                        Some(Asked::Poll(_)) => self.send_all(&mut plan, with_values).await?,
                        _ => return Err(unexpected("`poll`", "after a subscription in mode POLL")),
                    }
                }
                Ok(())
            }
            Mode::Stream => self.stream(&mut plan, incoming).await,
        }
    }

    async fn stream(&mut self, plan: &mut Plan, incoming: &mut Incoming) -> Result<(), End> {
        let listens = plan.watched.iter().any(|w| w.on_change);
        let mut asks = true;
        loop {
            let timers = plan.watched.iter().flat_map(|w| &w.timers);
            let due = timers.map(|timer| timer.at).min();
            let mut changed = false;
            tokio::select! {
                () = self.out.closed() => return Ok(()),
                message = incoming.next(), if asks => match message {
                    // The client has said all that it will, and listens on.
                    None => asks = false,
                    Some(Err(status)) => return Err(status.into()),
                    Some(Ok(_)) => return Err(unexpected("nothing", "after a subscription in mode STREAM")),
                },
                result = self.changes.changed(), if listens => match result {
                    Ok(()) => changed = true,
                    Err(_) => return Err(Status::unavailable("the switch has stopped").into()),
                },
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
            }
            self.report(plan, changed, true, |w, now| w.due(changed, now))
                .await?;
        }
    }

    /// Everything as it is now, and that this is all.
    async fn send_all(&mut self, plan: &mut Plan, send: bool) -> Result<(), End> {
        // What changes from here on is reported later.
        self.changes.mark_unchanged();
        self.report(plan, true, send, |_, _| Some(true)).await?;
        self.put(Response::SyncResponse(true)).await
    }

    /// Sends of each what `due` says of it now: nothing, what has changed, or all (true). It is as it is now, or with
    /// `fresh` false as it was a moment ago.
    async fn report(
        &self,
        plan: &mut Plan,
        fresh: bool,
        send: bool,
        due: impl Fn(&Watched, Instant) -> Option<bool>,
    ) -> Result<(), End> {
        let now = Instant::now();
        let mut wanted = plan.watched.iter().filter(|w| due(w, now).is_some());
        let Some(first) = wanted.next() else {
            return Ok(());
        };
        let wants = wanted.fold(first.selection.wants(), |all, w| {
            all.or(w.selection.wants())
        });
        let view = match fresh {
            true => self.viewer.view(wants).await?,
            false => self.viewer.sample(wants).await?,
        };
        let mut left = get::LEAVES_MAX;
        for index in 0..plan.watched.len() {
            let watched = &mut plan.watched[index];
            let Some(all) = due(watched, now) else {
                continue;
            };
            let (found, gone) = watched.news(&view, now, all, left)?;
            left -= watched.leaves;
            plan.claim()?;
            if send {
                self.send(&view, plan, found, gone).await?;
            }
        }
        Ok(())
    }

    async fn send(
        &self,
        view: &View,
        plan: &Plan,
        found: Vec<Found>,
        gone: Vec<Path>,
    ) -> Result<(), End> {
        let mut gone = Some(gone).filter(|gone| !gone.is_empty());
        let mut rest = found.as_slice();
        while !rest.is_empty() || gone.is_some() {
            let (some, others) = rest.split_at(rest.len().min(LEAVES_MAX));
            rest = others;
            let update = some
                .iter()
                .map(|leaf| leaf_update(leaf, view, plan.encoding));
            self.put(Response::Update(Notification {
                timestamp: view.timestamp_ns,
                prefix: plan.prefix.clone(),
                update: update.collect(),
                delete: gone.take().unwrap_or_default(),
                atomic: false,
            }))
            .await?;
        }
        Ok(())
    }

    async fn put(&self, response: Response) -> Result<(), End> {
        let message = SubscribeResponse {
            response: Some(response),
            ..SubscribeResponse::default()
        };
        match timeout(DEAF, self.out.send(Ok(message))).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(End(None)),
            Err(_) => {
                tracing::warn!("a gNMI subscriber does not read its stream; it is cut off");
                Err(End(None))
            }
        }
    }
}

/// The end of a stream whose client sent another message than is allowed.
fn unexpected(allowed: &str, when: &str) -> End {
    Status::invalid_argument(format!("{when} {allowed} is allowed")).into()
}

impl Watched {
    fn new(selection: Selection, on_change: bool) -> Watched {
        Watched {
            selection,
            on_change,
            fastest: false,
            timers: Vec::new(),
            sent: HashMap::new(),
            leaves: 0,
        }
    }

    /// From now on, as all of it is sent at first.
    fn repeat(&mut self, every: Duration, all: bool) {
        let at = Instant::now() + every;
        self.timers.push(Timer { every, at, all });
    }

    /// Whether something of it is to be sent now: what has changed, or all (true).
    fn due(&self, changed: bool, now: Instant) -> Option<bool> {
        let mut timers = self
            .timers
            .iter()
            .filter(|timer| timer.at <= now)
            .peekable();
        let is_due = (changed && self.on_change) || timers.peek().is_some();
        is_due.then(|| timers.any(|timer| timer.all))
    }

    /// What is to be sent now, all leaves or those that have changed, and the paths of those that have no value any more.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED when it names more than `max` leaves.
    fn news(
        &mut self,
        view: &View,
        now: Instant,
        all: bool,
        max: usize,
    ) -> Result<(Vec<Found>, Vec<Path>), Status> {
        let found = self.selection.read(view, max).ok_or_else(|| {
            Status::resource_exhausted(format!(
                "the subscriptions name more than {} leaves; ask for fewer",
                get::LEAVES_MAX
            ))
        })?;
        let is_news = |f: &&Found| all || self.sent.get(&f.at) != Some(&f.value);
        let news = found.iter().filter(is_news).cloned().collect();
        self.leaves = found.len();
        let mut gone = std::mem::take(&mut self.sent);
        if self.on_change || !self.timers.is_empty() {
            self.sent = found.into_iter().map(|f| (f.at, f.value)).collect();
        }
        gone.retain(|at, _| !self.sent.contains_key(at));
        let gone = gone.into_keys().map(|at| at.path(view, usize::MAX));
        self.turn(now);
        Ok((news, gone.collect()))
    }

    /// Sets the next instants; those that were missed are not made up for.
    fn turn(&mut self, now: Instant) {
        if self.fastest {
            let leaves = u32::try_from(self.leaves).unwrap_or(u32::MAX);
            let every = Duration::from_secs(1) / FASTEST_LEAVES_PER_S * leaves;
            self.timers[0].every = INTERVAL_MIN.max(every);
        }
        for Timer { every, at, .. } in &mut self.timers {
            *at = match *at {
                later if later > now => later,
                last if last + *every > now => last + *every,
                _ => now + *every,
            };
        }
    }
}

impl Plan {
    /// Asks for what it names, as far as it was read.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED, with what there is.
    fn claim(&self) -> Result<(), Status> {
        let leaves = self.watched.iter().map(|w| w.leaves).sum();
        let timers = self.watched.iter().flat_map(|w| {
            let timers = w.timers.iter();
            timers.map(|timer| (w.leaves as u128 * 1_000_000_000).div_ceil(timer.every.as_nanos()))
        });
        let leaves_per_s = timers.sum::<u128>().try_into().unwrap_or(usize::MAX);
        for (what, share, wanted) in [
            ("leaves a second", &self.leaves_per_s, leaves_per_s),
            ("leaves", &self.leaves, leaves),
        ] {
            if !share.set(wanted) {
                let (budget, others) = (&share.budget, share.budget.used() - share.own());
                bail!(resource_exhausted, "{wanted} {what} are asked for; all subscribers together get {}, and others have {others} of them",
                    budget.max);
            }
        }
        Ok(())
    }

    fn from_list(list: SubscriptionList, budgets: &Budgets) -> Result<Plan, Status> {
        let mode = Mode::try_from(list.mode)
            .map_err(|_| Status::invalid_argument("mode STREAM, ONCE or POLL is allowed"))?;
        // JSON is what a client gets that names no encoding, such as finsy, which takes leaves as scalars only; Stratum
        // sends it these too.
        let encoding = match check_encoding(list.encoding)? {
            Encoding::Json => Encoding::Proto,
            encoding => encoding,
        };
        check_models(&list.use_models)?;
        if list.subscription.is_empty() || list.subscription.len() > SUBSCRIPTIONS_MAX {
            bail!(
                invalid_argument,
                "{} subscriptions; 1 to {SUBSCRIPTIONS_MAX} are allowed",
                list.subscription.len()
            );
        }
        let mut watched = Vec::new();
        for subscription in &list.subscription {
            let path = subscription.path.clone().unwrap_or_default();
            let pattern = Pattern::parse(list.prefix.as_ref(), &path)?;
            match mode {
                Mode::Stream => watched.extend(streamed(subscription, pattern)?),
                _ => watched.push(Watched::new(all_of(pattern), false)),
            }
        }
        Ok(Plan {
            mode,
            encoding,
            prefix: target_of(list.prefix.as_ref()),
            updates_only: list.updates_only,
            watched,
            leaves: Share::new(&budgets.leaves),
            leaves_per_s: Share::new(&budgets.leaves_per_s),
        })
    }
}

fn all_of(pattern: Pattern) -> Selection {
    Selection::new(pattern, |_| true)
}

/// What a subscription of a stream names, by when it is sent.
fn streamed(subscription: &Subscription, pattern: Pattern) -> Result<Vec<Watched>, Status> {
    let text = pattern.text();
    let wrong = |what: &str| Status::invalid_argument(format!("{text}: {what}"));
    let mode = SubscriptionMode::try_from(subscription.mode)
        .map_err(|_| wrong("mode TARGET_DEFINED, ON_CHANGE or SAMPLE is allowed"))?;
    let beat = Duration::from_nanos(subscription.heartbeat_interval);
    if beat > Duration::ZERO && beat < INTERVAL_MIN {
        return Err(wrong(&format!(
            "a heartbeat_interval of {} ns; at least {INTERVAL_MIN:?} is allowed",
            subscription.heartbeat_interval
        )));
    }
    let mut parts = match mode {
        SubscriptionMode::Sample => {
            // gNMI would have one that is too short refused. Stratum samples as fast as it can, and clients rely on that
            // without knowing: finsy's ngsdn gives milliseconds where nanoseconds are meant.
            let every = Duration::from_nanos(subscription.sample_interval);
            let mut sampled = Watched::new(all_of(pattern), false);
            sampled.fastest = every < INTERVAL_MIN;
            sampled.repeat(every.max(INTERVAL_MIN), !subscription.suppress_redundant);
            vec![sampled]
        }
        SubscriptionMode::OnChange => {
            let selection = all_of(pattern);
            if let Some(node) = selection.nodes().find(|node| !node.on_change) {
                let names: Vec<&str> = node.steps.iter().map(|step| step.name).collect();
                return Err(wrong(&format!(
                    "/{} changes with every packet and is not reported ON_CHANGE; use SAMPLE, or TARGET_DEFINED",
                    names.join("/")
                )));
            }
            vec![Watched::new(selection, true)]
        }
        SubscriptionMode::TargetDefined => {
            let told = Selection::new(pattern.clone(), |node| node.on_change);
            let sampled = Selection::new(pattern, |node| !node.on_change);
            let mut sampled = Watched::new(sampled, false);
            sampled.repeat(INTERVAL_TARGET, true);
            let mut parts = vec![Watched::new(told, true), sampled];
            parts.retain(|part| !part.selection.is_empty());
            parts
        }
    };
    if beat > Duration::ZERO {
        parts.iter_mut().for_each(|part| part.repeat(beat, true));
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::parse;
    use crate::tests::{bench, Bench, Told, WAIT};

    /// A stream's answers, up to the sync: how many leaves.
    async fn begin(
        bench: &Bench,
        budgets: &Arc<Budgets>,
        path: &str,
        sample_interval_ms: u64,
    ) -> Result<(usize, mpsc::Receiver<Item>), Status> {
        let list = SubscriptionList {
            encoding: Encoding::Proto.into(),
            subscription: vec![Subscription {
                path: Some(parse(path)),
                mode: SubscriptionMode::Sample.into(),
                sample_interval: sample_interval_ms * 1_000_000,
                ..Subscription::default()
            }],
            ..SubscriptionList::default()
        };
        let (out, mut stream) = mpsc::channel(QUEUE);
        let subscriber = Subscriber {
            viewer: bench.viewer.clone(),
            changes: watch::channel(0).1,
            budgets: budgets.clone(),
            out,
        };
        let request = SubscribeRequest {
            request: Some(Asked::Subscribe(list)),
            ..SubscribeRequest::default()
        };
        let incoming = tokio_stream::once(Ok(request)).chain(tokio_stream::pending());
        tokio::spawn(async move { subscriber.serve(Box::pin(incoming)).await });
        let mut leaves = 0;
        loop {
            let item = timeout(WAIT, stream.recv()).await.expect("no answer");
            match item.expect("an end without a status")?.response {
                Some(Response::Update(update)) => leaves += update.update.len(),
                _ => return Ok((leaves, stream)),
            }
        }
    }

    #[tokio::test]
    async fn all_samples_together_are_bounded() {
        let (bench, budgets) = (bench(Told::default()), Arc::default());
        let config = device::PortConfig {
            queues: 500,
            ..device::PortConfig::default()
        };
        let grow = move |device: &mut device::Device, now| device.set_port(now, 1, config);
        bench.viewer.handle().call(grow).await.unwrap().unwrap();
        let queues = "/qos/interfaces/interface[interface-id=a]/output/queues";
        let (leaves, first) = begin(&bench, &budgets, queues, 10).await.unwrap();
        assert_eq!(leaves % 500, 0);
        assert!(leaves * 100 > 500_000, "{leaves}");
        let error = begin(&bench, &budgets, queues, 10).await.unwrap_err();
        assert_eq!(error.code(), tonic::Code::ResourceExhausted);
        let text = format!("{} leaves a second are asked for; all", leaves * 100);
        assert!(error.message().starts_with(&text), "{error}");
        // Slower it goes, and who asks for the shortest interval gets one that fits.
        let slower = begin(&bench, &budgets, queues, 1_000).await.unwrap();
        let fastest = begin(&bench, &budgets, queues, 0).await.unwrap();
        drop((first, slower, fastest));
        let again = async {
            while begin(&bench, &budgets, queues, 10).await.is_err() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(WAIT, again).await.expect("nothing was given back");
    }

    #[test]
    fn who_names_no_encoding_gets_scalars() {
        for (given, sent) in [
            (Encoding::Json, Encoding::Proto),
            (Encoding::Proto, Encoding::Proto),
            (Encoding::JsonIetf, Encoding::JsonIetf),
        ] {
            let list = SubscriptionList {
                encoding: given.into(),
                subscription: vec![Subscription {
                    path: Some(parse("/interfaces/interface/state/oper-status")),
                    ..Subscription::default()
                }],
                ..SubscriptionList::default()
            };
            let plan = Plan::from_list(list, &Budgets::default()).unwrap();
            assert_eq!(plan.encoding, sent);
        }
    }
}
