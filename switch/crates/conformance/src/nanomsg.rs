// SPDX-License-Identifier: Apache-2.0
//! BMv2's packet port (`--packet-in`): frames over a nanomsg PAIR socket on a Unix socket.
//!
//! Scalability Protocols over IPC: both ends send `00 'S' 'P' 00`, the protocol and two zeros; then each message is the
//! byte 1, its length in 8 bytes and the message. BMv2's messages are a type, a port and a length, 4 bytes each in the
//! machine's order, and the frame.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

const GREETING: [u8; 8] = [0, b'S', b'P', 0, 0, 0x10, 0, 0];
const PACKET_IN: u32 = 3;
const PACKET_OUT: u32 = 4;
/// No message of BMv2's is longer.
const LONGEST: u64 = 1 << 20;

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

/// What came in.
#[derive(Debug, PartialEq)]
enum Message {
    Frame(u32, Vec<u8>),
    /// About ports: nothing that was asked for.
    Other,
}

/// Takes the first whole message off `waiting`.
///
/// # Errors
/// When it is no message.
fn take(waiting: &mut Vec<u8>) -> Result<Option<Message>, String> {
    let Some(header) = waiting.get(..9) else {
        return Ok(None);
    };
    let length = u64::from_be_bytes(header[1..9].try_into().expect("8 bytes"));
    if header[0] != 1 || length > LONGEST {
        return Err(format!("no nanomsg message: {header:02x?}"));
    }
    let end = 9 + length as usize;
    if waiting.len() < end {
        return Ok(None);
    }
    let body: Vec<u8> = waiting.drain(..end).skip(9).collect();
    let word = |i: usize| {
        body.get(4 * i..4 * i + 4)
            .map(|b| u32::from_ne_bytes(b.try_into().expect("4 bytes")))
    };
    Ok(Some(match (word(0), word(1)) {
        (Some(PACKET_OUT), Some(port)) if body.len() >= 12 => {
            Message::Frame(port, body[12..].to_vec())
        }
        _ => Message::Other,
    }))
}

/// The connection.
pub struct PacketPort {
    stream: UnixStream,
    waiting: Vec<u8>,
}

impl PacketPort {
    /// # Errors
    /// When nobody listens at `path`, or no nanomsg PAIR.
    pub fn connect(path: &Path) -> Result<PacketPort, String> {
        let failed = |e: std::io::Error| format!("{}: {e}", path.display());
        let mut stream = UnixStream::connect(path).map_err(failed)?;
        let timeout = Some(Duration::from_secs(5));
        stream.set_read_timeout(timeout).map_err(failed)?;
        stream.set_write_timeout(timeout).map_err(failed)?;
        stream.write_all(&GREETING).map_err(failed)?;
        let mut greeting = [0; 8];
        stream.read_exact(&mut greeting).map_err(failed)?;
        if greeting != GREETING {
            return Err(format!(
                "{}: no nanomsg PAIR: {greeting:02x?}",
                path.display()
            ));
        }
        Ok(PacketPort {
            stream,
            waiting: Vec::new(),
        })
    }

    /// # Errors
    /// When the other end is gone.
    pub fn send(&mut self, port: u32, frame: &[u8]) -> Result<(), String> {
        let sent = self.stream.write_all(&message(port, frame));
        sent.map_err(|e| format!("packet port: {e}"))
    }

    /// The next frame and its port; None when none comes within `wait`.
    ///
    /// # Errors
    /// When the other end is gone.
    pub fn receive(&mut self, wait: Duration) -> Result<Option<(u32, Vec<u8>)>, String> {
        let end = Instant::now() + wait;
        loop {
            match take(&mut self.waiting)? {
                Some(Message::Frame(port, frame)) => return Ok(Some((port, frame))),
                Some(Message::Other) => continue,
                None => {}
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.stream
                .set_read_timeout(Some(left))
                .map_err(|e| e.to_string())?;
            let mut buffer = [0; 65536];
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err("BMv2 closed the packet port".to_string()),
                Ok(n) => self.waiting.extend(&buffer[..n]),
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(format!("packet port: {e}")),
            }
        }
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
    fn messages_are_taken_whole_whatever_pieces_they_come_in() {
        let mut other = message(0, &[]);
        other[9..13].copy_from_slice(&6u32.to_ne_bytes());
        let all = [out(5, &[1, 2, 3]), other, out(511, &[])].concat();
        let (mut waiting, mut found) = (Vec::new(), Vec::new());
        for byte in all {
            waiting.push(byte);
            found.extend(take(&mut waiting).unwrap());
        }
        let frame = Message::Frame;
        assert_eq!(
            found,
            [frame(5, vec![1, 2, 3]), Message::Other, frame(511, vec![])]
        );
        assert!(take(&mut vec![2; 9]).is_err());
        assert!(take(&mut vec![1, 255, 0, 0, 0, 0, 0, 0, 0]).is_err());
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
