// arena.c - memory of one compilation: bump allocation out of the caller's chunks, freed as a
// whole.
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct Chunk {
  Chunk *next;
  size_t bytes;  // behind this; the two keep it aligned to 16
};

enum { CHUNK_BYTES = 64 * 1024, KEPT_BYTES = 4 * 1024 * 1024 };

static void *host_alloc(void *user, size_t bytes) {
  (void)user;
  return malloc(bytes);
}

static void host_free(void *user, void *block) {
  (void)user;
  free(block);
}

const schedc_allocator sc_host_memory = {host_alloc, host_free, NULL};

void sc_init(Sc *sc, const schedc_allocator *alloc) {
  memset(sc, 0, sizeof *sc);
  sc->alloc = alloc ? *alloc : sc_host_memory;
  sc->diag_end = &sc->diags;
}

static void free_chunks(Sc *sc, Chunk *c) {
  for (Chunk *next; c; c = next) {
    next = c->next;
    sc->alloc.free(sc->alloc.user, c);
  }
}

void sc_free(Sc *sc) {
  free_chunks(sc, sc->arena.head);
  free_chunks(sc, sc->arena.spare);
  sc->arena = (Arena){0};
  sc->diags = NULL;
  sc->diag_end = &sc->diags;
}

#ifdef SC_ONE_CHUNK_A_NODE
void sc_recycle(Sc *sc) {
  schedc_allocator alloc = sc->alloc;
  sc_free(sc);
  sc_init(sc, &alloc);
}
#else
void sc_recycle(Sc *sc) {
  schedc_allocator alloc = sc->alloc;
  Chunk *used = sc->arena.head, *spare = sc->arena.spare;
  size_t kept = 0;
  for (Chunk *c = spare; c; c = c->next) kept += c->bytes;
  sc_init(sc, &alloc);
  for (Chunk *next; used; used = next) {
    next = used->next;
    kept += used->bytes;
    used->next = spare;
    if (kept > KEPT_BYTES) sc->alloc.free(sc->alloc.user, used);
    else spare = used;
  }
  sc->arena.spare = spare;
}
#endif

void sc_unwind(Sc *sc, schedc_status why) {
  sc->why = why;
  longjmp(*sc->unwind, 1);
}

// A chunk kept from before that is large enough, but not much too large.
static Chunk *take_spare(Sc *sc, size_t bytes) {
  for (Chunk **at = &sc->arena.spare, *c; (c = *at); at = &c->next) {
    if (c->bytes < bytes || c->bytes / 2 > bytes) continue;
    *at = c->next;
    return c;
  }
  return NULL;
}

static char *new_chunk(Sc *sc, size_t bytes) {
  if (bytes > SIZE_MAX - sizeof(Chunk)) sc_unwind(sc, SCHEDC_ENOMEM);
  Chunk *c = take_spare(sc, bytes);
  if (!c) {
    c = sc->alloc.alloc(sc->alloc.user, sizeof(Chunk) + bytes);
    if (!c) sc_unwind(sc, SCHEDC_ENOMEM);
    c->bytes = bytes;
  }
  c->next = sc->arena.head;
  sc->arena.head = c;
  return (char *)(c + 1);
}

void *sc_new(Sc *sc, size_t n) {
  if (n > SIZE_MAX / 4) sc_unwind(sc, SCHEDC_ENOMEM);
  n = (n + 15) & ~(size_t)15;
#ifdef SC_ONE_CHUNK_A_NODE
  char *at = new_chunk(sc, n);
#else
  Arena *a = &sc->arena;
  char *at = a->at;
  if (n <= (size_t)(a->end - a->at)) {
    a->at += n;
  } else if (n > CHUNK_BYTES / 4) {
    at = new_chunk(sc, n);
  } else {
    at = new_chunk(sc, CHUNK_BYTES);
    a->at = at + n;
    a->end = at + CHUNK_BYTES;
  }
#endif
  return memset(at, 0, n);
}

void *sc_grow(Sc *sc, void *old, size_t had, size_t want) {
  void *at = sc_new(sc, want);
  if (had) memcpy(at, old, had);
  return at;
}

char *sc_vprintf(Sc *sc, const char *fmt, va_list ap) {
  va_list again;
  va_copy(again, ap);
  int n = vsnprintf(NULL, 0, fmt, ap);
  char *at = sc_new(sc, (size_t)n + 1);
  vsnprintf(at, (size_t)n + 1, fmt, again);
  va_end(again);
  return at;
}

char *sc_printf(Sc *sc, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  char *at = sc_vprintf(sc, fmt, ap);
  va_end(ap);
  return at;
}

void str_put(Str *s, const char *bytes, size_t n) {
  if (n > UINT32_MAX / 2 - s->n) sc_unwind(s->sc, SCHEDC_ELIMIT);
  if (s->n + n + 1 > s->cap) {
    u32 cap = s->cap ? s->cap : 256;
    while (cap < s->n + n + 1) cap *= 2;
    s->at = sc_grow(s->sc, s->at, s->n, cap);
    s->cap = cap;
  }
  if (n) memcpy(s->at + s->n, bytes, n);
  s->n += (u32)n;
  s->at[s->n] = 0;
}

int str_write(void *str, const char *bytes, size_t n) {
  str_put(str, bytes, n);
  return 0;
}

void str_puts(Str *s, const char *text) { str_put(s, text, strlen(text)); }

void str_printf(Str *s, const char *fmt, ...) {
  char small[256];
  va_list ap, again;
  va_start(ap, fmt);
  va_copy(again, ap);
  int n = vsnprintf(small, sizeof small, fmt, ap);
  if ((size_t)n < sizeof small) {
    str_put(s, small, (size_t)n);
  } else {
    str_puts(s, sc_vprintf(s->sc, fmt, again));
  }
  va_end(again);
  va_end(ap);
}
