// SPDX-License-Identifier: Apache-2.0
// What comes in at port 1 leaves at port 2 and the other way round, unchanged.
#include <core.p4>
#include <v1model.p4>

struct headers_t {}
struct meta_t {}

parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    state start { transition accept; }
}
control V(inout headers_t h, inout meta_t m) { apply {} }
control C(inout headers_t h, inout meta_t m) { apply {} }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    apply {
        if (sm.ingress_port == 1) { sm.egress_spec = 2; } else { sm.egress_spec = 1; }
    }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t sm) { apply {} }
control D(packet_out p, in headers_t h) { apply {} }

V1Switch(P(), V(), I(), E(), C(), D()) main;
