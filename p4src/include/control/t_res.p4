// SPDX-License-Identifier: Apache-2.0
// T_res, Chae & Choi eq. (6): the time from a data packet's departure to the return of its ACK.
//
//      data ──► ingress ─► queue ─► egress: probe ──────────► receiver
//                                     │                          │
//      ACK  ◄── egress ◄── ingress: match_ack ◄──────────────────┘      T_res sample = match - probe
//
// The probe starts when the frame is dequeued, which is when its transmission STARTS: the sample holds the
// frame's own serialisation, T_D = 8 * frame_bytes / BW, on a target whose line takes time (the embedded
// switch). The paper's T_res begins when the last bit left: the controller subtracts T_D there.
//
// One probe a flow at a time, found by the hash of the 5-tuple (the ACK's is turned round). A sample counts
// only when it is clean:
//   - the ACK acknowledges exactly the probe's last byte. One that covers more was delayed by the receiver
//     for a later segment: discard (RFC 9293 section 3.8.6.3 allows one ACK for two segments);
//   - no data before the probe's end passed meanwhile: discard, it may be a retransmission (Karn);
//   - the probe carries new data.
// Only ACKs without data are looked at: a piggybacked ACK waits for the application.
#ifndef FAIRLANE_T_RES_P4
#define FAIRLANE_T_RES_P4

#include "state.p4"

// waiting(1) ++ hash[31:17](15) ++ time of the probe, us(48)
register<bit<64>>(FALLBACK) t_res_mark;
// expected ACK number(32) ++ unused(4) ++ egress port(9) ++ class(3) ++ frame length(16)
register<bit<64>>(FALLBACK) t_res_expect;

control TResProbe(in headers_t hdr, in metadata_t meta, in standard_metadata_t standard_metadata) {
    @hidden action probe() {
        bit<64> mark;
        bit<64> expect;
        bit<32> index = (bit<32>)meta.flow_hash[FALLBACK_BITS-1:0];
        t_res_mark.read(mark, index);
        t_res_expect.read(expect, index);
        time_us_t age = standard_metadata.egress_global_timestamp - mark[47:0];
        bool same = mark[62:48] == meta.flow_hash[31:17];
        // Serial number arithmetic: the segment starts before the last expected ACK.
        bit<32> ahead = hdr.tcp.seq_no - expect[63:32];
        bool old = same && ahead[31:31] == 1;

        if (mark[63:63] == 1 && age < T_RES_TIMEOUT_US) {
            if (old) {
                t_res_mark.write(index, 1w0 ++ mark[62:0]);
            }
        } else if (age >= T_RES_TIMEOUT_US || (age >= T_RES_PERIOD_US && !old)) {
            t_res_mark.write(index, 1w1 ++ meta.flow_hash[31:17] ++ standard_metadata.egress_global_timestamp);
            t_res_expect.write(index, (hdr.tcp.seq_no + (bit<32>)meta.tcp_payload_len)
                ++ 4w0 ++ meta.port ++ meta.traffic_class ++ meta.length);
        }
    }

    apply {
        probe();
    }
}

control TResMatch(in headers_t hdr, inout metadata_t meta) {
    register<bit<32>>(PORTS) t_res_last_us;      // the port's last sample and its smallest one
    register<bit<32>>(PORTS) t_res_min_us;
    register<time_us_t>(PORTS) t_res_reported;   // us; the port's last report

    // The 5-tuple of the data that this ACK answers.
    @hidden action hash_back_v4() {
        hash(meta.t_res_flow_hash, HashAlgorithm.crc32, 32w0,
             { hdr.ipv4.dst, hdr.ipv4.src, hdr.ipv4.protocol, hdr.tcp.dst_port, hdr.tcp.src_port },
             64w0x100000000);
    }

    @hidden action hash_back_v6() {
        hash(meta.t_res_flow_hash, HashAlgorithm.crc32, 32w0,
             { hdr.ipv6.dst, hdr.ipv6.src, hdr.ipv6.next_header, hdr.tcp.dst_port, hdr.tcp.src_port },
             64w0x100000000);
    }

    @hidden action match_ack() {
        bit<64> mark;
        bit<64> expect;
        bit<32> index = (bit<32>)meta.t_res_flow_hash[FALLBACK_BITS-1:0];
        t_res_mark.read(mark, index);
        if (mark[63:48] == 1w1 ++ meta.t_res_flow_hash[31:17]) {
            t_res_expect.read(expect, index);
            bit<32> ahead = hdr.tcp.ack_no - expect[63:32];
            if (ahead[31:31] == 0) {
                // An answer that does not count frees the next segment at once: delayed ACKs answer every second
                // one, and probes in step with them would never be answered.
                time_us_t probed = (ahead == 0) ? mark[47:0] : meta.now - T_RES_PERIOD_US;
                t_res_mark.write(index, 1w0 ++ mark[62:48] ++ probed);
                if (ahead == 0) {
                    meta.t_res_valid = 1;
                    meta.tell = 1;
                    meta.t_res_us = (bit<32>)(meta.now - mark[47:0]);
                    meta.t_res_about = expect[31:0];
                }
            }
        }
    }

    @hidden action keep_sample() {
        bit<32> port = (bit<32>)meta.t_res_about[27:19];
        bit<32> least;
        time_us_t reported;
        t_res_last_us.write(port, meta.t_res_us);
        t_res_min_us.read(least, port);
        t_res_min_us.write(port, (least == 0 || meta.t_res_us < least) ? meta.t_res_us : least);
        t_res_reported.read(reported, port);
        // With many flows the port's limit holds: a sample less, never a storm of digests.
        if (meta.now - reported >= T_RES_PORT_PERIOD_US) {
            t_res_reported.write(port, meta.now);
        } else {
            meta.t_res_valid = 0;
        }
    }

    apply {
        if (hdr.ipv4.isValid()) {
            hash_back_v4();
        } else {
            hash_back_v6();
        }
        match_ack();
        if (meta.t_res_valid == 1) {
            keep_sample();
        }
    }
}

#endif
