// SPDX-License-Identifier: Apache-2.0
//! The control socket: requests come in on its own threads and are answered by the loop, between two frames.

use netio::own_socket::{self, refusal, Removal};
use netio::poll::{Interest, Poller};
use netio::wake::WakeFd;
use serde_json::Value;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::mpsc::{channel, sync_channel, Receiver, SyncSender};
use std::sync::Arc;

/// Longest request, bytes.
const LINE_MAX: u64 = 1 << 16;

/// A request, and where its answer goes.
type Call = (String, SyncSender<Value>);

/// The loop's end of the socket.
pub struct Control {
    calls: Receiver<Call>,
    wake: Arc<WakeFd>,
    _removal: Removal,
}

impl Control {
    /// Binds the socket as [`own_socket::bind`] does and serves it; requests that `intercept` does not answer make `token` ready.
    ///
    /// # Errors
    /// The system's error; AddrInUse when another process listens there.
    pub fn bind(
        path: &Path,
        token: u64,
        poller: &Poller,
        intercept: impl Fn(&str) -> Option<Value> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let socket = own_socket::bind(path)?;
        let wake = Arc::new(WakeFd::new()?);
        poller.add(wake.as_fd(), token, Interest::Read)?;
        let (sender, calls) = channel::<Call>();
        let waker = wake.clone();
        let removal = socket.serve(LINE_MAX, move |line| {
            if let Some(answer) = intercept(line) {
                return answer;
            }
            let (reply, answer) = sync_channel(1);
            let sent = sender.send((line.to_owned(), reply));
            waker.wake();
            let answer = sent.ok().and_then(|()| answer.recv().ok());
            answer.unwrap_or_else(|| refusal("the wire has stopped"))
        })?;
        Ok(Self {
            calls,
            wake,
            _removal: removal,
        })
    }

    /// Answers the requests that wait; `answer` turns a request line into its answer.
    pub fn answer_all(&mut self, mut answer: impl FnMut(&str) -> Value) {
        self.wake.clear();
        while let Ok((line, reply)) = self.calls.try_recv() {
            // A client that has gone does not want the answer.
            let _ = reply.send(answer(&line));
        }
    }
}
