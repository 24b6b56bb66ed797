// SPDX-License-Identifier: GPL-2.0-only OR MIT
// BPF maps that objects have in common: a map called shared_… exists once in the holder, whichever object brought it.
#ifndef FAIRLANE_SHARED_MAPS_H
#define FAIRLANE_SHARED_MAPS_H

#include <bpf/libbpf.h>

// Before the object is loaded: give it the maps that there are. 0, or a negative errno with one sentence in `said`.
int shared_maps_use(struct bpf_object *object, char *said, size_t said_bytes);

// After it was loaded: remember the ones that it brought. They live as long as the holder.
int shared_maps_keep(struct bpf_object *object);

// The map of this name, or -1.
int shared_map_fd(const char *name);

#endif
