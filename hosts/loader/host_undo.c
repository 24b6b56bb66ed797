// SPDX-License-Identifier: GPL-2.0-only OR MIT
// What a host's programs change beside BPF, and how it is put back: see host_undo.h.
#define _GNU_SOURCE
#include "host_undo.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OUR_FOLDER "fairlane"
#define MOVE_ROUNDS 10 // a process that forks while it is moved leaves a child behind

int undo_enter(int netns_fd) {
	int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), error;

	if (home < 0)
		return -errno;
	if (setns(netns_fd, CLONE_NEWNET)) {
		error = -errno;
		close(home);
		return error;
	}
	return home;
}

void undo_leave(int home_fd) {
	if (setns(home_fd, CLONE_NEWNET))
		abort(); // it would act in the wrong namespace from here on
	close(home_fd);
}

static int sysctl_path(char path[PATH_MAX], const char *name) {
	if (strchr(name, '/') || strstr(name, ".."))
		return -EINVAL;
	snprintf(path, PATH_MAX, "/proc/sys/net/ipv4/%s", name);
	return 0;
}

static int read_text(const char *path, char *text, size_t bytes) {
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, bytes - 1);
	int error = n < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	text[n < 0 ? 0 : n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return error;
}

static int write_text(const char *path, const char *text) {
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int error = fd < 0 || write(fd, text, strlen(text)) < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return error;
}

int change_sysctls(struct changed_sysctls *out, const char *wanted, char *said, size_t said_bytes) {
	char words[256], path[PATH_MAX], *rest = words, *word;
	int error = 0;

	if (strcmp(wanted, "-") == 0)
		return 0;
	snprintf(words, sizeof(words), "%s", wanted);
	while (!error && (word = strsep(&rest, ","))) {
		char *value = strchr(word, '=');

		if (!value || out->count == MAX_SYSCTLS || sysctl_path(path, word)) {
			snprintf(said, said_bytes, "want at most %d of NAME=VALUE as sysctls, got %s", MAX_SYSCTLS, wanted);
			return -EINVAL;
		}
		*value++ = '\0';
		sysctl_path(path, word);
		error = read_text(path, out->items[out->count].before, sizeof(out->items[0].before));
		if (!error)
			error = write_text(path, value);
		if (error)
			snprintf(said, said_bytes, "cannot set net.ipv4.%s to %s: %s", word, value, strerror(-error));
		else
			snprintf(out->items[out->count++].name, sizeof(out->items[0].name), "%s", word);
	}
	return error;
}

void undo_sysctls(struct changed_sysctls *changed) {
	char path[PATH_MAX];

	while (changed->count > 0) {
		changed->count--;
		if (sysctl_path(path, changed->items[changed->count].name) == 0)
			write_text(path, changed->items[changed->count].before);
	}
}

// How many processes were there.
static int move_processes(const char *cgroup, const char *origin) {
	char from[PATH_MAX + 16], to[PATH_MAX + 16], line[32];
	FILE *processes;
	int moved = 0;

	snprintf(from, sizeof(from), "%s/cgroup.procs", cgroup);
	snprintf(to, sizeof(to), "%s/cgroup.procs", origin);
	processes = fopen(from, "re");
	while (processes && fgets(line, sizeof(line), processes)) {
		line[strcspn(line, "\n")] = '\0';
		write_text(to, line); // one that has just ended is not there to be moved
		moved++;
	}
	if (processes)
		fclose(processes);
	return moved;
}

void undo_cgroup(const char *cgroup, const char *origin) {
	char path[PATH_MAX], *name;

	for (int round = 0; round < MOVE_ROUNDS && move_processes(cgroup, origin); round++)
		;
	snprintf(path, sizeof(path), "%s", cgroup);
	if (rmdir(path) && errno == EBUSY && (name = strstr(path, "/" OUR_FOLDER))) { // `origin` is gone: to the root then
		*name = '\0';
		for (int round = 0; round < MOVE_ROUNDS && move_processes(cgroup, path); round++)
			;
		*name = '/';
	}
	while ((rmdir(path) == 0 || errno == ENOENT) && (name = strrchr(path, '/'))) {
		if (strncmp(name + 1, OUR_FOLDER, sizeof(OUR_FOLDER) - 1) == 0)
			return;
		*name = '\0';
	}
}
