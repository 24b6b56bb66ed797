// SPDX-License-Identifier: Apache-2.0
// One of everything that P4Runtime can name, small enough to read: the program of the server's tests.
#include <core.p4>
#include <v1model.p4>

@controller_header("packet_in")
header packet_in_t {
    bit<9> ingress_port;
    bit<7> reason;
}

@controller_header("packet_out")
header packet_out_t {
    bit<9> egress_port;
    bit<7> _pad;
}

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

header label_t {
    bit<32> value;
    bit<12> small;
    bit<4> kind;
}

struct headers_t {
    packet_in_t packet_in;
    packet_out_t packet_out;
    ethernet_t ethernet;
    label_t label;
}

struct metadata_t {
    bit<8> color;
    bit<16> hash;
}

struct learn_t {
    bit<48> src_addr;
    bit<9> port;
    bool labelled;
}

const bit<9> CPU_PORT = 510;

parser EntitiesParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    value_set<bit<16>>(4) label_types;

    state start {
        transition select(standard.ingress_port) {
            CPU_PORT: parse_packet_out;
            default: parse_ethernet;
        }
    }
    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition parse_ethernet;
    }
    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            0x1234: parse_label;
            label_types: parse_label;
            default: accept;
        }
    }
    state parse_label {
        packet.extract(hdr.label);
        transition accept;
    }
}

control EntitiesIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    direct_counter(CounterType.packets_and_bytes) exact_counter;
    direct_meter<bit<8>>(MeterType.bytes) exact_meter;
    counter(64, CounterType.packets_and_bytes) port_counter;
    meter(16, MeterType.packets) port_meter;
    register<bit<32>>(5000) cells;
    register<int<12>>(4) signed_cells;
    action_profile(16) plain_profile;
    @max_group_size(8) action_selector(HashAlgorithm.crc16, 64, 16) spread;

    action drop() {
        mark_to_drop(standard);
    }
    action forward(bit<9> port) {
        standard.egress_spec = port;
    }
    action rewrite(bit<48> dst_addr, bit<12> small) {
        hdr.ethernet.dst_addr = dst_addr;
        hdr.label.small = small;
    }
    action measure(bit<9> port) {
        standard.egress_spec = port;
        exact_counter.count();
        exact_meter.read(meta.color);
    }
    action forward_only(bit<9> port) {
        standard.egress_spec = port;
        exact_counter.count();
        exact_meter.read(meta.color);
    }
    action learn() {
        digest<learn_t>(1, { hdr.ethernet.src_addr, standard.ingress_port, hdr.label.isValid() });
    }
    action to_cpu() {
        standard.egress_spec = CPU_PORT;
    }
    action use_arrays(bit<32> index) {
        port_counter.count(index);
        port_meter.execute_meter(index, meta.color);
        cells.write(index, hdr.label.value);
        bit<32> old;
        cells.read(old, index);
        int<12> s;
        signed_cells.read(s, 0);
        signed_cells.write(1, s);
        hdr.label.value = old;
    }

    table exact_table {
        key = { hdr.ethernet.dst_addr: exact; }
        actions = { measure; @tableonly forward_only; @defaultonly drop; }
        size = 65536;
        default_action = drop();
        counters = exact_counter;
        meters = exact_meter;
        support_timeout = true;
    }
    table lpm_table {
        key = { hdr.label.value: lpm; }
        actions = { forward; drop; NoAction; }
        size = 1024;
        const default_action = NoAction();
    }
    table ternary_table {
        key = {
            hdr.label.value: ternary;
            hdr.label.small: range;
            hdr.label.kind: optional;
            standard.ingress_port: exact;
        }
        actions = { forward; rewrite; learn; to_cpu; NoAction; }
        size = 256;
    }
    table const_table {
        key = { hdr.ethernet.ether_type: ternary; }
        actions = { to_cpu; NoAction; }
        const entries = {
            0x88cc: to_cpu();
            0x8800 &&& 0xff00: NoAction();
        }
    }
    table keyless_table {
        actions = { use_arrays; NoAction; }
        default_action = NoAction();
    }
    table profile_table {
        key = { hdr.label.kind: exact; }
        actions = { forward; drop; }
        implementation = plain_profile;
    }
    table selector_table {
        key = {
            hdr.label.kind: exact;
            hdr.ethernet.src_addr: selector;
        }
        actions = { forward; rewrite; }
        implementation = spread;
    }

    apply {
        if (hdr.packet_out.isValid()) {
            standard.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else {
            exact_table.apply();
            const_table.apply();
            if (hdr.label.isValid()) {
                lpm_table.apply();
                ternary_table.apply();
                profile_table.apply();
                selector_table.apply();
                keyless_table.apply();
            }
            if (hdr.label.isValid() && hdr.label.kind == 15) {
                learn();
            }
        }
    }
}

control EntitiesEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        if (standard.egress_port == CPU_PORT) {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = standard.ingress_port;
            hdr.packet_in.reason = 5;
        }
    }
}

control NoVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control NoCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control EntitiesDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.label);
    }
}

V1Switch(EntitiesParser(), NoVerify(), EntitiesIngress(), EntitiesEgress(), NoCompute(), EntitiesDeparser()) main;
