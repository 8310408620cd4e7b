/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between Baleen's own processes: fixed-size structs over a SOCK_SEQPACKET pair, so that
 * the privileged side never parses anything. A message may carry one descriptor.
 *
 *   supervisor <-> template <-> admin      reload and its outcome; loaded, ready, drain
 *   admin <-> fetcher                      feeds refresh and the like
 *   admin -> logger                        a subscriber of `log tail`: its socket and its filter
 */
#ifndef BALEEN_CORE_PROCESS_LINK_H
#define BALEEN_CORE_PROCESS_LINK_H

#include <stddef.h>
#include <stdint.h>

enum link_kind {
	LINK_NONE,
	/* template -> supervisor */
	LINK_LOADED,	      /* the generation stands; may its fetcher begin? */
	LINK_FAILED,	      /* it does not: `text` says why; the template leaves */
	LINK_READY,	      /* every worker reads */
	LINK_FETCHER_STOPPED, /* answer to LINK_STOP_FETCHER */
	LINK_RELOAD,	      /* from admin, forwarded; answered by LINK_OUTCOME with its serial */
	/* supervisor -> template */
	LINK_GO,	    /* fork the fetcher, then the rest */
	LINK_STOP_FETCHER,  /* a newer generation wants the feed folders */
	LINK_START_FETCHER, /* ... and does not any more */
	LINK_DRAIN,	    /* finish and leave */
	LINK_OUTCOME,	    /* of a reload: code 0 or -errno, `text` */
	/* admin -> fetcher -> admin */
	LINK_FEEDS, /* `action` and `name` */
	LINK_FEEDS_DONE,
	/* admin -> logger, with a descriptor */
	LINK_TAIL,
	LINK_KINDS
};

#define LINK_TEXT_MAX 16384

struct link_message {
	uint32_t kind;
	int32_t code;
	uint64_t serial; /* of the request, chosen by who asks */
	uint32_t action;
	uint32_t generation;
	char name[256];
	char text[LINK_TEXT_MAX]; /* NUL-terminated */
};

/* Both ends, close-on-exec, non-blocking. 0 or -errno. */
int link_pair(int out[2]);

/* Send one message, with `fd` unless it is -1. -EAGAIN: the peer does not read. */
int link_send(int link, const struct link_message *m, int fd);

/* One message: 1; 0 at the end; -EAGAIN for none; -EBADMSG for one of the wrong size. `*fd` gets
 * the descriptor or -1; with a NULL `fd` one that came is closed. Texts are terminated. */
int link_receive(int link, struct link_message *m, int *fd);

/* A message with a formatted text. */
void link_message_init(struct link_message *m, enum link_kind kind, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
