// SPDX-License-Identifier: Apache-2.0
// What waits in each queue, what left and how long it waited. A program defines AQM_QUEUES, the number of queues, before.
#ifndef FAIRLANE_AQM_QUEUE_P4
#define FAIRLANE_AQM_QUEUE_P4

#include "../headers.p4"

register<bit<32>>(AQM_QUEUES) waiting_packets;                   // [queue]
register<bit<32>>(AQM_QUEUES) waiting_bytes;                     // [queue], bytes of frames
register<bit<64>>(PORTS) waited_us;                              // [port], the delay of all packets that were sent, together
counter(PORTS, CounterType.packets_and_bytes) passed;            // [port], accepted by ingress
counter(PORTS, CounterType.packets_and_bytes) sent;              // [managed port], left egress
counter(DROP_COUNTERS, CounterType.packets_and_bytes) drops;     // [port ++ reason]

// The end of ingress: a packet that is accepted is counted in.
control Enqueue(inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // Read and written in one action: BMv2 runs ingress and egress side by side.
    @hidden action count_in() {
        bit<32> packets;
        bit<32> bytes;
        waiting_packets.read(packets, meta.queue);
        waiting_packets.write(meta.queue, packets + 1);
        waiting_bytes.read(bytes, meta.queue);
        waiting_bytes.write(meta.queue, bytes + (bit<32>)meta.length);
    }

    apply {
        if (meta.reason != REASON_NONE) {
            drops.count((bit<32>)(meta.port ++ meta.reason));
            mark_to_drop(standard_metadata);
        } else {
            standard_metadata.egress_spec = meta.port;
            passed.count((bit<32>)meta.port);
            if (meta.managed == 1) {
                count_in();
            }
        }
    }
}

// The begin of egress at a managed port: the packet is counted out.
control Dequeue(inout metadata_t meta, in standard_metadata_t standard_metadata) {
    // Nothing waits behind a packet where the switch says so: what BMv2's own queue dropped is forgotten then.
    @hidden action count_out() {
        bit<32> packets;
        bit<32> bytes;
        bit<32> length = (bit<32>)meta.length;
        bit<1> last = (meta.queue_drop == 0 && standard_metadata.deq_qdepth == 0) ? 1w1 : 1w0;
        waiting_packets.read(packets, meta.queue);
        packets = (packets == 0 || last == 1) ? 0 : packets - 1;
        waiting_packets.write(meta.queue, packets);
        waiting_bytes.read(bytes, meta.queue);
        bytes = (bytes < length || last == 1) ? 0 : bytes - length;
        waiting_bytes.write(meta.queue, bytes);
        meta.queue_packets = packets;
        meta.queue_bytes = bytes;
    }

    apply {
        count_out();
    }
}

// The end of egress at a managed port, for a packet that leaves.
control Send(inout metadata_t meta, in standard_metadata_t standard_metadata) {
    @hidden action add_delay() {
        bit<64> us;
        waited_us.read(us, (bit<32>)meta.port);
        waited_us.write((bit<32>)meta.port, us + (bit<64>)standard_metadata.deq_timedelta);
    }

    apply {
        add_delay();
        sent.count((bit<32>)meta.port);
    }
}

#endif
