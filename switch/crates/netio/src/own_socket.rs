// SPDX-License-Identifier: Apache-2.0
//! A unix-domain socket that only its owner may connect to, with one JSON object a line each way; removed at the end.

use rustix::fs::Mode;
use rustix::net::shutdown;
use rustix::process::umask;
use serde::Serialize;
use serde_json::{json, Value};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Clients that are served at a time; then the one that is idle for longest makes room.
const CLIENTS_MAX: usize = 64;
/// Longest request, bytes: a series of a million numbers fits.
const LINE_MAX: u64 = 4 << 20;
/// What is read of a longer one, so that who sends it gets to read the refusal.
const REST_MAX: u64 = 1 << 30;
/// Without a byte for so long, in either direction, a connection ends.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// How long another process may still have the socket: one that was killed has it until its memory is gone.
const ENDING: Duration = Duration::from_secs(2);
/// Between two looks at a process that is ending.
const LOOK: Duration = Duration::from_millis(5);

/// Removes the socket when it is dropped, and ends the thread that serves it.
#[derive(Debug)]
pub struct Removal {
    path: PathBuf,
    listener: Arc<UnixListener>,
}

impl Drop for Removal {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
        let _ = shutdown(&*self.listener, rustix::net::Shutdown::Read);
    }
}

/// Waits until the process that listens there has closed our connection, which one that lives does not do.
fn wait_for_end(mut other: &UnixStream, deadline: Instant) -> io::Result<()> {
    let left = deadline.saturating_duration_since(Instant::now());
    other.set_read_timeout(Some(left.max(LOOK)))?;
    let closed = match other.read(&mut [0]) {
        Ok(read) => read == 0,
        Err(e) => e.kind() == ErrorKind::ConnectionReset,
    };
    match closed && !left.is_zero() {
        true => thread::sleep(LOOK), // its own end of the socket goes next
        false => return Err(io::Error::from(ErrorKind::AddrInUse)),
    }
    Ok(())
}

/// The bound socket, before it is served.
pub struct OwnSocket(Removal);

/// Binds the socket with mode 0600; call it before other threads run, as the process's file mode mask is changed for a
/// moment. A socket that a dead process left is replaced; for one that is ending it waits.
///
/// # Errors
/// The system's error; AddrInUse when another process listens there, AlreadyExists when something else is there.
pub fn bind(path: &Path) -> io::Result<OwnSocket> {
    let deadline = Instant::now() + ENDING;
    loop {
        match UnixStream::connect(path) {
            Ok(other) => wait_for_end(&other, deadline)?,
            Err(e) if e.kind() == ErrorKind::ConnectionRefused => {
                if !std::fs::symlink_metadata(path)?.file_type().is_socket() {
                    let words = "it is there already and is no socket";
                    return Err(io::Error::new(ErrorKind::AlreadyExists, words));
                }
                break std::fs::remove_file(path)?;
            }
            Err(_) => break,
        }
    }
    let mask = umask(Mode::from_raw_mode(0o177));
    let listener = UnixListener::bind(path);
    umask(mask);
    Ok(OwnSocket(Removal {
        path: path.to_owned(),
        listener: Arc::new(listener?),
    }))
}

/// The answer to a request: what it asked for, an object, or why it is refused.
pub fn reply<T: Serialize>(answer: Result<T, String>) -> Value {
    let fields = answer.and_then(|fields| serde_json::to_value(fields).map_err(|e| e.to_string()));
    match fields {
        Ok(mut fields) => {
            if let Some(fields) = fields.as_object_mut() {
                fields.shift_insert(0, "ok".to_owned(), json!(true));
            }
            fields
        }
        Err(error) => json!({"ok": false, "error": error}),
    }
}

fn refusal(error: &str) -> Value {
    reply(Err::<(), _>(error.to_owned()))
}

impl OwnSocket {
    /// Serves on threads of its own until the value returned is dropped, with which the socket is removed: what `answer`
    /// makes of a line is sent back. A connection that is idle ends.
    ///
    /// # Errors
    /// The system's error when a thread cannot be started.
    pub fn serve(
        self,
        answer: impl Fn(&str) -> Value + Send + Sync + 'static,
    ) -> io::Result<Removal> {
        self.serve_within(IDLE_MAX, LINE_MAX, answer)
    }

    fn serve_within(
        self,
        idle_max: Duration,
        line_max: u64,
        answer: impl Fn(&str) -> Value + Send + Sync + 'static,
    ) -> io::Result<Removal> {
        let (listener, answer) = (self.0.listener.clone(), Arc::new(answer));
        let serve = move || {
            let clients = Clients::default();
            loop {
                let stream = match listener.accept() {
                    Ok((stream, _)) => stream,
                    Err(e) if e.kind() == ErrorKind::InvalidInput => return, // its end
                    // Too many files are open: those who come wait.
                    Err(_) => {
                        thread::sleep(LOOK);
                        continue;
                    }
                };
                let limits = stream
                    .set_read_timeout(Some(idle_max))
                    .and_then(|()| stream.set_write_timeout(Some(idle_max)));
                if limits.is_err() {
                    continue;
                }
                let Some(client) = clients.add(stream) else {
                    continue;
                };
                let answer = answer.clone();
                // A client that cannot be served (no thread, or it went away) is closed.
                let _ = std::thread::Builder::new()
                    .name("control-client".to_owned())
                    .spawn(move || {
                        let _ = client.serve(line_max, &*answer);
                    });
            }
        };
        let thread = std::thread::Builder::new().name("control".to_owned());
        thread.spawn(serve)?;
        Ok(self.0)
    }
}

/// The connections that are open.
#[derive(Clone, Default)]
struct Clients(Arc<Mutex<Vec<Open>>>);

struct Open {
    stream: Arc<UnixStream>,
    /// Since its last answer was made; None while a request of it is carried out.
    idle_since: Option<Instant>,
}

/// One of them; removed when it is dropped.
struct Client {
    stream: Arc<UnixStream>,
    clients: Clients,
}

impl Clients {
    fn lock(&self) -> MutexGuard<'_, Vec<Open>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When all places are taken, the one that is idle for longest is closed; None, with a refusal sent, when none is idle.
    fn add(&self, stream: UnixStream) -> Option<Client> {
        let mut open = self.lock();
        if open.len() >= CLIENTS_MAX {
            let idle = open.iter().enumerate();
            let idle = idle.filter_map(|(at, one)| Some((one.idle_since?, at)));
            let Some((_, longest)) = idle.min() else {
                drop(open);
                let _ = send(
                    &stream,
                    &refusal(&format!("more than {CLIENTS_MAX} clients")),
                );
                return None;
            };
            // Its thread sees the end, and ends.
            let _ = open.swap_remove(longest).stream.shutdown(Shutdown::Both);
        }
        let stream = Arc::new(stream);
        open.push(Open {
            stream: stream.clone(),
            idle_since: Some(Instant::now()),
        });
        Some(Client {
            stream,
            clients: self.clone(),
        })
    }
}

impl Client {
    fn serve(&self, line_max: u64, answer: &dyn Fn(&str) -> Value) -> io::Result<()> {
        let mut input = BufReader::new(&*self.stream);
        loop {
            let mut line = Vec::new();
            (&mut input).take(line_max).read_until(b'\n', &mut line)?;
            if line.last() != Some(&b'\n') {
                return match line.is_empty() {
                    true => Ok(()),
                    false => {
                        (&mut input).take(REST_MAX).skip_until(b'\n')?;
                        let text = format!("a request is one line of at most {line_max} bytes");
                        send(&self.stream, &refusal(&text))
                    }
                };
            }
            if line.trim_ascii().is_empty() {
                continue;
            }
            if !self.set_idle_since(None) {
                return Ok(()); // It made room: nobody hears the answer, so nothing is carried out.
            }
            let reply = match std::str::from_utf8(&line) {
                Ok(line) => answer(line),
                Err(_) => refusal("a request is UTF-8 text"),
            };
            self.set_idle_since(Some(Instant::now()));
            send(&self.stream, &reply)?;
        }
    }

    /// Whether the connection is still open.
    fn set_idle_since(&self, since: Option<Instant>) -> bool {
        let mut open = self.clients.lock();
        let mine = open
            .iter_mut()
            .find(|one| Arc::ptr_eq(&one.stream, &self.stream));
        mine.map(|mine| mine.idle_since = since).is_some()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.clients
            .lock()
            .retain(|one| !Arc::ptr_eq(&one.stream, &self.stream));
    }
}

fn send(mut stream: &UnixStream, reply: &Value) -> io::Result<()> {
    stream.write_all(format!("{reply}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn it_is_its_owners_and_goes_with_it() {
        let path = std::env::temp_dir().join(format!("fairlane-own-{}", std::process::id()));
        let socket = bind(&path).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(
            bind(&path).err().map(|e| e.kind()),
            Some(ErrorKind::AddrInUse)
        );
        drop(socket);
        assert!(!path.exists());
        // What a dead process left; but not what was never a socket.
        drop(UnixListener::bind(&path).unwrap());
        drop(bind(&path).unwrap());
        assert!(!path.exists());
        std::fs::write(&path, "mine").unwrap();
        let error = bind(&path).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn its_thread_ends_with_it() {
        let path = std::env::temp_dir().join(format!("fairlane-ends-{}", std::process::id()));
        let used = Arc::new(Value::Null);
        let answer = used.clone();
        let removal = bind(&path).unwrap().serve(move |_| Value::clone(&answer));
        drop(removal);
        let deadline = Instant::now() + Duration::from_secs(30);
        while Arc::strong_count(&used) > 1 {
            assert!(Instant::now() < deadline);
            thread::sleep(LOOK);
        }
    }

    #[test]
    fn every_line_is_answered_by_one() {
        let path = std::env::temp_dir().join(format!("fairlane-lines-{}", std::process::id()));
        let removal = bind(&path)
            .unwrap()
            .serve_within(IDLE_MAX, 16, |line| json!(line.len()));
        let mut client = UnixStream::connect(&path).unwrap();
        client.write_all(b"abc\n\n \n\xff\n").unwrap();
        client.write_all(&[b'0'; 1 << 20]).unwrap();
        client.write_all(b"\n").unwrap();
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "4");
        assert_eq!(
            lines[1],
            r#"{"ok":false,"error":"a request is UTF-8 text"}"#
        );
        assert!(lines[2].contains("at most 16 bytes") && lines.len() == 3);
        drop(removal);
    }

    #[test]
    fn clients_that_are_idle_lock_nobody_out() {
        let path = std::env::temp_dir().join(format!("fairlane-full-{}", std::process::id()));
        let removal = bind(&path).unwrap().serve(|line| json!(line.trim()));
        let mut idle: Vec<UnixStream> = (0..CLIENTS_MAX)
            .map(|_| UnixStream::connect(&path).unwrap())
            .collect();
        for number in 0..3 {
            let mut client = BufReader::new(UnixStream::connect(&path).unwrap());
            client.get_ref().write_all(b"one more\n").unwrap();
            let mut text = String::new();
            client.read_line(&mut text).unwrap();
            assert_eq!(text, "\"one more\"\n");
            let mut rest = String::new();
            assert_eq!(
                idle[number].read_to_string(&mut rest).unwrap(),
                0,
                "the oldest made room"
            );
            idle.push(client.into_inner());
        }
        drop(removal);
    }

    #[test]
    fn a_request_that_is_carried_out_makes_no_room() {
        let path = std::env::temp_dir().join(format!("fairlane-busy-{}", std::process::id()));
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let (begun, begins) = std::sync::mpsc::channel::<()>();
        let wait = Mutex::new(wait);
        let answer = move |line: &str| {
            let _ = begun.send(());
            let _ = wait.lock().unwrap().recv();
            json!(line.trim())
        };
        let removal = bind(&path).unwrap().serve(answer);
        let busy: Vec<UnixStream> = (0..CLIENTS_MAX)
            .map(|_| {
                let mut client = UnixStream::connect(&path).unwrap();
                client.write_all(b"hi\n").unwrap();
                begins.recv().unwrap();
                client
            })
            .collect();
        let mut text = String::new();
        let mut more = BufReader::new(UnixStream::connect(&path).unwrap());
        more.read_line(&mut text).unwrap();
        assert!(text.contains("more than 64 clients"), "{text}");
        drop(go);
        for client in busy {
            let mut text = String::new();
            BufReader::new(client).read_line(&mut text).unwrap();
            assert_eq!(text, "\"hi\"\n");
        }
        drop(removal);
    }

    #[test]
    fn a_connection_that_is_idle_ends_also_within_a_line() {
        let path = std::env::temp_dir().join(format!("fairlane-idle-{}", std::process::id()));
        let idle_max = Duration::from_millis(10);
        let removal = bind(&path)
            .unwrap()
            .serve_within(idle_max, 16, |line| json!(line));
        for begun in [&b""[..], b"half a li"] {
            let mut client = UnixStream::connect(&path).unwrap();
            client.write_all(begun).unwrap();
            let mut rest = String::new();
            assert_eq!(client.read_to_string(&mut rest).unwrap_or(0), 0);
        }
        drop(removal);
    }
}
