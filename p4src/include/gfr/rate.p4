// SPDX-License-Identifier: Apache-2.0
// Eq. (2) of Kim & Lee: r_i, the rate of a VC's accepted frames, in bits on the line (424 a cell).
//
// Form 0 weighs by time. With dt the time since the VC's last accepted frame, l its bits, K = 0.5 s:
//     r <- e^(-dt/K) r + (1 - e^(-dt/K)) l/dt  =  r - dt h r + l h,    h(dt) = (1 - e^(-dt/K)) / dt.
// h has no singularity (h(0) = 1/K), so frames in the same microsecond need no care, and the times add up: what the
// clock cuts off of one dt is in the next.
// Form 1 is the paper's, r <- (1 - alpha) l/T + alpha r. 1/T is singular: frames that come within the port's period, at
// least RATE_BURST_US, of the last one that counted wait and count together with the next, and T has an error of 1 us
// in at least 64.
//
// Neither divides: h and 1/T come from tables over dt, straight lines on dyadic pieces (rate_table.py).
//
// Error of form 0, r* the same recursion in exact arithmetic with exact times:
//   - a straight piece misses h by at most 1e-4 of h. In a steady state r = l h / (dt h): h cancels, and what
//     remains is the rounding of dt h to 2^-32, at most 2^-33 / (dt/K) = 6e-5 (dt = 1 us), less above, and of r to
//     1/256 bit/s, at most 2/(dt/K) of these, 1e-5 at the 424 Mbit/s that a cell a microsecond makes;
//   - where bursts and silences alternate h is seen itself, in gain and decay to opposite sides at worst: 2e-4.
//   Together |r - r*| <= 3e-4 r* + 1 bit/s. Beyond 2^27 us (134 s) of silence dt counts as 2^27 - 1.
// Error of form 1: 5e-4 by the pieces and up to 1/64 by the clock at T = 64 us, 1 us / T in general.
//
// Widths: rates to 100 Gbit/s are 45 bits in 1/256 bit/s; the register may hold 56 before a product overflows.
#ifndef FAIRLANE_GFR_RATE_P4
#define FAIRLANE_GFR_RATE_P4

#include "state.p4"
#include "rate_entries.p4"

// Each piece of the tables: value = start - (slope * (dt - piece's begin)), `low` the mask of dt within the piece.
control Rate(inout metadata_t meta) {
    // Cells that came within the period after the last frame that counted (form 1); more than 2^24 - 1 are as many:
    // 7.1 Gbit, 71 Gbit/s over 100 ms.
    register<bit<24>>(GFR_SLOTS) vc_burst;

    @hidden action set_h(bit<32> start, bit<32> slope, bit<32> low) {
        meta.line = start;
        meta.slope = slope;
        meta.offset = meta.dt_us & low;
    }

    @hidden table rate_h {
        key = { meta.dt_us : lpm; }
        actions = { set_h; }
        const entries = { RATE_H_ENTRIES }
        const default_action = set_h(0, 0, 0);
    }

    @hidden action set_reciprocal(bit<32> start, bit<32> slope, bit<32> low, bit<8> shift) {
        meta.line = start;
        meta.slope = slope;
        meta.offset = meta.dt_us & low;
        meta.shift = shift;
    }

    @hidden table rate_reciprocal {
        key = { meta.dt_us : lpm; }
        actions = { set_reciprocal; }
        const entries = { RATE_RECIPROCAL_ENTRIES }
        const default_action = set_reciprocal(0, 0, 0, 0);
    }

    @hidden action take_time() {
        time_us_t last;
        vc_last.read(last, (bit<32>)meta.slot);
        vc_last.write((bit<32>)meta.slot, meta.now);
        time_us_t dt = meta.now - last;
        meta.dt_us = (dt > RATE_DT_MAX_US) ? RATE_DT_MAX_US : (bit<32>)dt;
        meta.line = RATE_H_FIRST_START;
        meta.slope = RATE_H_FIRST_SLOPE;
        meta.offset = meta.dt_us;
    }

    // h in 2^-50 per us: 1/K is 2251799814, 32 bits.
    //   dt * h < 1: 50 bits in 2^-50, rounded to 2^-32.
    //   r * dt * h: r = high * 2^24 + low; high * 2^-32 and low * 2^-32 have 32 + 32 and 24 + 32 bits.
    //   l * h = c * 424 * 10^6 * 256 * h / 2^50 = c * 828125 * h / 2^33: 10.5 + 19.7 + 31.1 < 62 bits.
    @hidden action weigh_by_time() {
        bit<64> rate;
        bit<64> h = (bit<64>)meta.line - (((bit<64>)meta.slope * (bit<64>)meta.offset) >> 20);
        bit<64> part = ((bit<64>)meta.dt_us * h + 0x20000) >> 18;
        vc_rate.read(rate, (bit<32>)meta.slot);
        bit<64> old = (((rate >> 24) * part) >> 8) + (((rate & 0xFFFFFF) * part) >> 32);
        vc_rate.write((bit<32>)meta.slot, rate - old + (((bit<64>)meta.cells * 828125 * h) >> 33));
    }

    @hidden action take_time_of_burst() {
        time_us_t last;
        bit<24> burst;
        vc_last.read(last, (bit<32>)meta.slot);
        vc_burst.read(burst, (bit<32>)meta.slot);
        burst = burst |+| (bit<24>)meta.cells;
        time_us_t dt = meta.now - last;
        meta.dt_us = (dt > RATE_DT_MAX_US) ? RATE_DT_MAX_US : (bit<32>)dt;
        if (meta.dt_us < RATE_BURST_US || meta.dt_us < meta.period_us) {
            meta.rate_cells = 0;
            vc_burst.write((bit<32>)meta.slot, burst);
        } else {
            meta.rate_cells = burst;
            vc_burst.write((bit<32>)meta.slot, 0);
            vc_last.write((bit<32>)meta.slot, meta.now);
        }
    }

    // 1/T in 2^-(24 + e) for 2^e <= T < 2^(e+1): 24 bits; shift = 10 + e.
    //   l/T in 1/256 bit/s = c * 424 * 10^6 * 256 / T = (c * 828125 * 1/T) >> (7 + e), c = high * 2^13 + low:
    //   13 + 19.7 + 24 < 57 bits, and as many for high, whose shift is e - 6 >= 0.
    //   l/T <= 2^24 cells in 64 us, 54.7 bits; times 256: 62.7.
    @hidden action weigh_by_alpha() {
        bit<64> rate;
        bit<64> reciprocal = (bit<64>)meta.line - (((bit<64>)meta.slope * (bit<64>)meta.offset) >> 12);
        bit<64> of_cell = 828125 * reciprocal;
        bit<64> now = (((bit<64>)(meta.rate_cells >> 13) * of_cell) >> (meta.shift - 16))
                      + (((bit<64>)(meta.rate_cells & 0x1FFF) * of_cell) >> (meta.shift - 3));
        vc_rate.read(rate, (bit<32>)meta.slot);
        vc_rate.write((bit<32>)meta.slot, ((bit<64>)(256 - meta.alpha) * now + (bit<64>)meta.alpha * rate) >> 8);
    }

    apply {
        if (meta.rate_form == 0) {
            take_time();
            if (meta.dt_us >= RATE_H_FIRST_US) {
                rate_h.apply();
            }
            weigh_by_time();
        } else {
            take_time_of_burst();
            if (meta.rate_cells != 0) {
                rate_reciprocal.apply();
                weigh_by_alpha();
            }
        }
    }
}

#endif
