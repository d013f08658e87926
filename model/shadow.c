// shadow.c - who touched each word of memory last: a cell for each four bytes, with the stamp of
// its last write and the set of the stamps of what was read and added since. Stamps and sets are
// numbered, and equal ones have one number; so a tile of which all words have the same history
// costs a comparison a word. A word that is touched in part is split into four cells, one a byte.
// After FastTrack (Flanagan and Freund, 2009), with sets for readers, because a stage has several.
//
// An access races with an earlier one of the same place, if one of them writes, or both add and not
// both by threads or both by the copy engine [T3], and nothing puts the one before the other: for
// what threads do, the barriers; for what an engine does after threads, a fence.proxy.async on the
// way as well [P1, P3].
#include <stdlib.h>
#include <string.h>

#include "model.h"

enum { WORD = 4 };
static const u32 SPLIT = 1u << 31;  // Cell.write: its bytes have cells of their own

typedef struct Set {
  u32 n, first;  // members are member.at[first …]
  bool adds;     // some are additions; else all are reads
} Set;
static LIST(Stamp) stamps;
static LIST(Set) sets;
static LIST(u32) member;
static LIST(Cell) split;  // four in a row
static LIST(u32) unused;  // of those

// set and stamp -> the set with it
typedef struct Added {
  u32 set, stamp, result;
} Added;
enum { ADDED = 1 << 14 };
static Added added[ADDED];

void md_forget_accesses(void) {
  stamps.n = sets.n = member.n = split.n = unused.n = 0;
  memset(added, 0, sizeof added);
  APPEND(&stamps, ((Stamp){0}));
  APPEND(&stamps, ((Stamp){0}));  // STAMP_MBARRIER
  APPEND(&sets, ((Set){0}));
}

u32 md_stamp(const Stamp *s) {
  APPEND(&stamps, *s);
  return stamps.n - 1;
}

Actor md_actor(const Thread *t) { return (Actor){t->cta->gang, {t->mind}, 1}; }

// ---- before

static const Know *of_gang(const Know *k, u32 gang) {
  for (u32 i = 0; k && i < k->foreigners; i++) {
    if (k->foreign[i].gang == gang) return k->foreign[i].know;
  }
  return NULL;
}

static bool mind_knows(const Mind *m, const Gang *g, const Stamp *s, u32 clock) {
  if (s->gang != g->id) {
    const Know *k = of_gang(m->know, s->gang);
    return k && md_clock(k, clock)[s->comp] >= s->epoch;
  }
  if (s->comp == m->comp && s->agency == BY_THREAD)
    return clock == KNOWN || m->fenced[clock] >= s->epoch;
  return m->know && md_clock(m->know, clock)[s->comp] >= s->epoch;
}

// Through the async proxy? (st.async is asynchronous, but of the generic one.)
static bool by_engine(const Stamp *s) { return s->agency != BY_THREAD && s->agency != BY_SEND; }

// Did `s` come before what the actor does now, through that proxy?
static bool precedes(const Actor *a, const Stamp *s, bool engine, bool global) {
  u32 clock = !engine || s->agency != BY_THREAD ? KNOWN : global ? KNOWN_GLOBAL : KNOWN_SHARED;
  for (u32 i = 0; i < a->minds; i++) {
    if (!mind_knows(a->mind[i], a->gang, s, clock)) return false;
  }
  return true;
}

static bool conflict(const Stamp *s, const Stamp *now) {
  if (s->deed == DEED_READ && now->deed == DEED_READ) return false;
  return s->deed != DEED_ADD || now->deed != DEED_ADD ||
         (s->agency == BY_THREAD) != (now->agency == BY_THREAD);
}

// ---- in words

static const char *deed(const Stamp *s) {
  static const char *const words[][3] = {
      [BY_THREAD] = {"reads", "writes", "adds to"},
      [BY_COPY_IN] = {"copies in from", "copies into", ""},
      [BY_COPY_OUT] = {"copies out of", "copies out to", "adds, by the copy engine, to"},
      [BY_PRODUCT] = {"reads, by a product,", "", ""},
      [BY_SEND] = {"", "sends (st.async) to", ""}};
  return words[s->agency][s->deed];
}

static const char *rule(const Actor *a, const Stamp *s, const Stamp *now, bool global) {
  bool engine = by_engine(now);
  if (s->deed == DEED_ADD && now->deed == DEED_ADD) return "T3";
  if (engine && s->agency == BY_THREAD && precedes(a, s, false, global))
    return now->deed == DEED_READ ? "P1" : "P3";
  if (s->agency == BY_COPY_IN) return "T1";
  if (s->agency == BY_COPY_OUT) return s->deed == DEED_READ ? "T2" : "H6";
  if (s->agency == BY_PRODUCT) return "W3";
  if (global) return "H5";
  return "H1";
}

static const char *help(const Actor *a, const Stamp *s, const Stamp *now, bool global) {
  const char *r = rule(a, s, now, global);
  if (*r == 'P') return "between the two lies no fence.proxy.async";
  if (s->gang == a->gang->id && now->agency == BY_THREAD && s->agency == BY_THREAD &&
      s->thread / LANES == now->thread / LANES)
    return "both are lanes of one warp: where hardware keeps these together nothing comes of it, "
           "but PTX lets them "
           "part";
  return "nothing that the later thread waited for says that the earlier one had done it";
}

static void race(const Actor *a, const Stamp *s, const Stamp *now, const Cta *shared, u64 at)
    __attribute__((noreturn));
static void race(const Actor *a, const Stamp *s, const Stamp *now, const Cta *shared, u64 at) {
  bool global = !shared;
  const Thread *t = &a->gang->cta[now->thread / a->gang->cta->threads]
                         .thread[now->thread % a->gang->cta->threads];
  const char *place = global ? md_global_name(at) : md_shared_name(shared, (u32)at);
  if (s->gang == a->gang->id) {
    const Thread *u =
        &a->gang->cta[s->thread / a->gang->cta->threads].thread[s->thread % a->gang->cta->threads];
    md_note(s->where, "%s %s it", md_thread_name(u), deed(s));
  } else {
    md_note(s->where, "a thread of another cluster (number %u) %s it", s->gang - md.first_gang,
            deed(s));
  }
  md_note(NULL, "%s", help(a, s, now, global));
  md_fault(rule(a, s, now, global), now->where, "%s %s %s in a race", md_thread_name(t), deed(now),
           place);
}

// ---- sets

// Whatever comes after `now` comes after `old` then. Others than one's own are asked about if
// `all`.
static bool supersedes(const Actor *a, const Stamp *now, const Stamp *old, bool all) {
  if (old->deed != now->deed || (old->agency == BY_THREAD) != (now->agency == BY_THREAD))
    return false;
  if (old->gang == now->gang && old->comp == now->comp) return true;
  return all && now->agency == BY_THREAD && old->agency == BY_THREAD &&
         precedes(a, old, false, false);
}

static bool is_power_of_two(u32 n) { return n && !(n & (n - 1)); }

static u32 add_to(const Actor *a, u32 set, u32 stamp) {
  u32 h = set * 0x9e3779b9u ^ stamp * 0x85ebca6bu;
  Added *m = &added[h >> 16 & (ADDED - 1)];
  if (m->set == set && m->stamp == stamp && m->result) return m->result;
  const Stamp *now = &stamps.at[stamp];
  u32 first = member.n, n = sets.at[set].n, from = sets.at[set].first;
  bool adds = sets.at[set].adds || now->deed == DEED_ADD,
       all = is_power_of_two(n);  // so that it seldom costs anything
  for (u32 i = 0; i < n; i++) {
    u32 old = member.at[from + i];
    if (!supersedes(a, now, &stamps.at[old], all)) APPEND(&member, old);
  }
  APPEND(&member, stamp);
  APPEND(&sets, ((Set){member.n - first, first, adds}));
  *m = (Added){set, stamp, sets.n - 1};
  return m->result;
}

// ---- accesses

// One that has the history `c`: checked, and what its history is then.
static Cell touched(const Actor *a, Cell c, u32 stamp, const Cta *shared, u64 at) {
  const Stamp *now = &stamps.at[stamp];
  bool engine = by_engine(now);
  if (c.write == STAMP_MBARRIER)
    md_fault("R10", now->where, "%s an mbarrier, at %s", deed(now),
             md_shared_name(shared, (u32)at));
  if (c.write) {
    const Stamp *w = &stamps.at[c.write];
    if (!precedes(a, w, engine, !shared)) race(a, w, now, shared, at);
  }
  const Set *s = &sets.at[c.set];
  for (u32 i = 0; i < s->n && (now->deed != DEED_READ || s->adds); i++) {
    const Stamp *r = &stamps.at[member.at[s->first + i]];
    if (conflict(r, now) && !precedes(a, r, engine, !shared)) race(a, r, now, shared, at);
  }
  if (now->deed == DEED_WRITE) return (Cell){stamp, 0};
  return (Cell){c.write, add_to(a, c.set, stamp)};
}

static Cell *cell_of(const Cta *shared, u64 at) {
  return shared ? &shared->cell[at / WORD] : md_global_cell(at);
}

static void split_word(Cell *c) {
  u32 at;
  if (unused.n) {
    at = unused.at[--unused.n];
  } else {
    at = split.n;
    for (u32 i = 0; i < WORD; i++) APPEND(&split, *c);
  }
  for (u32 i = 0; i < WORD; i++) split.at[at + i] = *c;
  *c = (Cell){SPLIT | at, 0};
}

static bool same(Cell a, Cell b) { return a.write == b.write && a.set == b.set; }

// Bytes of a word that is split, or becomes so.
static void touch_part(const Actor *a, u32 stamp, Cta *shared, u64 at, u32 bytes) {
  Cell *c = cell_of(shared, at);
  if (!(c->write & SPLIT)) split_word(c);
  u32 first = c->write & ~SPLIT;
  for (u32 i = 0; i < bytes; i++) {
    Cell *part = &split.at[first + (at + i) % WORD];
    *part = touched(a, *part, stamp, shared, at + i);
  }
  const Cell *p = &split.at[first];
  if (!same(p[0], p[1]) || !same(p[0], p[2]) || !same(p[0], p[3])) return;
  *c = p[0];
  APPEND(&unused, first);
}

void md_touch(const Actor *a, u32 stamp, Cta *shared, u64 at, u64 bytes) {
  Cell was = {MD_NONE, 0}, is = was;
  if (md.lenient) return;
  while (bytes) {
    u32 n = WORD - (u32)(at % WORD);
    if (n > bytes) n = (u32)bytes;
    Cell *c = cell_of(shared, at);
    if (n < WORD || c->write & SPLIT) {
      touch_part(a, stamp, shared, at, n);
    } else if (same(*c, was)) {
      *c = is;
    } else {
      was = *c;
      is = touched(a, was, stamp, shared, at);
      *c = is;
    }
    at += n;
    bytes -= n;
  }
}
