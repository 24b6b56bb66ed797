// SPDX-License-Identifier: Apache-2.0
// Where a packet goes: IPv4 and IPv6 by longest prefix, everything else by the table l2.
#ifndef FAIRLANE_ROUTE_P4
#define FAIRLANE_ROUTE_P4

#include "../headers.p4"

control Route(inout headers_t hdr,
              inout metadata_t meta,
              inout standard_metadata_t standard_metadata) {
    /// Sends the packet on: the frame's destination was us, so it becomes the source.
    action forward(bit<48> dst_mac, port_t port) {
        hdr.ethernet.src = hdr.ethernet.dst;
        hdr.ethernet.dst = dst_mac;
        meta.port = port;
    }

    /// Sends a frame that is not IP on, unchanged.
    action l2_forward(port_t port) {
        meta.port = port;
    }

    /// Sends the packet as it came to the controller; reason is the entry's own number.
    action to_cpu(bit<7> reason) {
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = standard_metadata.ingress_port;
        hdr.packet_in.reason = reason;
        meta.port = CPU_PORT;
    }

    action drop() {
        meta.reason = REASON_ROUTE_DROP;
    }

    action no_route() {
        meta.reason = REASON_NO_ROUTE;
    }

    action non_ip() {
        meta.reason = REASON_NON_IP;
    }

    // RFC 1624 eq. 3 with m = TTL ++ protocol, m' = m - 0x100: ~m + m' is 0xFEFF.
    @hidden action count_down_ttl() {
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        bit<32> sum = (bit<32>)(~hdr.ipv4.checksum) + 0xFEFF;
        hdr.ipv4.checksum = ~(sum[15:0] + (bit<16>)sum[31:16]);
    }

    @hidden action count_down_hop_limit() {
        hdr.ipv6.hop_limit = hdr.ipv6.hop_limit - 1;
    }

    table ipv4_lpm {
        key = { hdr.ipv4.dst : lpm; }
        actions = { forward; to_cpu; drop; no_route; }
        default_action = no_route();
        size = ROUTES_V4;
    }

    table ipv6_lpm {
        key = { hdr.ipv6.dst : lpm; }
        actions = { forward; to_cpu; drop; no_route; }
        default_action = no_route();
        size = ROUTES_V6;
    }

    table l2 {
        key = {
            standard_metadata.ingress_port : ternary;
            hdr.ethernet.dst : ternary;
            hdr.ethernet.ether_type : ternary;
        }
        actions = { l2_forward; to_cpu; drop; non_ip; }
        default_action = non_ip();
        size = L2_ENTRIES;
    }

    apply {
        if (hdr.ipv4.isValid()) {
            switch (ipv4_lpm.apply().action_run) {
                forward: { count_down_ttl(); }
            }
        } else if (hdr.ipv6.isValid()) {
            switch (ipv6_lpm.apply().action_run) {
                forward: { count_down_hop_limit(); }
            }
        } else {
            l2.apply();
        }
    }
}

#endif
