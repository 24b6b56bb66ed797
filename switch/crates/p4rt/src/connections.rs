// SPDX-License-Identifier: Apache-2.0
//! The TCP connections of the server: how many there may be, and which are closed because nobody calls through them.
//!
//! gRPC clients connect again when they have something to say, so a connection without a call costs its client nothing
//! when it goes. Where there are too many, the one that was idle for longest makes room.
//!
//! TLS of the server: its certificate, whose clients it takes, and what a client's certificate lets the client do.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;
use std::{fmt, io};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tonic::codegen::http::Extensions;
use tonic::transport::server::{Connected, TlsConnectInfo};
use tonic::transport::{Certificate, Identity, Server, ServerTlsConfig};
use tonic::{Request, Status};
use x509_cert::der::oid::db::rfc4519::ORGANIZATIONAL_UNIT_NAME;
use x509_cert::der::Decode;

/// How often is looked for connections that are to be closed.
const LOOK: Duration = Duration::from_secs(1);
/// A connection is closed for another one only when it was idle for so long.
const SETTLED: Duration = Duration::from_millis(100);
/// Between two warnings of a full server.
const WARN_AGAIN: Duration = Duration::from_secs(10);
/// Pause after an error of `accept`, such as too many open files.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);
/// Accepted connections that wait for the server.
pub const QUEUE: usize = 16;

/// What the server's clients together may take of it, where that can be chosen.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Most connections at a time.
    pub connections: usize,
    /// Without a call it stays open for so long.
    pub idle: Duration,
    /// A client that was silent for so long is asked whether it is there, and is taken for gone after as long again.
    pub keepalive: Duration,
    /// How long one read may take.
    pub read: Duration,
    /// Bytes of a read that are kept for a client that does not take them: some 200,000 entries.
    pub unread_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 512,
            idle: Duration::from_secs(300),
            keepalive: Duration::from_secs(20),
            read: Duration::from_secs(120),
            unread_bytes: 16 << 20,
        }
    }
}

/// All connections of a server, as who accepts them knows them.
pub struct Connections {
    limits: Limits,
    /// Each is there as long as its socket.
    open: Vec<Weak<State>>,
    /// When a warning was logged last.
    warned: Option<Instant>,
}

struct State {
    used: Mutex<Used>,
    /// Bytes of headers that the client takes, as it said at the beginning; 0 where it did not.
    headers: AtomicU32,
}

struct Used {
    calls: usize,
    /// When the last call ended, or the connection began.
    since: Instant,
    close: Option<oneshot::Sender<()>>,
}

/// One connection, for who counts its calls.
#[derive(Clone)]
pub struct Connection(Weak<State>);

/// A call that is under way; it ends when this is dropped.
pub struct Call(Connection);

impl Connections {
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            open: Vec::new(),
            warned: None,
        }
    }

    /// Accepts connections until the receiver is dropped.
    pub async fn accept(mut self, listener: TcpListener, to: mpsc::Sender<io::Result<Stream>>) {
        let mut look = tokio::time::interval(LOOK);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = look.tick() => {
                    self.close_idle(Instant::now());
                    continue;
                }
                () = to.closed() => return,
            };
            let now = Instant::now();
            let stream = match accepted {
                Ok((tcp, _)) => self.admit(tcp, now),
                Err(error) => {
                    self.warn(now, &format!("a connection cannot be accepted: {error}"));
                    self.make_room(now);
                    tokio::time::sleep(ACCEPT_AGAIN).await;
                    None
                }
            };
            if let Some(stream) = stream {
                if to.send(Ok(stream)).await.is_err() {
                    return;
                }
            }
        }
    }

    /// None when there is no room: the connection is closed.
    fn admit(&mut self, tcp: TcpStream, now: Instant) -> Option<Stream> {
        let max = self.limits.connections;
        self.open.retain(|state| state.strong_count() > 0);
        if self.open.len() >= max {
            let has_room = self.make_room(now);
            self.warn(
                now,
                &format!("there are {max} connections: idle ones are closed for new ones"),
            );
            if !has_room {
                return None;
            }
        }
        // Else a read takes 40 ms more.
        if let Err(error) = tcp.set_nodelay(true) {
            tracing::debug!(%error, "a connection without TCP_NODELAY");
        }
        let (close, closed) = oneshot::channel();
        let used = Used {
            calls: 0,
            since: now,
            close: Some(close),
        };
        let state = Arc::new(State {
            used: Mutex::new(used),
            headers: AtomicU32::new(0),
        });
        self.open.push(Arc::downgrade(&state));
        Some(Stream {
            tcp,
            closed,
            greeting: Some(Greeting::default()),
            state,
        })
    }

    /// Those that have carried no call for so long, with when their last one ended.
    fn idle(&self, now: Instant, long: Duration) -> impl Iterator<Item = (Instant, usize)> + '_ {
        let idle = move |(at, state): (usize, &Weak<State>)| {
            let state = state.upgrade()?;
            let used = state.used();
            let is_idle = used.calls == 0 && now - used.since >= long;
            is_idle.then_some((used.since, at))
        };
        self.open.iter().enumerate().filter_map(idle)
    }

    /// Closes the connection that was idle for longest; false when all carry calls.
    fn make_room(&mut self, now: Instant) -> bool {
        let longest = self.idle(now, SETTLED).min();
        let closed = longest.map(|(_, at)| close(&self.open.remove(at)));
        closed.is_some()
    }

    fn close_idle(&self, now: Instant) {
        let idle = self.idle(now, self.limits.idle);
        idle.for_each(|(_, at)| close(&self.open[at]));
    }

    /// A line of log, but not one for each connection of a flood.
    fn warn(&mut self, now: Instant, text: &str) {
        if self.warned.is_none_or(|at| now - at >= WARN_AGAIN) {
            self.warned = Some(now);
            tracing::warn!("{text}");
        }
    }
}

fn close(state: &Weak<State>) {
    if let Some(close) = state.upgrade().and_then(|state| state.used().close.take()) {
        let _ = close.send(()); // it may be gone already
    }
}

impl State {
    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// Bytes of headers that the client takes, where it said so in a way that we can read (with TLS we cannot).
    pub fn headers(&self) -> Option<u32> {
        let headers = self.0.upgrade()?.headers.load(Ordering::Relaxed);
        Some(headers).filter(|bytes| *bytes > 0)
    }

    /// A call begins.
    pub fn call(&self) -> Call {
        if let Some(state) = self.0.upgrade() {
            state.used().calls += 1;
        }
        Call(self.clone())
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Some(state) = self.0 .0.upgrade() {
            let mut used = state.used();
            used.calls -= 1;
            used.since = Instant::now();
        }
    }
}

/// A socket that ends when its connection is to be closed.
pub struct Stream {
    tcp: TcpStream,
    closed: oneshot::Receiver<()>,
    /// While it may still say what it takes.
    greeting: Option<Greeting>,
    state: Arc<State>,
}

impl Stream {
    fn check_open(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        match Pin::new(&mut self.closed).poll(cx) {
            Poll::Pending => Ok(()),
            Poll::Ready(_) => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "nobody called through this connection",
            )),
        }
    }
}

impl Connected for Stream {
    type ConnectInfo = Connection;

    fn connect_info(&self) -> Connection {
        Connection(Arc::downgrade(&self.state))
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check_open(cx)?;
        let before = buf.filled().len();
        let read = Pin::new(&mut self.tcp).poll_read(cx, buf);
        if let Some(mut greeting) = self.greeting.take() {
            match greeting.more(&buf.filled()[before..]) {
                None => self.greeting = Some(greeting),
                Some(bytes) => self.state.headers.store(bytes, Ordering::Relaxed),
            }
        }
        read
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tcp).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tcp).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }
}

/// The first bytes of an HTTP/2 client: a fixed text, then the frame of its settings (RFC 9113 §3.4, §6.5).
#[derive(Default)]
struct Greeting {
    bytes: Vec<u8>,
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const FRAME_HEADER: usize = 9;
const SETTINGS: u8 = 4;
const MAX_HEADER_LIST_SIZE: [u8; 2] = [0, 6];
/// Longest frame of settings that is looked at.
const SETTINGS_MAX: usize = 512;

impl Greeting {
    /// Some when it is known what the client takes, 0 where it does not say.
    fn more(&mut self, bytes: &[u8]) -> Option<u32> {
        self.bytes.extend_from_slice(bytes);
        let common = self.bytes.len().min(PREFACE.len());
        if self.bytes[..common] != PREFACE[..common] {
            return Some(0);
        }
        let frame = self.bytes.get(PREFACE.len()..)?;
        let (header, rest) = frame.split_at_checked(FRAME_HEADER)?;
        let length = u32::from_be_bytes([0, header[0], header[1], header[2]]) as usize;
        if header[3] != SETTINGS || length > SETTINGS_MAX {
            return Some(0);
        }
        let settings = rest.get(..length)?.chunks_exact(6);
        let sizes = settings.filter(|s| s[..2] == MAX_HEADER_LIST_SIZE);
        let size = sizes
            .map(|s| u32::from_be_bytes([s[2], s[3], s[4], s[5]]))
            .next_back();
        Some(size.unwrap_or(0))
    }
}

/// A client that has not finished its handshake by then is cut off.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// The organizational unit of a client certificate that may only read.
const OBSERVER_UNIT: &[u8] = b"observer";

/// Put into a request's extensions by whoever checks certificates; without one a client may do everything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Access {
    /// Reads and writes.
    #[default]
    Full,
    /// Reads only: a client certificate with the organizational unit `observer`.
    ReadOnly,
}

impl Access {
    /// Of the client that sent this request.
    pub fn from_request<T>(request: &Request<T>) -> Access {
        request.extensions().get().copied().unwrap_or_default()
    }
}

/// What the server shows and whom it takes; all in PEM.
#[derive(Clone)]
pub struct Tls {
    config: ServerTlsConfig,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

impl Tls {
    /// The server's certificate (chain) and its key. With `client_ca`, clients without a certificate that it signed
    /// are refused in the handshake; without, every client is taken.
    ///
    /// # Errors
    /// What is wrong with which of the three: no PEM, a key that is not the certificate's.
    pub fn new(cert: &[u8], key: &[u8], client_ca: Option<&[u8]>) -> Result<Tls, String> {
        needs(cert, "CERTIFICATE", "certificate")?;
        needs(key, "PRIVATE KEY", "key")?;
        let mut config = ServerTlsConfig::new()
            .identity(Identity::from_pem(cert, key))
            .timeout(HANDSHAKE_TIMEOUT);
        if let Some(ca) = client_ca {
            needs(ca, "CERTIFICATE", "client CA")?;
            config = config.client_ca_root(Certificate::from_pem(ca));
        }
        Server::builder()
            .tls_config(config.clone())
            .map_err(|e| format!("certificate and key cannot be used: {}", whole(&e)))?;
        Ok(Tls { config })
    }

    pub(crate) fn config(&self) -> ServerTlsConfig {
        self.config.clone()
    }
}

fn needs(pem: &[u8], kind: &str, what: &str) -> Result<(), String> {
    let text = String::from_utf8_lossy(pem);
    let begins = |line: &str| line.starts_with("-----BEGIN ") && line.contains(kind);
    match text.lines().any(begins) {
        true => Ok(()),
        false => Err(format!("the {what} holds no PEM block of a {kind}")),
    }
}

/// An error with all that caused it.
fn whole(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// What a request's client may do, by the certificate of its connection.
pub(crate) fn access_of(extensions: &Extensions) -> Access {
    let info = extensions.get::<TlsConnectInfo<Connection>>();
    let certs = info.and_then(TlsConnectInfo::peer_certs);
    certs
        .as_ref()
        .and_then(|certs| certs.first())
        .map_or(Access::Full, |cert| access(cert))
}

/// The refusal of a client that only reads.
pub(crate) fn read_only() -> Status {
    Status::permission_denied(
        "Read-only: the client's certificate has the organizational unit observer",
    )
}

/// What the holder of a certificate (DER) may do; one that cannot be read may only read.
fn access(cert: &[u8]) -> Access {
    let Ok(cert) = x509_cert::Certificate::from_der(cert) else {
        return Access::ReadOnly;
    };
    let names = cert.tbs_certificate.subject.0.iter();
    let mut units = names
        .flat_map(|name| name.0.iter())
        .filter(|attribute| attribute.oid == ORGANIZATIONAL_UNIT_NAME);
    match units.any(|unit| unit.value.value() == OBSERVER_UNIT) {
        true => Access::ReadOnly,
        false => Access::Full,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_takes_is_read_however_its_greeting_is_cut() {
        let mut greeting = PREFACE.to_vec();
        greeting.extend([0, 0, 12, 4, 0, 0, 0, 0, 0]);
        greeting.extend([0, 2, 0, 0, 0, 0, 0, 6, 0, 1, 0, 0]);
        greeting.extend([0, 0, 0, 1]); // the next frame
        for step in 1..greeting.len() {
            let mut read = Greeting::default();
            let said = greeting.chunks(step).find_map(|some| read.more(some));
            assert_eq!(said, Some(65_536), "{step}");
        }
        // Without the setting, another frame first, no HTTP/2 at all.
        assert_eq!(
            Greeting::default().more(&[PREFACE, &[0, 0, 0, 4, 0, 0, 0, 0, 0]].concat()),
            Some(0)
        );
        assert_eq!(
            Greeting::default().more(&[PREFACE, &[0, 0, 8, 6, 0, 0, 0, 0, 0]].concat()),
            Some(0)
        );
        assert_eq!(Greeting::default().more(&[22, 3, 1, 2, 0]), Some(0));
        assert_eq!(Greeting::default().more(&PREFACE[..9]), None);
    }
}

#[cfg(test)]
mod tls_tests {
    use super::*;

    #[test]
    fn what_is_no_pem_is_named() {
        let error = Tls::new(b"x", b"", None).unwrap_err();
        assert_eq!(error, "the certificate holds no PEM block of a CERTIFICATE");
        let cert = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let error = Tls::new(cert, cert, None).unwrap_err();
        assert_eq!(error, "the key holds no PEM block of a PRIVATE KEY");
        let key = b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        let error = Tls::new(cert, key, None).unwrap_err();
        assert!(
            error.starts_with("certificate and key cannot be used: "),
            "{error}"
        );
    }

    #[test]
    fn a_certificate_that_cannot_be_read_only_reads() {
        assert_eq!(access(b"\x30\x00"), Access::ReadOnly);
    }
}
