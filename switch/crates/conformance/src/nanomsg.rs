// SPDX-License-Identifier: Apache-2.0
//! BMv2's packet port (`--packet-in`): frames over a nanomsg PAIR socket on a Unix socket.
//!
//! Scalability Protocols over IPC: both ends send `00 'S' 'P' 00`, the protocol and two zeros; then each message is the
//! byte 1, its length in 8 bytes and the message. BMv2's messages are a type, a port and a length, 4 bytes each in the
//! machine's order, and the frame.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::time::Duration;

use anyhow::{bail, ensure, Context, Result};

use crate::bed::Sent;

const GREETING: [u8; 8] = [0, b'S', b'P', 0, 0, 0x10, 0, 0];
const PACKET_IN: u32 = 3;
const PACKET_OUT: u32 = 4;
/// No message of BMv2's is longer.
const LONGEST: u64 = 1 << 20;
/// For its greeting, and until it takes a message.
const PATIENCE: Option<Duration> = Some(Duration::from_secs(5));

/// A message with a frame.
fn message(port: u32, frame: &[u8]) -> Vec<u8> {
    let length = frame.len() as u32;
    let mut out = vec![1];
    out.extend((12 + u64::from(length)).to_be_bytes());
    for word in [PACKET_IN, port, length] {
        out.extend(word.to_ne_bytes());
    }
    out.extend(frame);
    out
}

/// Reads the next frame; messages about ports are nothing that was asked for.
///
/// # Errors
/// When there is no further one, or it is no message.
fn read_frame(input: &mut impl Read) -> Result<Sent> {
    loop {
        let mut header = [0; 9];
        let read = input.read_exact(&mut header);
        read.context("BMv2 closed the packet port")?;
        let length = u64::from_be_bytes(header[1..].try_into().expect("8 bytes"));
        ensure!(
            header[0] == 1 && length <= LONGEST,
            "no nanomsg message: {header:02x?}"
        );
        let mut body = vec![0; length as usize];
        input.read_exact(&mut body).context("packet port")?;
        if let Some((head, frame)) = body.split_first_chunk::<12>() {
            let word =
                |i: usize| u32::from_ne_bytes([head[i], head[i + 1], head[i + 2], head[i + 3]]);
            if word(0) == PACKET_OUT {
                return Ok((word(4), frame.to_vec()));
            }
        }
    }
}

/// The connection.
pub struct PacketPort {
    stream: UnixStream,
    /// What a thread of its own reads, and its error at last.
    frames: Receiver<Result<Sent>>,
}

impl PacketPort {
    /// # Errors
    /// When nobody listens at `path`, or no nanomsg PAIR.
    pub fn connect(path: &Path) -> Result<PacketPort> {
        let greeted = || -> io::Result<_> {
            let mut stream = UnixStream::connect(path)?;
            stream.set_read_timeout(PATIENCE)?;
            stream.set_write_timeout(PATIENCE)?;
            stream.write_all(&GREETING)?;
            let mut greeting = [0; 8];
            stream.read_exact(&mut greeting)?;
            stream.set_read_timeout(None)?;
            Ok((stream.try_clone()?, stream, greeting))
        };
        let place = || path.display().to_string();
        let (mut input, stream, greeting) = greeted().with_context(place)?;
        ensure!(
            greeting == GREETING,
            "{}: no nanomsg PAIR: {greeting:02x?}",
            place()
        );
        let (sender, frames) = channel();
        std::thread::spawn(move || loop {
            let frame = read_frame(&mut input);
            let last = frame.is_err();
            if sender.send(frame).is_err() || last {
                return;
            }
        });
        Ok(PacketPort { stream, frames })
    }

    /// # Errors
    /// When the other end is gone.
    pub fn send(&mut self, port: u32, frame: &[u8]) -> Result<()> {
        let sent = self.stream.write_all(&message(port, frame));
        sent.context("packet port")
    }

    /// The next frame and its port; None when none comes within `wait`.
    ///
    /// # Errors
    /// When the other end is gone.
    pub fn receive(&mut self, wait: Duration) -> Result<Option<Sent>> {
        match self.frames.recv_timeout(wait) {
            Ok(frame) => frame.map(Some),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => bail!("BMv2 closed the packet port"),
        }
    }
}

impl Drop for PacketPort {
    /// Ends the thread that reads.
    fn drop(&mut self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    /// What BMv2 sends for a frame.
    fn out(port: u32, frame: &[u8]) -> Vec<u8> {
        let mut message = message(port, frame);
        message[9..13].copy_from_slice(&PACKET_OUT.to_ne_bytes());
        message
    }

    #[test]
    fn frames_are_read_and_other_messages_are_passed_over() {
        let mut other = message(0, &[]);
        other[9..13].copy_from_slice(&6u32.to_ne_bytes());
        let all = [out(5, &[1, 2, 3]), other, out(511, &[])].concat();
        let mut input = all.as_slice();
        assert_eq!(read_frame(&mut input).unwrap(), (5, vec![1, 2, 3]));
        assert_eq!(read_frame(&mut input).unwrap(), (511, vec![]));
        let error = |mut bytes: &[u8]| read_frame(&mut bytes).unwrap_err().to_string();
        assert_eq!(error(&[]), "BMv2 closed the packet port");
        assert!(error(&[2; 9]).starts_with("no nanomsg message"));
        assert!(error(&[1, 255, 0, 0, 0, 0, 0, 0, 0]).starts_with("no nanomsg message"));
        assert_eq!(error(&out(5, &[1, 2])[..20]), "packet port");
    }

    #[test]
    fn frames_go_to_and_fro() {
        let path = std::env::temp_dir().join(format!("nanomsg-{}.ipc", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).unwrap();
        let peer = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut got = vec![0; 8 + 9 + 12 + 2];
            stream.write_all(&GREETING).unwrap();
            stream.read_exact(&mut got).unwrap();
            stream.write_all(&out(7, &got[29..])).unwrap();
            got
        });
        let mut port = PacketPort::connect(&path).unwrap();
        port.send(3, &[0xaa, 0xbb]).unwrap();
        let frame = port.receive(Duration::from_secs(10)).unwrap();
        assert_eq!(frame, Some((7, vec![0xaa, 0xbb])));
        let got = peer.join().unwrap();
        assert_eq!(got[8..17], [1, 0, 0, 0, 0, 0, 0, 0, 14]);
        assert!(port.receive(Duration::from_secs(10)).is_err());
        std::fs::remove_file(&path).unwrap();
    }
}
