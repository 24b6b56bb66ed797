// SPDX-License-Identifier: Apache-2.0
//! The interfaces' link states: read, set, and watched, by name.

use netio::interface::LinkWatch;
use netio::Ethernet;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::io::Interest;
use tokio::sync::watch;

/// How often interfaces are looked at while the kernel cannot be listened to.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// An interface's link state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkStatus {
    /// It shall be up (IFF_UP).
    pub admin_up: bool,
    /// Frames can pass: it is up, and has a carrier (IFF_RUNNING).
    pub oper_up: bool,
}

/// The interfaces of a switch.
pub trait Links: Send + Sync + 'static {
    /// Down in both ways when the interface is gone.
    fn status(&self, interface: &str) -> LinkStatus;

    /// Nothing known when the interface is gone.
    fn ethernet(&self, interface: &str) -> Ethernet;

    /// Takes an interface up or down.
    ///
    /// # Errors
    /// The system's error.
    fn set_up(&self, interface: &str, up: bool) -> io::Result<()>;
}

/// Those of the kernel, in the network namespace of this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct KernelLinks;

impl Links for KernelLinks {
    fn status(&self, interface: &str) -> LinkStatus {
        match netio::link_flags(interface) {
            Ok(flags) => LinkStatus {
                admin_up: flags.up,
                oper_up: flags.up && flags.running,
            },
            Err(_) => LinkStatus::default(),
        }
    }

    fn ethernet(&self, interface: &str) -> Ethernet {
        netio::ethernet(interface)
    }

    fn set_up(&self, interface: &str, up: bool) -> io::Result<()> {
        netio::set_link_up(interface, up)
    }
}

/// Where changes of interfaces are heard.
trait Listening: AsRawFd + Send + Sync + 'static {
    /// Takes what waits.
    ///
    /// # Errors
    /// The system's error: nothing will be heard here any more.
    fn drain(&self) -> io::Result<()>;
}

impl Listening for LinkWatch {
    fn drain(&self) -> io::Result<()> {
        LinkWatch::drain(self)
    }
}

/// Merges the device's word that a port changed and the kernel's that an interface did; needs a Tokio runtime.
///
/// # Errors
/// The system's error when the kernel cannot be listened to.
pub fn watch_changes(
    ports: watch::Receiver<u64>,
    merged: Arc<watch::Sender<u64>>,
) -> io::Result<()> {
    let watch = Watch {
        ports,
        merged,
        look_again: LOOK_AGAIN,
    };
    let links = register(LinkWatch::open()?)?;
    tokio::spawn(watch.run(links, LinkWatch::open));
    Ok(())
}

fn register<L: Listening>(links: L) -> io::Result<AsyncFd<L>> {
    // SAFETY: what is `Listening` owns its descriptor and names the same one as long as it lives.
    unsafe { AsyncFd::register_with_interest(links, Interest::READABLE) }.map_err(io::Error::from)
}

struct Watch {
    ports: watch::Receiver<u64>,
    merged: Arc<watch::Sender<u64>>,
    look_again: Duration,
}

impl Watch {
    /// Until the device is gone. While the kernel cannot be listened to, every now and then counts as a change, and it
    /// is tried again.
    async fn run<L: Listening>(
        mut self,
        links: AsyncFd<L>,
        open: impl Fn() -> io::Result<L> + Send,
    ) {
        let mut links = Some(links);
        loop {
            let hear = async {
                let Some(links) = &links else {
                    tokio::time::sleep(self.look_again).await;
                    return Ok(open().and_then(register).ok());
                };
                links.readable().await?.clear_ready();
                links.get_ref().drain().map(|()| None)
            };
            let heard: io::Result<Option<AsyncFd<L>>> = tokio::select! {
                changed = self.ports.changed() => match changed {
                    Ok(()) => Ok(None),
                    Err(_) => return,
                },
                heard = hear => heard,
            };
            match heard {
                Ok(None) => {}
                Ok(opened) => {
                    tracing::info!("changes of interfaces are heard again");
                    links = opened;
                }
                Err(error) => {
                    tracing::warn!(
                        "changes of interfaces are not heard any more: {error}; they are looked for every {} ms",
                        self.look_again.as_millis()
                    );
                    links = None;
                }
            }
            self.merged.send_modify(|count| *count += 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{ErrorKind, Read, Write};
    use std::os::fd::RawFd;
    use std::os::unix::net::UnixStream;
    use std::sync::Mutex;

    const WAIT: Duration = Duration::from_secs(20);

    /// Fails when the other end is closed.
    struct Wire(UnixStream);

    impl AsRawFd for Wire {
        fn as_raw_fd(&self) -> RawFd {
            self.0.as_raw_fd()
        }
    }

    impl Listening for Wire {
        fn drain(&self) -> io::Result<()> {
            match (&self.0).read(&mut [0; 64]) {
                Ok(0) => Err(io::Error::from(ErrorKind::ConnectionReset)),
                Ok(_) => Ok(()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
                Err(error) => Err(error),
            }
        }
    }

    fn wire() -> (Wire, UnixStream) {
        let (near, far) = UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        (Wire(near), far)
    }

    async fn hear(merged: &mut watch::Receiver<u64>) {
        let heard = tokio::time::timeout(WAIT, merged.changed()).await;
        heard.expect("nothing was reported").unwrap();
    }

    #[tokio::test]
    async fn what_breaks_is_looked_for_and_opened_again() {
        let (ports_in, ports) = watch::channel(0);
        let merged = Arc::new(watch::Sender::new(0));
        let mut told = merged.subscribe();
        let watch = Watch {
            ports,
            merged,
            look_again: Duration::from_millis(1),
        };
        let (first, far) = wire();
        let opened: Arc<Mutex<Option<Wire>>> = Arc::default();
        let next = opened.clone();
        let open = move || next.lock().unwrap().take().ok_or(ErrorKind::Other.into());
        let running = tokio::spawn(watch.run(register(first).unwrap(), open));
        (&far).write_all(b"x").unwrap();
        hear(&mut told).await;
        drop(far);
        // Nothing is heard: it looks again and again.
        for _ in 0..5 {
            hear(&mut told).await;
        }
        ports_in.send_modify(|count| *count += 1);
        hear(&mut told).await;
        let (second, far) = wire();
        *opened.lock().unwrap() = Some(second);
        while opened.lock().unwrap().is_some() {
            hear(&mut told).await;
        }
        // It does not look any more, once what it told is taken, but hears.
        let quiet = Duration::from_millis(200);
        while tokio::time::timeout(quiet, told.changed()).await.is_ok() {}
        (&far).write_all(b"x").unwrap();
        hear(&mut told).await;
        drop(ports_in);
        tokio::time::timeout(WAIT, running).await.unwrap().unwrap();
    }
}
