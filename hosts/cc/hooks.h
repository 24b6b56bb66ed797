// SPDX-License-Identifier: GPL-2.0-only OR MIT
// What a sender does where its header has no hook (tcp.h says what the hooks are). Both runtimes include it behind the header.
#ifndef FAIRLANE_CC_HOOKS_H
#define FAIRLANE_CC_HOOKS_H

#include "reno.h"

#ifndef CC_STATE
#error "this header is no sender: it has no `#ifdef CC_SENDER_<its name>` with CC_STATE (hosts/cc/tcp.h)"
#endif
#ifndef CC_DEFAULTS
#define CC_DEFAULTS {0}
#endif
#ifndef CC_INIT
#define CC_INIT(st, tcp) (void)(tcp)
#endif
#ifndef CC_SSTHRESH
#define CC_SSTHRESH(st, tcp) reno_ssthresh(tcp) // half the window
#endif
#ifndef CC_CONG_AVOID
#define CC_CONG_AVOID(st, tcp, acked) reno_cong_avoid(tcp, acked)
#endif
#ifndef CC_PKTS_ACKED
#define CC_PKTS_ACKED(st, tcp) (void)(tcp)
#endif
#ifndef CC_SET_STATE
#define CC_SET_STATE(st, tcp, state) (void)(tcp)
#endif
#ifndef CC_CWND_EVENT
#define CC_CWND_EVENT(st, tcp, event) (void)(tcp)
#endif
#ifndef CC_UNDO_CWND
#define CC_UNDO_CWND(st, tcp) reno_undo_cwnd(tcp) // the window before the reduction
#endif
#ifndef CC_NEEDS_ECN
#define CC_NEEDS_ECN 0
#endif

_Static_assert(sizeof(CC_STATE) <= CC_STATE_BYTES, "the state does not fit");
#ifdef CC_BW_EST // a kernel counts beside it (struct fl_undone)
_Static_assert(sizeof(CC_STATE) <= CC_STATE_BYTES - 8, "the state does not fit beside what is counted of CC_BW_EST");
#endif

#endif
