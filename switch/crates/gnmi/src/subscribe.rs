// SPDX-License-Identifier: Apache-2.0
//! Subscribe: ONCE, POLL and STREAM with SAMPLE, ON_CHANGE and TARGET_DEFINED (gNMI 0.10 §3.5).
//!
//! A subscriber that reads slowly gets fewer samples and the latest values, never a queue that grows: the next
//! picture is taken when there is room for it again. One that does not read at all is cut off.

use crate::get::{self, check_encoding, check_models, leaf_update, target_of};
use crate::leaf::{key_at, Place};
use crate::path::{path_of, Pattern};
use crate::schema::nodes;
use crate::select::{Found, Selection};
use crate::value::Value;
use crate::view::{View, Viewer};
use p4rt::proto::gnmi::subscribe_request::Request as Asked;
use p4rt::proto::gnmi::subscribe_response::Response;
use p4rt::proto::gnmi::subscription_list::Mode;
use p4rt::proto::gnmi::{
    Encoding, Notification, Path, SubscribeRequest, SubscribeResponse, Subscription,
    SubscriptionList, SubscriptionMode, Update,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{timeout, Instant};
use tokio_stream::{Stream, StreamExt};
use tonic::Status;

/// Messages that may wait for a subscriber.
pub const QUEUE: usize = 8;
/// A subscriber that takes no message for so long is cut off.
const DEAF: Duration = Duration::from_secs(30);
/// A stream whose first message does not come is cut off.
const FIRST: Duration = Duration::from_secs(30);
/// Shortest interval of samples, and the one of `sample_interval` 0.
const INTERVAL_MIN: Duration = Duration::from_millis(10);
/// Interval of what TARGET_DEFINED samples.
const INTERVAL_TARGET: Duration = Duration::from_secs(10);
/// Most subscriptions in one list.
const SUBSCRIPTIONS_MAX: usize = 1_000;
/// Leaves in one notification: with all that may wait for a subscriber some 10 MB.
const LEAVES_MAX: usize = 500;

type Item = Result<SubscribeResponse, Status>;

/// One client.
pub struct Subscriber {
    pub viewer: Arc<Viewer>,
    pub changes: watch::Receiver<u64>,
    pub out: mpsc::Sender<Item>,
}

/// When what is sent.
#[derive(Debug, Clone, Copy)]
enum Rhythm {
    OnChange,
    Sample { every: Duration, redundant: bool },
}

struct Watched {
    selection: Selection,
    rhythm: Rhythm,
    next: Option<Instant>,
    heartbeat: Option<(Duration, Instant)>,
    /// What the client has.
    sent: HashMap<(usize, Place), Value>,
}

/// What the client asked for.
struct Plan {
    mode: Mode,
    encoding: Encoding,
    prefix: Option<Path>,
    updates_only: bool,
    watched: Vec<Watched>,
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
    pub async fn serve(
        mut self,
        mut incoming: impl Stream<Item = Result<SubscribeRequest, Status>> + Unpin,
    ) {
        let out = self.out.clone();
        if let Err(End(Some(status))) = self.run(&mut incoming).await {
            // No room means that the client does not read: the end of the stream tells it.
            let _ = out.try_send(Err(status));
        }
    }

    async fn run(
        &mut self,
        incoming: &mut (impl Stream<Item = Result<SubscribeRequest, Status>> + Unpin),
    ) -> Result<(), End> {
        let first = timeout(FIRST, incoming.next()).await.map_err(|_| {
            Status::deadline_exceeded("no subscription came in the stream's first 30 s")
        })?;
        let Some(first) = first else { return Ok(()) };
        let list = match first?.request {
            Some(Asked::Subscribe(list)) => list,
            _ => {
                return Err(Status::invalid_argument(
                    "the first message of a stream must be `subscribe`",
                )
                .into())
            }
        };
        let mut plan = Plan::of(list)?;
        let initial = !plan.updates_only;
        self.send_all(&mut plan, initial).await?;
        match plan.mode {
            Mode::Once => Ok(()),
            Mode::Poll => self.poll(&mut plan, incoming).await,
            Mode::Stream => self.stream(&mut plan, incoming).await,
        }
    }

    async fn poll(
        &mut self,
        plan: &mut Plan,
        incoming: &mut (impl Stream<Item = Result<SubscribeRequest, Status>> + Unpin),
    ) -> Result<(), End> {
        while let Some(message) = incoming.next().await {
            match message?.request {
                Some(Asked::Poll(_)) => self.send_all(plan, true).await?,
                _ => {
                    return Err(Status::invalid_argument(
                        "only `poll` may follow a subscription in mode POLL",
                    )
                    .into())
                }
            }
        }
        Ok(())
    }

    async fn stream(
        &mut self,
        plan: &mut Plan,
        incoming: &mut (impl Stream<Item = Result<SubscribeRequest, Status>> + Unpin),
    ) -> Result<(), End> {
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
                    Some(Ok(_)) => return Err(Status::invalid_argument(
                        "nothing may follow a subscription in mode STREAM",
                    ).into()),
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
            let queues = plan
                .watched
                .iter()
                .any(|w| due(w) && w.selection.needs_queues());
            if !plan.watched.iter().any(due) {
                continue;
            }
            let view = self.viewer.view(queues).await?;
            for watched in plan.watched.iter_mut().filter(|w| due(w)) {
                let (found, gone) = watched.news(&view, now);
                let (encoding, prefix) = (plan.encoding, plan.prefix.clone());
                self.send(&view, found, gone, encoding, prefix).await?;
            }
        }
    }

    /// Everything as it is now, and that this is all.
    async fn send_all(&mut self, plan: &mut Plan, send: bool) -> Result<(), End> {
        let queues = plan.watched.iter().any(|w| w.selection.needs_queues());
        // What changes from here on is told later.
        self.changes.mark_unchanged();
        let view = self.viewer.view(queues).await?;
        let now = Instant::now();
        let mut leaves = 0;
        for watched in &mut plan.watched {
            let found = watched.all(&view, now);
            leaves += found.len();
            if leaves > get::LEAVES_MAX {
                return Err(Status::resource_exhausted(format!(
                    "the subscriptions name more than {} leaves; ask for fewer",
                    get::LEAVES_MAX
                ))
                .into());
            }
            if send {
                self.send(&view, found, Vec::new(), plan.encoding, plan.prefix.clone())
                    .await?;
            }
        }
        self.put(Response::SyncResponse(true)).await
    }

    async fn send(
        &self,
        view: &View,
        found: Vec<Found>,
        gone: Vec<Path>,
        encoding: Encoding,
        prefix: Option<Path>,
    ) -> Result<(), End> {
        let mut gone = Some(gone).filter(|gone| !gone.is_empty());
        let mut rest = found.as_slice();
        while !rest.is_empty() || gone.is_some() {
            let (some, others) = rest.split_at(rest.len().min(LEAVES_MAX));
            rest = others;
            let update: Vec<Update> = some
                .iter()
                .map(|leaf| leaf_update(leaf, view, encoding))
                .collect();
            self.put(Response::Update(Notification {
                timestamp: view.timestamp_ns,
                prefix: prefix.clone(),
                update,
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

    /// All leaves, for the beginning and for polls; they count as sent.
    fn all(&mut self, view: &View, now: Instant) -> Vec<Found> {
        let found = self.selection.read(view);
        self.remember(&found);
        self.turn(now);
        found
    }

    /// What is to be sent now: the leaves, and the paths of those that have no value any more.
    fn news(&mut self, view: &View, now: Instant) -> (Vec<Found>, Vec<Path>) {
        let found = self.selection.read(view);
        let beats = self.heartbeat.is_some_and(|(_, at)| at <= now);
        let all = match self.rhythm {
            Rhythm::Sample { redundant, .. } => redundant || beats,
            Rhythm::OnChange => beats,
        };
        self.turn(now);
        let there: std::collections::HashSet<_> = found.iter().map(|f| (f.node, f.place)).collect();
        let gone = self.sent.keys().filter(|at| !there.contains(at));
        let gone = gone.map(|(index, place)| {
            let node = &nodes()[*index];
            path_of(node, node.steps.len(), &|key| key_at(view, *place, key))
        });
        let gone: Vec<Path> = gone.collect();
        let news = match all {
            true => found.clone(),
            false => {
                let other = |f: &&Found| self.sent.get(&(f.node, f.place)) != Some(&f.value);
                found.iter().filter(other).cloned().collect()
            }
        };
        self.remember(&found);
        (news, gone)
    }

    fn remember(&mut self, found: &[Found]) {
        self.sent.clear();
        let values = found.iter().map(|f| ((f.node, f.place), f.value.clone()));
        self.sent.extend(values);
    }

    /// Sets the next instants; those that were missed are not made up for.
    fn turn(&mut self, now: Instant) {
        let after = |at: Instant, every: Duration| {
            let next = at + every;
            if next > now {
                next
            } else {
                now + every
            }
        };
        if let Rhythm::Sample { every, .. } = self.rhythm {
            self.next = Some(match self.next {
                Some(at) if at <= now => after(at, every),
                Some(at) => at,
                None => now + every,
            });
        }
        if let Some((every, at)) = &mut self.heartbeat {
            if *at <= now {
                *at = after(*at, *every);
            }
        }
    }
}

impl Plan {
    fn of(list: SubscriptionList) -> Result<Plan, Status> {
        let mode = Mode::try_from(list.mode).map_err(|_| {
            Status::invalid_argument(format!(
                "mode {} is unknown; STREAM, ONCE and POLL are allowed",
                list.mode
            ))
        })?;
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
            match mode {
                Mode::Stream => plan_stream(subscription, pattern, &mut watched)?,
                Mode::Once | Mode::Poll => watched.push(Watched::new(
                    Selection::new(pattern, |_| true),
                    Rhythm::OnChange,
                    0,
                )),
            }
        }
        Ok(Plan {
            mode,
            encoding,
            prefix: target_of(list.prefix.as_ref()),
            updates_only: list.updates_only,
            watched,
        })
    }
}

impl Watched {
    fn new(selection: Selection, rhythm: Rhythm, heartbeat_ns: u64) -> Watched {
        let heartbeat = (heartbeat_ns > 0).then(|| {
            let every = Duration::from_nanos(heartbeat_ns);
            (every, Instant::now() + every)
        });
        Watched {
            selection,
            rhythm,
            next: None,
            heartbeat,
            sent: HashMap::new(),
        }
    }
}

fn plan_stream(
    subscription: &Subscription,
    pattern: Pattern,
    watched: &mut Vec<Watched>,
) -> Result<(), Status> {
    let mode = SubscriptionMode::try_from(subscription.mode).map_err(|_| {
        Status::invalid_argument(format!(
            "{}: mode {} is unknown; TARGET_DEFINED, ON_CHANGE and SAMPLE are allowed",
            pattern.text(),
            subscription.mode
        ))
    })?;
    let heartbeat = subscription.heartbeat_interval;
    for (what, value) in [
        ("sample_interval", subscription.sample_interval),
        ("heartbeat_interval", heartbeat),
    ] {
        if value > 0 && Duration::from_nanos(value) < INTERVAL_MIN {
            return Err(Status::invalid_argument(format!(
                "{}: a {what} of {value} ns; at least {} ns is allowed",
                pattern.text(),
                INTERVAL_MIN.as_nanos()
            )));
        }
    }
    match mode {
        SubscriptionMode::Sample => {
            let rhythm = Rhythm::Sample {
                every: match subscription.sample_interval {
                    0 => INTERVAL_MIN,
                    ns => Duration::from_nanos(ns),
                },
                redundant: !subscription.suppress_redundant,
            };
            let selection = Selection::new(pattern, |_| true);
            watched.push(Watched::new(selection, rhythm, heartbeat));
        }
        SubscriptionMode::OnChange => {
            let selection = Selection::new(pattern, |_| true);
            if let Some(node) = selection.nodes().find(|node| !node.on_change) {
                let names: Vec<&str> = node.steps.iter().map(|step| step.name).collect();
                return Err(Status::invalid_argument(format!(
                    "{}: /{} changes with every packet and is not told ON_CHANGE; use SAMPLE, or TARGET_DEFINED",
                    selection.pattern().text(),
                    names.join("/")
                )));
            }
            watched.push(Watched::new(selection, Rhythm::OnChange, heartbeat));
        }
        SubscriptionMode::TargetDefined => {
            let told = Selection::new(pattern.clone(), |node| node.on_change);
            let sampled = Selection::new(pattern, |node| !node.on_change);
            let rhythm = Rhythm::Sample {
                every: INTERVAL_TARGET,
                redundant: true,
            };
            for (selection, rhythm) in [(told, Rhythm::OnChange), (sampled, rhythm)] {
                if !selection.is_empty() {
                    watched.push(Watched::new(selection, rhythm, heartbeat));
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::of_text;

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
                    path: Some(of_text("/interfaces/interface/state/oper-status")),
                    ..Subscription::default()
                }],
                ..SubscriptionList::default()
            };
            assert_eq!(Plan::of(list).unwrap().encoding, sent);
        }
    }
}
