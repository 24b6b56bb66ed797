// SPDX-License-Identifier: Apache-2.0
//! What the switch did, in a few lines of log at its end.

use device::{Device, DropReason};
use netio::socket::RxCounters;

/// Logs packets, drops by reason, and ports; `lost` is what each port lost at reception.
pub fn log(device: &Device, lost: &[(u32, RxCounters)]) {
    for (port, lost) in lost
        .iter()
        .filter(|(_, lost)| *lost != RxCounters::default())
    {
        tracing::warn!(port, ?lost, "frames lost at reception");
    }
    let stats = device.stats();
    tracing::info!(
        received = stats.received,
        transmitted = stats.transmitted,
        copied = stats.copied,
        dropped = stats.dropped_total(),
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
            tracing::debug!(port, ?s, "port");
        }
    }
}
