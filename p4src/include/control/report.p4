// SPDX-License-Identifier: Apache-2.0
// Digests to the controller: a T_res sample, a new flow, a port's report. At most one a packet, as BMv2 does.
#ifndef FAIRLANE_REPORT_P4
#define FAIRLANE_REPORT_P4

#include "state.p4"

/// A flow without an entry sent a packet for a port with a limit. IPv4 addresses in the low 32 bits.
struct new_flow_t {
    bit<4>   ip_version;
    bit<128> src;
    bit<128> dst;
    bit<8>   protocol;
    bit<16>  src_port;
    bit<16>  dst_port;
    port_t   egress_port;
    class_t  traffic_class;
    bit<12>  vid;
}

/// One clean sample of T_res (control/t_res.p4); port and class are those of the data packet.
struct t_res_t {
    port_t  egress_port;
    class_t traffic_class;
    bit<32> flow_hash;
    bit<16> frame_bytes;
    bit<32> t_res_us;
}

/// What a port with a limit did since its last report. BW = 8e6 * busy_bytes / busy_us,
/// L_D = busy_bytes / busy_packets (whole frames), N_C = flows.
struct port_report_t {
    port_t  egress_port;
    bit<32> interval_us;
    bit<32> busy_us;
    bit<32> busy_bytes;
    bit<32> busy_packets;
    bit<32> flows;
    bit<32> waiting_packets;
    bit<32> waiting_bytes;
}

control Report(in headers_t hdr, inout metadata_t meta) {
    register<time_us_t>(FALLBACK) new_flow_told;      // us; the slot's last new_flow digest

    bit<1> tell_new_flow = 0;
    bit<4> ip_version = 4;
    bit<128> src;
    bit<128> dst;
    bit<8> protocol;
    bit<32> interval_us;
    bit<32> report_busy_us;
    bit<32> report_busy_bytes;
    bit<32> report_busy_packets;
    bit<32> flows;
    bit<32> waiting_packets;
    bit<32> waiting_bytes;

    @hidden action check_new_flow() {
        time_us_t told;
        bit<32> index = (bit<32>)meta.lane_hash[FALLBACK_BITS-1:0];
        new_flow_told.read(told, index);
        if (told == 0 || meta.now - told >= NEW_FLOW_PERIOD_US) {
            new_flow_told.write(index, meta.now);
            tell_new_flow = 1;
        }
    }

    @hidden action take_report() {
        bit<32> port = (bit<32>)meta.port;
        time_us_t start;
        report_start.read(start, port);
        report_start.write(port, meta.now);
        interval_us = (bit<32>)(meta.now - start);
        busy_us.read(report_busy_us, port);
        busy_us.write(port, 0);
        busy_bytes.read(report_busy_bytes, port);
        busy_bytes.write(port, 0);
        busy_packets.read(report_busy_packets, port);
        busy_packets.write(port, 0);
        report_flows.read(flows, port);
        report_flows.write(port, 0);
        port_occupancy.read(waiting_packets, port);
        port_occupancy_bytes.read(waiting_bytes, port);
    }

    apply {
        if (meta.t_res_valid == 1) {
            digest<t_res_t>(1, { meta.t_res_about[27:19], meta.t_res_about[18:16], meta.t_res_flow_hash,
                                 meta.t_res_about[15:0], meta.t_res_us });
        } else if (meta.counted == 1) {
            // What is not IP has no entries.
            if (meta.has_entry == 0 && (hdr.ipv4.isValid() || hdr.ipv6.isValid())) {
                check_new_flow();
            }
            if (tell_new_flow == 1) {
                if (hdr.ipv4.isValid()) {
                    src = (bit<128>)hdr.ipv4.src;
                    dst = (bit<128>)hdr.ipv4.dst;
                    protocol = hdr.ipv4.protocol;
                } else {
                    ip_version = 6;
                    src = hdr.ipv6.src;
                    dst = hdr.ipv6.dst;
                    protocol = hdr.ipv6.next_header;
                }
                digest<new_flow_t>(1, { ip_version, src, dst, protocol, meta.src_port, meta.dst_port,
                                        meta.port, meta.traffic_class, meta.vid });
            } else if (meta.report_due == 1) {
                take_report();
                digest<port_report_t>(1, { meta.port, interval_us, report_busy_us, report_busy_bytes,
                                           report_busy_packets, flows, waiting_packets, waiting_bytes });
            }
        }
    }
}

#endif
