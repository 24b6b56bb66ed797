// SPDX-License-Identifier: GPL-2.0-only OR MIT
// BPF maps that objects have in common, by name: see shared_maps.h.
#include "shared_maps.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define MAX_SHARED 16
#define NAME_BYTES 16 // BPF_OBJ_NAME_LEN
#define PREFIX "shared_"

static struct {
	char name[NAME_BYTES];
	int fd;
	__u32 value_size;
} shared[MAX_SHARED];
static int shared_count;

static int find(const char *name) {
	for (int i = 0; i < shared_count; i++)
		if (strcmp(shared[i].name, name) == 0)
			return i;
	return -1;
}

int shared_map_fd(const char *name) {
	int found = find(name);

	return found < 0 ? -1 : shared[found].fd;
}

int shared_maps_use(struct bpf_object *object, char *said, size_t said_bytes) {
	struct bpf_map *map;

	bpf_object__for_each_map(map, object) {
		const char *name = bpf_map__name(map);
		int found = find(name), error;

		if (found < 0)
			continue;
		if (bpf_map__value_size(map) != shared[found].value_size) {
			snprintf(said, said_bytes, "map %s is in use from another build (%u bytes a value, not %u)", name,
				 shared[found].value_size, bpf_map__value_size(map));
			return -EEXIST;
		}
		error = bpf_map__reuse_fd(map, shared[found].fd);
		if (error) {
			snprintf(said, said_bytes, "cannot share map %s: %s", name, strerror(-error));
			return error;
		}
	}
	return 0;
}

int shared_maps_keep(struct bpf_object *object) {
	struct bpf_map *map;

	bpf_object__for_each_map(map, object) {
		const char *name = bpf_map__name(map);
		int fd;

		if (strncmp(name, PREFIX, sizeof(PREFIX) - 1) != 0 || find(name) >= 0)
			continue;
		if (shared_count >= MAX_SHARED || strlen(name) >= NAME_BYTES)
			return -E2BIG;
		fd = fcntl(bpf_map__fd(map), F_DUPFD_CLOEXEC, 3);
		if (fd < 0)
			return -errno;
		snprintf(shared[shared_count].name, NAME_BYTES, "%s", name);
		shared[shared_count].fd = fd;
		shared[shared_count++].value_size = bpf_map__value_size(map);
	}
	return 0;
}
