// SPDX-License-Identifier: Apache-2.0
//! What the switch did, in a few lines of log at its end.

use device::{Device, DropReason};

/// Logs packets, drops by reason, and ports.
pub fn log(device: &Device) {
    let stats = device.stats();
    let accounts = device.accounts();
    tracing::info!(
        received = accounts.received,
        copied = accounts.copied,
        transmitted = accounts.transmitted,
        dropped = accounts.dropped,
        waiting = accounts.waiting,
        on_line = accounts.on_line,
        "packets"
    );
    for &reason in DropReason::ALL {
        let packets = stats.dropped(reason);
        if packets > 0 {
            tracing::info!(reason = reason.name(), packets, "dropped");
        }
    }
    let missed = device.missed_events();
    if missed.digests > 0 {
        tracing::warn!(digests = missed.digests, "the control plane was too slow");
    }
    for port in device.ports() {
        if let Some(s) = device.port_stats(port) {
            if s.rx_lost > 0 {
                tracing::warn!(port, frames = s.rx_lost, "frames lost at reception");
            }
            tracing::debug!(port, ?s, "port");
        }
    }
}
