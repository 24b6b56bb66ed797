// SPDX-License-Identifier: GPL-2.0-only OR MIT
// fairlane-cc: registers congestion controls and holds them for as long as somebody uses them.
//
//   fairlane-cc serve SOCKET NAME=OBJECT=TAG...   register all, print "ready", serve; exit when no reference is left
//   fairlane-cc remove NAME...                    unregister what a killed holder left (kernels before 6.4)
//
// A reference is an open connection to SOCKET, or a process named with "hold PID" (until it ends). So killing a user,
// in whatever way, gives its reference back, and killing the holder takes the names away where the kernel has
// struct_ops links (6.4). Sockets that run an algorithm keep it to their end. Requests, one a line:
//   hold PID   -> "ok" | "error TEXT"
//   list       -> "NAME TAG link|nolink" lines, then "pid PID", then "ok"
#include "registry.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define MAX_ALGORITHMS 32
#define MAX_REFERENCES 512
#define FIRST_USER_TIMEOUT_MS 10000
#define LINE_BYTES 64

static struct registered algorithms[MAX_ALGORITHMS];
static int algorithm_count;
static volatile sig_atomic_t stopping;

struct reference {
	bool is_process; // a pidfd; otherwise a client's connection
	char line[LINE_BYTES];
	size_t used;
};
static struct pollfd polled[MAX_REFERENCES + 1]; // [0] is the listening socket
static struct reference references[MAX_REFERENCES + 1];
static int polled_count = 1;

static void stop(int signal_number) {
	(void)signal_number;
	stopping = 1;
}

static bool add_reference(int fd, bool is_process) {
	if (polled_count > MAX_REFERENCES)
		return false;
	polled[polled_count] = (struct pollfd){.fd = fd, .events = POLLIN};
	references[polled_count] = (struct reference){.is_process = is_process};
	polled_count++;
	return true;
}

static void drop_reference(int index) {
	close(polled[index].fd);
	polled_count--;
	polled[index] = polled[polled_count];
	references[index] = references[polled_count];
}

static void answer(int fd, const char *text) {
	// A client that does not read its answer is closed by its own end; nothing to do here.
	if (send(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return;
}

static void hold_process(int fd, const char *argument) {
	char *end, text[128];
	long pid = strtol(argument, &end, 10);
	int pidfd;

	if (end == argument || *end || pid <= 0) {
		answer(fd, "error hold: want a process id, a positive number\n");
		return;
	}
	pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
	if (pidfd < 0) {
		snprintf(text, sizeof(text), "error hold: process %ld: %s\n", pid, strerror(errno));
		answer(fd, text);
	} else if (!add_reference(pidfd, true)) {
		close(pidfd);
		answer(fd, "error hold: too many references\n");
	} else {
		answer(fd, "ok\n");
	}
}

static void list_algorithms(int fd) {
	static char text[MAX_ALGORITHMS * 128 + 64];
	size_t used = 0;

	for (int i = 0; i < algorithm_count; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s %s %s\n", algorithms[i].name, algorithms[i].tag,
					 algorithms[i].has_bpf_link ? "link" : "nolink");
	snprintf(text + used, sizeof(text) - used, "pid %d\nok\n", (int)getpid());
	answer(fd, text);
}

static void execute(int fd, const char *line) {
	if (strncmp(line, "hold ", 5) == 0)
		hold_process(fd, line + 5);
	else if (strcmp(line, "list") == 0)
		list_algorithms(fd);
	else
		answer(fd, "error unknown request: want \"hold PID\" or \"list\"\n");
}

// False when the client is gone.
static bool read_requests(int index) {
	struct reference *r = &references[index];
	int fd = polled[index].fd;
	ssize_t n = recv(fd, r->line + r->used, sizeof(r->line) - 1 - r->used, MSG_DONTWAIT);
	char *newline;

	if (n <= 0)
		return n < 0 && (errno == EAGAIN || errno == EINTR);
	r->used += (size_t)n;
	r->line[r->used] = '\0';
	while ((newline = strchr(r->line, '\n'))) {
		*newline = '\0';
		execute(fd, r->line);
		r->used -= (size_t)(newline + 1 - r->line);
		memmove(r->line, newline + 1, r->used + 1);
	}
	return r->used < sizeof(r->line) - 1;
}

static void serve(int listener) {
	bool had_user = false;

	polled[0] = (struct pollfd){.fd = listener, .events = POLLIN};
	while (!stopping && (!had_user || polled_count > 1)) {
		int ready = poll(polled, (nfds_t)polled_count, had_user ? -1 : FIRST_USER_TIMEOUT_MS);

		if (ready == 0)
			return;
		if (ready < 0)
			continue;
		for (int i = polled_count - 1; i > 0; i--) {
			if (polled[i].revents && (references[i].is_process || !read_requests(i)))
				drop_reference(i);
		}
		if (polled[0].revents) {
			int client = accept(listener, NULL, NULL);
			if (client >= 0) {
				had_user = true;
				if (!add_reference(client, false)) {
					answer(client, "error too many references\n");
					close(client);
				}
			}
		}
	}
}

static int listen_at(const char *path) {
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (strlen(path) >= sizeof(address.sun_path)) {
		fprintf(stderr, "fairlane-cc: socket path longer than %zu bytes: %s\n", sizeof(address.sun_path) - 1, path);
		return -1;
	}
	memcpy(address.sun_path, path, strlen(path) + 1);
	unlink(path); // the caller holds the lock: nobody serves here
	umask(0177);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 64)) {
		fprintf(stderr, "fairlane-cc: cannot listen at %s: %s\n", path, strerror(errno));
		return -1;
	}
	return fd;
}

static int register_all(char **specs, int count) {
	for (int i = 0; i < count; i++) {
		char *path = strchr(specs[i], '='), *tag = path ? strchr(path + 1, '=') : NULL;

		if (!tag || i >= MAX_ALGORITHMS) {
			fprintf(stderr, "fairlane-cc: want at most %d of NAME=OBJECT=TAG, got %s\n", MAX_ALGORITHMS, specs[i]);
			return -1;
		}
		*path++ = '\0';
		*tag++ = '\0';
		if (registry_register(&algorithms[algorithm_count], specs[i], path, tag))
			return -1;
		algorithm_count++;
	}
	return 0;
}

static void unregister_all(void) {
	while (algorithm_count > 0)
		registry_unregister(&algorithms[--algorithm_count]);
}

static int serve_main(const char *path, char **specs, int count) {
	struct sigaction action = {.sa_handler = stop};
	int listener;

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	if (register_all(specs, count) == 0 && (listener = listen_at(path)) >= 0) {
		printf("ready\n");
		fflush(stdout);
		serve(listener);
		// Names first: who finds the socket gone, or closed before its answer, may register at once.
		unregister_all();
		unlink(path);
		close(listener);
		return 0;
	}
	unregister_all();
	return 1;
}

int main(int argc, char **argv) {
	if (argc >= 4 && strcmp(argv[1], "serve") == 0)
		return serve_main(argv[2], argv + 3, argc - 3);
	if (argc >= 3 && strcmp(argv[1], "remove") == 0) {
		int status = 0;
		for (int i = 2; i < argc; i++) {
			int removed = registry_remove_leftover(argv[i]);
			if (removed > 0)
				printf("%s\n", argv[i]);
			status |= removed < 0;
		}
		return status;
	}
	fprintf(stderr, "usage: fairlane-cc serve SOCKET NAME=OBJECT=TAG... | fairlane-cc remove NAME...\n");
	return 2;
}
