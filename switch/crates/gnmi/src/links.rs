// SPDX-License-Identifier: Apache-2.0
//! The interfaces' link states: read, set, and watched, by name.

use netio::link_watch::LinkWatch;
use std::io;
use std::sync::Arc;
use tokio::io::unix::AsyncFd;
use tokio::io::Interest;
use tokio::sync::watch;

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

    fn set_up(&self, interface: &str, up: bool) -> io::Result<()> {
        netio::set_link_up(interface, up)
    }
}

/// Merges the device's word that a port changed and the kernel's that an interface did; needs a Tokio runtime.
///
/// # Errors
/// The system's error when the kernel cannot be listened to.
pub fn watch_changes(
    mut ports: watch::Receiver<u64>,
    merged: Arc<watch::Sender<u64>>,
) -> io::Result<()> {
    let links = LinkWatch::open()?;
    // SAFETY: `LinkWatch` owns its descriptor and names the same one as long as it lives.
    let links = unsafe { AsyncFd::register_with_interest(links, Interest::READABLE) }
        .map_err(io::Error::from)?;
    tokio::spawn(async move {
        loop {
            tokio::select! {
                changed = ports.changed() => if changed.is_err() { return },
                ready = links.readable() => match ready {
                    Ok(mut ready) => {
                        links.get_ref().drain();
                        ready.clear_ready();
                    }
                    Err(error) => {
                        tracing::warn!("changes of interfaces are not heard any more: {error}");
                        return;
                    }
                },
            }
            merged.send_modify(|count| *count += 1);
        }
    });
    Ok(())
}
