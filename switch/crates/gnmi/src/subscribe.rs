// SPDX-License-Identifier: Apache-2.0
//! Subscribe: ONCE, POLL and STREAM with SAMPLE, ON_CHANGE and TARGET_DEFINED (gNMI 0.10 §3.5).
//!
//! A subscriber that reads slowly gets fewer samples and the latest values, never a queue that grows: the next
//! picture is taken when there is room for it again. One that does not read at all is cut off. What all of them ask
//! for together is bounded ([`crate::budget`]).

use crate::budget::{Budget, Load, Share};
use crate::get::{self, check_encoding, check_models, leaf_update, target_of};
use crate::path::Pattern;
use crate::select::{Found, Instance, Selection};
use crate::value::Value;
use crate::view::{View, Viewer, Wants};
use p4rt::proto::gnmi::subscribe_request::Request as Asked;
use p4rt::proto::gnmi::subscribe_response::Response;
use p4rt::proto::gnmi::subscription_list::Mode;
use p4rt::proto::gnmi::{
    Encoding, Notification, Path, SubscribeRequest, SubscribeResponse, Subscription,
    SubscriptionList, SubscriptionMode,
};
use p4rt::short;
use std::collections::{HashMap, HashSet};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{timeout, Instant};
use tokio_stream::{Stream, StreamExt};
use tonic::Status;

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

/// One client.
pub struct Subscriber {
    pub viewer: Arc<Viewer>,
    pub changes: watch::Receiver<u64>,
    pub budget: Arc<Budget>,
    pub out: mpsc::Sender<Item>,
}

/// When what is sent.
#[derive(Debug, Clone, Copy)]
enum Rhythm {
    /// When the client polls, or once.
    Asked,
    OnChange,
    /// Below [`INTERVAL_MIN`] the interval follows the number of leaves.
    Sample {
        asked: Duration,
        redundant: bool,
    },
}

struct Watched {
    selection: Selection,
    rhythm: Rhythm,
    next: Option<Instant>,
    heartbeat: Option<(Duration, Instant)>,
    /// What the client has; empty where nothing follows from it.
    sent: HashMap<Instance, Value>,
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
    share: Share,
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
        let mut plan = Plan::from_list(list, &self.budget)?;
        let initial = !plan.updates_only;
        self.send_all(&mut plan, initial).await?;
        match plan.mode {
            Mode::Once => Ok(()),
            Mode::Poll => self.poll(&mut plan, incoming).await,
            Mode::Stream => self.stream(&mut plan, incoming).await,
        }
    }

    async fn poll(&mut self, plan: &mut Plan, incoming: &mut Incoming) -> Result<(), End> {
        while let Some(message) = incoming.next().await {
            match message?.request {
                Some(Asked::Poll(_)) => self.send_all(plan, true).await?,
                _ => return Err(unexpected("`poll`", "after a subscription in mode POLL")),
            }
        }
        Ok(())
    }

    async fn stream(&mut self, plan: &mut Plan, incoming: &mut Incoming) -> Result<(), End> {
        let on_change = |w: &Watched| matches!(w.rhythm, Rhythm::OnChange);
        let listens = plan.watched.iter().any(on_change);
        let mut asks = true;
        loop {
            let due = plan.watched.iter().filter_map(Watched::due).min();
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
                () = sleep_until(due) => {}
            }
            let now = Instant::now();
            let due =
                |w: &Watched| (changed && on_change(w)) || w.due().is_some_and(|due| due <= now);
            if !plan.watched.iter().any(due) {
                continue;
            }
            let wants = plan.wants(due);
            let view = match changed {
                true => self.viewer.view(wants).await?,
                false => self.viewer.sample(wants).await?,
            };
            let news = |w: &Watched| due(w).then(|| w.is_all_due(now));
            self.report(&view, plan, now, news, true).await?;
        }
    }

    /// Everything as it is now, and that this is all.
    async fn send_all(&mut self, plan: &mut Plan, send: bool) -> Result<(), End> {
        let wants = plan.wants(|_| true);
        // What changes from here on is reported later.
        self.changes.mark_unchanged();
        let view = self.viewer.view(wants).await?;
        let now = Instant::now();
        self.report(&view, plan, now, |_| Some(true), send).await?;
        self.put(Response::SyncResponse(true)).await
    }

    /// Sends of each what `due` says: nothing, what has changed, or all (true).
    async fn report(
        &self,
        view: &View,
        plan: &mut Plan,
        now: Instant,
        due: impl Fn(&Watched) -> Option<bool>,
        send: bool,
    ) -> Result<(), End> {
        let mut left = get::LEAVES_MAX;
        for index in 0..plan.watched.len() {
            let watched = &mut plan.watched[index];
            let Some(all) = due(watched) else {
                continue;
            };
            let (found, gone) = watched.news(view, now, all, left)?;
            left -= watched.leaves;
            let load = plan.load();
            plan.share.set(load)?;
            if send {
                self.send(view, plan, found, gone).await?;
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

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

impl Watched {
    fn due(&self) -> Option<Instant> {
        let heartbeat = self.heartbeat.map(|(_, at)| at);
        self.next.into_iter().chain(heartbeat).min()
    }

    /// Whether what has not changed is to be sent too.
    fn is_all_due(&self, now: Instant) -> bool {
        let is_sample = matches!(
            self.rhythm,
            Rhythm::Sample {
                redundant: true,
                ..
            }
        );
        is_sample || self.heartbeat.is_some_and(|(_, at)| at <= now)
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
        let there: HashSet<_> = found.iter().map(|f| f.at).collect();
        let gone = self.sent.keys().filter(|at| !there.contains(at));
        let gone: Vec<Path> = gone.map(|at| at.path(view, usize::MAX)).collect();
        let is_news = |f: &&Found| all || self.sent.get(&f.at) != Some(&f.value);
        let news = found.iter().filter(is_news).cloned().collect();
        self.leaves = found.len();
        if !matches!(self.rhythm, Rhythm::Asked) {
            self.sent = found.into_iter().map(|f| (f.at, f.value)).collect();
        }
        self.turn(now);
        Ok((news, gone))
    }

    /// The interval of its samples.
    fn every(&self) -> Option<Duration> {
        let leaves = u32::try_from(self.leaves).unwrap_or(u32::MAX);
        match self.rhythm {
            Rhythm::Sample { asked, .. } if asked < INTERVAL_MIN => {
                Some(INTERVAL_MIN.max(Duration::from_secs(1) / FASTEST_LEAVES_PER_S * leaves))
            }
            Rhythm::Sample { asked, .. } => Some(asked),
            Rhythm::OnChange | Rhythm::Asked => None,
        }
    }

    /// Sets the next instants; those that were missed are not made up for.
    fn turn(&mut self, now: Instant) {
        let after = |at: Instant, every: Duration| match at {
            at if at > now => at,
            at if at + every > now => at + every,
            _ => now + every,
        };
        if let Some(every) = self.every() {
            self.next = Some(after(self.next.unwrap_or(now), every));
        }
        if let Some((every, at)) = &mut self.heartbeat {
            *at = after(*at, *every);
        }
    }
}

impl Plan {
    /// What must be read for those that are `due`.
    fn wants(&self, due: impl Fn(&Watched) -> bool) -> Wants {
        let due = self.watched.iter().filter(|w| due(w));
        due.fold(Wants::default(), |all, w| all.or(w.selection.wants()))
    }

    /// What it asks for, as far as it was read.
    fn load(&self) -> Load {
        let mut load = Load::default();
        for watched in &self.watched {
            let beat = watched.heartbeat.map(|(every, _)| every);
            load.add(watched.leaves, watched.every().into_iter().chain(beat));
        }
        load
    }

    fn from_list(list: SubscriptionList, budget: &Arc<Budget>) -> Result<Plan, Status> {
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
            return Err(Status::invalid_argument(format!(
                "{} subscriptions; 1 to {SUBSCRIPTIONS_MAX} are allowed",
                list.subscription.len()
            )));
        }
        let mut watched = Vec::new();
        for subscription in &list.subscription {
            let path = subscription.path.clone().unwrap_or_default();
            let pattern = Pattern::parse(list.prefix.as_ref(), &path)?;
            let (parts, heartbeat) = match mode {
                Mode::Stream => rhythms(subscription, pattern)?,
                _ => (vec![(all_of(pattern), Rhythm::Asked)], None),
            };
            watched.extend(parts.into_iter().map(|(selection, rhythm)| Watched {
                selection,
                rhythm,
                next: None,
                heartbeat: heartbeat.map(|every| (every, Instant::now() + every)),
                sent: HashMap::new(),
                leaves: 0,
            }));
        }
        Ok(Plan {
            mode,
            encoding,
            prefix: target_of(list.prefix.as_ref()),
            updates_only: list.updates_only,
            watched,
            share: Share::new(budget),
        })
    }
}

fn all_of(pattern: Pattern) -> Selection {
    Selection::new(pattern, |_| true)
}

/// The leaves that a subscription of a stream names, by when they are sent; and how often they are sent at least.
type Rhythms = (Vec<(Selection, Rhythm)>, Option<Duration>);

fn rhythms(subscription: &Subscription, pattern: Pattern) -> Result<Rhythms, Status> {
    let text = pattern.text().to_owned();
    let wrong = |what: &str| Status::invalid_argument(format!("{text}: {what}"));
    let mode = SubscriptionMode::try_from(subscription.mode)
        .map_err(|_| wrong("mode TARGET_DEFINED, ON_CHANGE or SAMPLE is allowed"))?;
    let beat = Duration::from_nanos(subscription.heartbeat_interval);
    let beat = Some(beat).filter(|beat| !beat.is_zero());
    if beat.is_some_and(|beat| beat < INTERVAL_MIN) {
        return Err(wrong(&format!(
            "a heartbeat_interval of {} ns; at least {INTERVAL_MIN:?} is allowed",
            subscription.heartbeat_interval
        )));
    }
    let parts = match mode {
        SubscriptionMode::Sample => {
            // gNMI would have one that is too short refused. Stratum samples as fast as it can, and clients rely on that
            // without knowing: finsy's ngsdn gives milliseconds where nanoseconds are meant.
            let rhythm = Rhythm::Sample {
                asked: Duration::from_nanos(subscription.sample_interval),
                redundant: !subscription.suppress_redundant,
            };
            vec![(all_of(pattern), rhythm)]
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
            vec![(selection, Rhythm::OnChange)]
        }
        SubscriptionMode::TargetDefined => {
            let told = Selection::new(pattern.clone(), |node| node.on_change);
            let sampled = Selection::new(pattern, |node| !node.on_change);
            let sample = Rhythm::Sample {
                asked: INTERVAL_TARGET,
                redundant: true,
            };
            let mut parts = vec![(told, Rhythm::OnChange), (sampled, sample)];
            parts.retain(|(selection, _)| !selection.is_empty());
            parts
        }
    };
    Ok((parts, beat))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::parse;
    use crate::tests::{bench, Bench, Told, WAIT};

    /// A stream's answers, up to the sync: how many leaves.
    async fn begin(
        bench: &Bench,
        budget: &Arc<Budget>,
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
            budget: budget.clone(),
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
        let (bench, budget) = (bench(Told::default()), Arc::default());
        let config = device::PortConfig {
            queues: 500,
            ..device::PortConfig::default()
        };
        let grow = move |device: &mut device::Device, now| device.set_port(now, 1, config);
        bench.viewer.handle().call(grow).await.unwrap().unwrap();
        let queues = "/qos/interfaces/interface[interface-id=a]/output/queues";
        let (leaves, first) = begin(&bench, &budget, queues, 10).await.unwrap();
        assert_eq!(leaves % 500, 0);
        assert!(leaves * 100 > 500_000, "{leaves}");
        let error = begin(&bench, &budget, queues, 10).await.unwrap_err();
        assert_eq!(error.code(), tonic::Code::ResourceExhausted);
        let text = format!("{} leaves a second are asked for; all", leaves * 100);
        assert!(error.message().starts_with(&text), "{error}");
        // Slower it goes, and who asks for the shortest interval gets one that fits.
        let slower = begin(&bench, &budget, queues, 1_000).await.unwrap();
        let fastest = begin(&bench, &budget, queues, 0).await.unwrap();
        drop((first, slower, fastest));
        let again = async {
            while begin(&bench, &budget, queues, 10).await.is_err() {
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
            let plan = Plan::from_list(list, &Arc::default()).unwrap();
            assert_eq!(plan.encoding, sent);
        }
    }
}
