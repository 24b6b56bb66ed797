// SPDX-License-Identifier: Apache-2.0
//! The gRPC server: the calls of the service handed to their modules, and the listening socket.

use std::future::Future;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use device::{DeviceHandle, Event};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::service::Routes;
use tonic::{Request, Response, Status, Streaming};

use crate::budget::Answers;
use crate::connections::{self, read_only, Access, Connections, Limits, Tls};
use crate::error::{short, MetadataRoom};
use crate::gate::Gate;
use crate::proto::own::switch_server::SwitchServer;
use crate::proto::p4rt::p4_runtime_server::{P4Runtime, P4RuntimeServer};
use crate::proto::p4rt::*;
use crate::shared::{Clock, Shared};
use crate::stream::{self, Outgoing};
use crate::{events, pipeline, proto, read, trace, write};

/// The version of P4Runtime that is served.
pub const API_VERSION: &str = "1.5.0";
/// Largest message sent or taken; `gate` has what each call takes.
const MAX_MESSAGE_BYTES: usize = 64 << 20;
/// Bytes that a client may send ahead of what the server has looked at: of one call, and of all.
const STREAM_WINDOW: u32 = 512 << 10;
const CONNECTION_WINDOW: u32 = 1 << 20;
/// Calls of one connection at a time.
const STREAMS_A_CONNECTION: u32 = 256;

/// How long another process may still have our address: one that was killed has it until its memory is gone.
const ENDING: Duration = Duration::from_secs(2);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(5);

/// What a server needs to know.
#[derive(Debug, Clone, Copy)]
pub struct ServerOptions {
    pub addr: SocketAddr,
    /// The device id that clients must name; 0, which BMv2's clients mostly use, is one too.
    pub device_id: u64,
    /// The port of packet-in and packet-out.
    pub cpu_port: Option<u32>,
    /// Memory that a program may take: its code, and its tables, counters, meters and registers when they are full.
    pub program_bytes: u64,
}

/// Listens, with SO_REUSEADDR (tokio sets it); waits for a process that is ending there, as one does that was killed.
async fn bind(addr: SocketAddr) -> std::io::Result<TcpListener> {
    let deadline = Instant::now() + ENDING;
    loop {
        match TcpListener::bind(addr).await {
            Err(e) if e.kind() == ErrorKind::AddrInUse && Instant::now() < deadline => {
                tokio::time::sleep(LOOK).await;
            }
            bound => return bound,
        }
    }
}

/// A server that listens, but does not answer yet.
pub struct Server {
    shared: Arc<Shared>,
    listener: TcpListener,
    addr: SocketAddr,
    events: mpsc::Receiver<Vec<Event>>,
    /// Services that are served too, on the same address: gNMI, for one.
    pub routes: Routes,
    /// Some: it speaks TLS, and nothing but TLS.
    pub tls: Option<Tls>,
    pub limits: Limits,
}

impl Server {
    /// Listens on the address; port 0 takes a free one.
    ///
    /// # Errors
    /// A sentence, when the address cannot be had.
    pub async fn bind(
        options: ServerOptions,
        handle: DeviceHandle,
        events: mpsc::Receiver<Vec<Event>>,
    ) -> Result<Self, String> {
        let listen = |e| format!("cannot listen on {}: {e}", options.addr);
        let listener = bind(options.addr).await.map_err(listen)?;
        let addr = listener.local_addr().map_err(listen)?;
        Ok(Self {
            shared: Arc::new(Shared::new(&options, handle, Clock::wall())),
            listener,
            addr,
            events,
            routes: Routes::default(),
            tls: None,
            limits: Limits::default(),
        })
    }

    /// Changes whenever the options or the link state of any port did: a wake-up, the reader looks for itself.
    pub fn port_changes(&self) -> watch::Receiver<u64> {
        self.shared.port_changes.subscribe()
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.addr
    }

    /// Loads a program before any client comes: BMv2 JSON, and P4Info in text format.
    ///
    /// # Errors
    /// A sentence with what is wrong in which of the two.
    pub async fn preload(&self, json: Vec<u8>, p4info: &str) -> Result<(), String> {
        let info = proto::p4info_from_text(p4info).map_err(|e| format!("P4Info: {e}"))?;
        let config = ForwardingPipelineConfig {
            p4info: Some(info),
            p4_device_config: json.into(),
            cookie: None,
        };
        let done = pipeline::preload(&self.shared, config).await;
        done.map_err(|e| e.message().to_owned())
    }

    /// Serves until `shutdown` is ready. Streams that are open then are cut.
    ///
    /// # Errors
    /// A sentence, when the transport fails.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), String> {
        let failed = |e| format!("the P4Runtime server failed: {e}");
        self.shared.reads.set_unread_bytes(self.limits.unread_bytes);
        let service = P4RuntimeServer::new(Service {
            shared: self.shared.clone(),
            answers: Answers::default(),
            read_limit: self.limits.read,
        })
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
        let own = SwitchServer::new(trace::Service::new(self.shared.clone()));
        let (accepted, incoming) = mpsc::channel(connections::QUEUE);
        let accept = Connections::new(self.limits).accept(self.listener, accepted);
        let mut builder = tonic::transport::Server::builder();
        if let Some(tls) = &self.tls {
            builder = builder.tls_config(tls.config()).map_err(failed)?;
        }
        let server = builder
            .layer(Gate::new(self.shared.clone()))
            .http2_keepalive_interval(Some(self.limits.keepalive))
            .http2_keepalive_timeout(Some(self.limits.keepalive))
            .initial_stream_window_size(Some(STREAM_WINDOW))
            .initial_connection_window_size(Some(CONNECTION_WINDOW))
            .max_concurrent_streams(Some(STREAMS_A_CONNECTION))
            .add_routes(self.routes)
            .add_service(service)
            .add_service(own)
            .serve_with_incoming(ReceiverStream::new(incoming));
        let accept = tokio::spawn(accept);
        let events = tokio::spawn(events::serve(self.shared, self.events));
        let done = tokio::select! {
            done = server => done.map_err(failed),
            () = shutdown => Ok(()),
        };
        events.abort();
        accept.abort();
        done
    }
}

struct Service {
    shared: Arc<Shared>,
    answers: Answers,
    read_limit: Duration,
}

/// What the client takes of metadata, as `gate` found it.
fn metadata_room<T>(request: &Request<T>) -> MetadataRoom {
    let room = request.extensions().get().copied();
    room.unwrap_or(MetadataRoom::from_client(None))
}

/// # Errors
/// PERMISSION_DENIED for a client whose certificate says that it only observes.
fn may_write<T>(request: &Request<T>) -> Result<(), Status> {
    match Access::from_request(request) {
        Access::Full => Ok(()),
        Access::ReadOnly => Err(read_only()),
    }
}

#[tonic::async_trait]
impl P4Runtime for Service {
    type ReadStream = ReceiverStream<Result<ReadResponse, Status>>;
    type StreamChannelStream = Outgoing;

    async fn write(
        &self,
        request: Request<WriteRequest>,
    ) -> Result<Response<WriteResponse>, Status> {
        may_write(&request)?;
        let room = metadata_room(&request);
        write::write(self.shared.clone(), request.into_inner(), room)
            .await
            .map(Response::new)
            .map_err(short)
    }

    async fn read(
        &self,
        request: Request<ReadRequest>,
    ) -> Result<Response<Self::ReadStream>, Status> {
        let room = metadata_room(&request);
        let request = request.into_inner();
        self.shared.check_device(request.device_id)?;
        read::check(&request)?;
        self.shared.state.read().await.current()?;
        let place = self.shared.reads.place().await?;
        let (out, stream) = mpsc::channel(read::QUEUE);
        let reader = read::Reader::new(self.shared.clone(), &out, room);
        tokio::spawn(read::read(reader, request, out, place, self.read_limit));
        Ok(Response::new(ReceiverStream::new(stream)))
    }

    async fn set_forwarding_pipeline_config(
        &self,
        request: Request<SetForwardingPipelineConfigRequest>,
    ) -> Result<Response<SetForwardingPipelineConfigResponse>, Status> {
        may_write(&request)?;
        pipeline::set(self.shared.clone(), request.into_inner())
            .await
            .map(Response::new)
            .map_err(short)
    }

    async fn get_forwarding_pipeline_config(
        &self,
        request: Request<GetForwardingPipelineConfigRequest>,
    ) -> Result<Response<GetForwardingPipelineConfigResponse>, Status> {
        let config = pipeline::get(&self.shared, request.into_inner()).await?;
        self.answers.keep(config)
    }

    async fn stream_channel(
        &self,
        request: Request<Streaming<StreamMessageRequest>>,
    ) -> Result<Response<Self::StreamChannelStream>, Status> {
        let (id, outgoing) = self.shared.clients().open()?;
        let access = Access::from_request(&request);
        tokio::spawn(stream::serve(
            self.shared.clone(),
            id,
            access,
            request.into_inner(),
        ));
        Ok(Response::new(outgoing))
    }

    async fn capabilities(
        &self,
        request: Request<CapabilitiesRequest>,
    ) -> Result<Response<CapabilitiesResponse>, Status> {
        let device_id = request.into_inner().device_id;
        if device_id != 0 {
            self.shared.check_device(device_id)?;
        }
        let p4runtime_api_version = API_VERSION.to_owned();
        Ok(Response::new(CapabilitiesResponse {
            p4runtime_api_version,
            experimental: None,
        }))
    }
}
