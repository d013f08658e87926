// answers.c - keeps answers, so that a question that has been asked is not worked out again. In: a
// question, as words. Out: the place of its answer. Questions are compared whole: no two share one.
#include "compiler/facts/path.h"

#include <string.h>

typedef struct Entry {
  u64 hash;
  const u64 *words;  // NULL: empty
  u32 n;
  Answer answer;
} Entry;

typedef struct Answers {
  Sc *sc;
  Entry *at;
  u32 n, room;  // room: a power of two
} Answers;

enum { FIRST_ROOM = 256 };

struct Answers *sc_answers(Sc *sc) {
  Answers *a = NEW(sc, Answers);
  *a = (Answers){.sc = sc, .at = NEWS(sc, Entry, FIRST_ROOM), .room = FIRST_ROOM};
  return a;
}

static u64 hash_of(const u64 *words, u32 n) {
  u64 h = n;
  for (u32 i = 0; i < n; i++) {
    h = (h ^ words[i]) * 0x9e3779b97f4a7c15u;
    h ^= h >> 32;
  }
  return h;
}

// Where the question stands, or where there is room for it.
static Entry *slot_of(Answers *a, u64 hash, const u64 *words, u32 n) {
  for (u32 i = (u32)hash & (a->room - 1);; i = (i + 1) & (a->room - 1)) {
    Entry *e = &a->at[i];
    if (!e->words) return e;
    if (e->hash == hash && e->n == n && !memcmp(e->words, words, n * sizeof *words)) return e;
  }
}

static void make_room(Answers *a) {
  Answers more = {
      .sc = a->sc, .at = NEWS(a->sc, Entry, 2 * a->room), .n = a->n, .room = 2 * a->room};
  for (u32 i = 0; i < a->room; i++) {
    const Entry *e = &a->at[i];
    if (e->words) *slot_of(&more, e->hash, e->words, e->n) = *e;
  }
  *a = more;
}

Answer *sc_answer(struct Answers *a, const u64 *words, u32 n) {
  if (a->n >= a->room / 2) make_room(a);
  const u64 hash = hash_of(words, n);
  Entry *e = slot_of(a, hash, words, n);
  if (!e->words) {
    u64 *kept = NEWS(a->sc, u64, n);
    memcpy(kept, words, n * sizeof *words);
    *e = (Entry){hash, kept, n, {0}};
    a->n++;
  }
  return &e->answer;
}
