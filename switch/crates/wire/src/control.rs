// SPDX-License-Identifier: Apache-2.0
//! The control socket: a unix-domain stream that only its owner may use, one JSON object a line each way.

use crate::request;
use netio::own_socket::{self, Removal};
use netio::poll::{Interest, Poller, Ready};
use serde_json::Value;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

/// Longest request, bytes.
const LINE_MAX: usize = 1 << 16;
/// Answers that a client may leave unread, bytes.
const UNREAD_MAX: usize = 1 << 22;
const CLIENTS_MAX: usize = 64;

struct Client {
    stream: UnixStream,
    input: Vec<u8>,
    output: Vec<u8>,
    /// Read no more; close when the output is written.
    closing: bool,
    watched: Interest,
}

/// The socket and its clients.
pub struct Control {
    listener: UnixListener,
    _removal: Removal,
    first_token: u64,
    clients: Vec<Option<Client>>,
}

impl Control {
    /// Binds the socket as [`own_socket::bind`] does. Uses `first_token` and the 64 after it.
    ///
    /// # Errors
    /// The system's error; AddrInUse when another process listens there.
    pub fn bind(path: &Path, first_token: u64, poller: &Poller) -> io::Result<Self> {
        let (listener, removal) = own_socket::bind(path)?;
        listener.set_nonblocking(true)?;
        poller.add(listener.as_fd(), first_token, Interest::Read)?;
        Ok(Self {
            listener,
            _removal: removal,
            first_token,
            clients: (0..CLIENTS_MAX).map(|_| None).collect(),
        })
    }

    /// Whether an event is one of ours.
    pub fn owns(&self, token: u64) -> bool {
        (self.first_token..=self.first_token + CLIENTS_MAX as u64).contains(&token)
    }

    /// Does what an event asks for; `answer` turns a request line into its answer.
    pub fn ready(&mut self, event: Ready, poller: &Poller, answer: impl FnMut(&str) -> Value) {
        if event.token == self.first_token {
            self.accept(poller);
            return;
        }
        let slot = (event.token - self.first_token - 1) as usize;
        let Some(client) = &mut self.clients[slot] else {
            return;
        };
        let alive = client.serve(event, answer).is_ok();
        if !alive || (client.closing && client.output.is_empty()) {
            // Closing the descriptor also ends the watch.
            self.clients[slot] = None;
            return;
        }
        let wanted = if client.output.is_empty() {
            Interest::Read
        } else {
            Interest::ReadWrite
        };
        if wanted != client.watched {
            client.watched = wanted;
            if poller
                .modify(client.stream.as_fd(), event.token, wanted)
                .is_err()
            {
                self.clients[slot] = None;
            }
        }
    }

    fn accept(&mut self, poller: &Poller) {
        while let Ok((mut stream, _)) = self.listener.accept() {
            let free = self.clients.iter().position(Option::is_none);
            let Some(slot) = free else {
                let text = format!("more than {CLIENTS_MAX} clients");
                let _ = writeln!(stream, "{}", request::refusal(&text));
                continue;
            };
            let token = self.first_token + 1 + slot as u64;
            if stream.set_nonblocking(true).is_ok()
                && poller.add(stream.as_fd(), token, Interest::Read).is_ok()
            {
                self.clients[slot] = Some(Client {
                    stream,
                    input: Vec::with_capacity(1024),
                    output: Vec::new(),
                    closing: false,
                    watched: Interest::Read,
                });
            }
        }
    }
}

impl Client {
    /// Reads what is there, answers whole lines, writes what goes.
    fn serve(&mut self, event: Ready, mut answer: impl FnMut(&str) -> Value) -> io::Result<()> {
        if !self.closing && (event.readable || event.error) {
            let mut buffer = [0; 4096];
            loop {
                match self.stream.read(&mut buffer) {
                    Ok(0) => {
                        self.closing = true;
                        break;
                    }
                    Ok(count) => self.input.extend_from_slice(&buffer[..count]),
                    Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                    Err(e) if e.kind() == ErrorKind::Interrupted => {}
                    Err(e) => return Err(e),
                }
                if self.input.len() > LINE_MAX {
                    break;
                }
            }
            self.answer_lines(&mut answer);
        }
        self.flush()
    }

    fn answer_lines(&mut self, answer: &mut impl FnMut(&str) -> Value) {
        let mut start = 0;
        while let Some(len) = self.input[start..].iter().position(|b| *b == b'\n') {
            let line = &self.input[start..start + len];
            start += len + 1;
            if line.trim_ascii().is_empty() {
                continue;
            }
            let reply = match std::str::from_utf8(line) {
                Ok(text) => answer(text),
                Err(_) => request::refusal("a request is UTF-8 text"),
            };
            self.say(&reply);
        }
        self.input.drain(..start);
        if self.input.len() > LINE_MAX {
            self.say(&request::refusal(&format!(
                "a request has at most {LINE_MAX} bytes"
            )));
            self.input.clear();
            self.closing = true;
        }
        if self.output.len() > UNREAD_MAX {
            self.closing = true;
        }
    }

    fn say(&mut self, reply: &Value) {
        self.output.extend_from_slice(reply.to_string().as_bytes());
        self.output.push(b'\n');
    }

    fn flush(&mut self) -> io::Result<()> {
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(count) => drop(self.output.drain(..count)),
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}
