// SPDX-License-Identifier: Apache-2.0
//! gNMI 0.10 server over a device handle: ports, queues and counters under OpenConfig's paths (module `leaf`).
//!
//! | module | idea |
//! |---|---|
//! | `leaf` | the leaves that there are, one row each: path, getter, setter |
//! | `path` | the tree that the rows are, with the steps of each path; gNMI paths: patterns with wildcards, matched against the schema; the sentences for those that do not match |
//! | `value` | one value in each encoding; trees of JSON made and taken apart |
//! | `view` | pictures of the ports, read by short calls of the device, shared by those who ask at the same time |
//! | `links` | the interfaces' link states: read, set, watched |
//! | `select` | the leaves of a picture that a pattern names: one walk for the three calls |
//! | `get`, `set`, `subscribe` | the three calls |
//!
//! Here: the gRPC service `gnmi.gNMI` over the calls, and who may do what.

mod get;
mod leaf;
pub mod links;
mod path;
mod select;
mod set;
mod subscribe;
#[cfg(test)]
mod tests;
mod value;
mod view;

use std::io;
use std::sync::Arc;

use device::DeviceHandle;
use p4rt::proto::gnmi::g_nmi_server::{GNmi, GNmiServer};
use p4rt::proto::gnmi::{
    CapabilityRequest, CapabilityResponse, GetRequest, GetResponse, ModelData, SetRequest,
    SetResponse, SubscribeRequest, SubscribeResponse,
};
use p4rt::{short, Answers};
use tokio::sync::{mpsc, watch, Mutex, Semaphore};
use tokio_stream::wrappers::ReceiverStream;
use tonic::service::Routes;
use tonic::{Request, Response, Status, Streaming};

use crate::links::watch_changes;
use crate::path::MODELS;
use crate::subscribe::{Budgets, Subscriber, QUEUE};
use crate::value::ENCODINGS;
use crate::view::Viewer;

pub use links::{KernelLinks, LinkStatus, Links};
pub use view::Interface;

/// The version of gNMI that is served.
pub const VERSION: &str = "0.10.0";
/// Most subscribers at a time.
const SUBSCRIBERS_MAX: usize = 1_024;
/// Answers to Get that are made at a time; others wait for their turn.
const GETS: usize = 2;

/// The service.
pub struct Gnmi {
    viewer: Arc<Viewer>,
    /// Sets are applied one after another.
    sets: Arc<Mutex<()>>,
    changes: watch::Receiver<u64>,
    _changes_in: Arc<watch::Sender<u64>>,
    places: Arc<Semaphore>,
    gets: Semaphore,
    answers: Answers,
    budgets: Arc<Budgets>,
}

impl Gnmi {
    /// Over these ports; `changes` is told when one of them changed ([`p4rt::Server::port_changes`]). The kernel's
    /// word on interfaces is listened to as well; needs a Tokio runtime.
    ///
    /// # Errors
    /// The system's error when the kernel cannot be listened to.
    pub fn new(
        handle: DeviceHandle,
        links: Arc<dyn Links>,
        interfaces: Vec<Interface>,
        changes: watch::Receiver<u64>,
    ) -> io::Result<Gnmi> {
        let changes_in = Arc::new(watch::Sender::new(0));
        watch_changes(changes, changes_in.clone())?;
        Ok(Gnmi {
            viewer: Arc::new(Viewer::new(handle, links, interfaces)),
            sets: Arc::default(),
            changes: changes_in.subscribe(),
            _changes_in: changes_in,
            places: Arc::new(Semaphore::new(SUBSCRIBERS_MAX)),
            gets: Semaphore::new(GETS),
            answers: Answers::default(),
            budgets: Arc::default(),
        })
    }

    /// For [`p4rt::Server::routes`].
    pub fn into_routes(self) -> Routes {
        Routes::new(GNmiServer::new(self))
    }
}

#[tonic::async_trait]
impl GNmi for Gnmi {
    type SubscribeStream = ReceiverStream<Result<SubscribeResponse, Status>>;

    async fn capabilities(
        &self,
        _request: Request<CapabilityRequest>,
    ) -> Result<Response<CapabilityResponse>, Status> {
        let model = |(name, organization, version): (&str, &str, &str)| ModelData {
            name: name.to_owned(),
            organization: organization.to_owned(),
            version: version.to_owned(),
        };
        Ok(Response::new(CapabilityResponse {
            supported_models: MODELS.map(model).into(),
            supported_encodings: ENCODINGS.map(i32::from).into(),
            g_nmi_version: VERSION.to_owned(),
            extension: Vec::new(),
        }))
    }

    async fn get(&self, request: Request<GetRequest>) -> Result<Response<GetResponse>, Status> {
        let turn = self.gets.acquire().await;
        let turn = turn.map_err(|e| Status::internal(e.to_string()))?;
        let answer = get::get(&self.viewer, request.into_inner())
            .await
            .map_err(short)?;
        drop(turn);
        self.answers.keep(answer)
    }

    async fn set(&self, request: Request<SetRequest>) -> Result<Response<SetResponse>, Status> {
        set::set(&self.sets, &self.viewer, request.into_inner())
            .await
            .map(Response::new)
            .map_err(short)
    }

    async fn subscribe(
        &self,
        request: Request<Streaming<SubscribeRequest>>,
    ) -> Result<Response<Self::SubscribeStream>, Status> {
        let place = self.places.clone().try_acquire_owned().map_err(|_| {
            Status::resource_exhausted(format!(
                "{SUBSCRIBERS_MAX} clients are subscribed already, and no more are served"
            ))
        })?;
        let (out, stream) = mpsc::channel(QUEUE);
        let subscriber = Subscriber {
            viewer: self.viewer.clone(),
            changes: self.changes.clone(),
            budgets: self.budgets.clone(),
            out,
        };
        let incoming = request.into_inner();
        tokio::spawn(async move {
            subscriber.serve(Box::pin(incoming)).await;
            drop(place);
        });
        Ok(Response::new(ReceiverStream::new(stream)))
    }
}
