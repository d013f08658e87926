// schedule.c - which schedule a measurement was made of. In: a unit. Out: a hash of its tree, and
// for a sequence of its kernels' trees, each once, in order of their first launch. A tree has
// neither comments nor line breaks nor a formatter's choices. Cases are left out: they only choose
// values, which a measurement says by itself.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "runtime/tune/store.h"

// A copy of a unit without its cases; the items that are left share what is below them.
static Node *without_cases(Sc *sc, const Node *unit) {
  Node *copy = NEW(sc, Node), **end = &copy->a;
  *copy = *unit;
  copy->next = NULL;
  for (const Node *i = unit->a; i; i = i->next) {
    if (i->kind == ND_CASE) continue;
    Node *item = NEW(sc, Node);
    *item = *i;
    *end = item;
    end = &item->next;
  }
  *end = NULL;
  return copy;
}

static bool launched_before(const Node *unit, const Node *launch) {
  const Node *i = unit->a;
  while (i != launch && !(i->kind == ND_LAUNCH && i->name == launch->name)) i = i->next;
  return i != launch;
}

void sc_schedule_hash(Sc *sc, const Ast *ast, const Node *unit, char hash[33]) {
  Node file = *ast->file, **end = &file.a;
  Str text = {.sc = sc};
  *end = without_cases(sc, unit);
  end = &(*end)->next;
  for (const Node *i = unit->a; i && unit->kind == ND_SEQUENCE; i = i->next) {
    const Node *kernel = i->kind == ND_LAUNCH ? sc_unit(ast, i->name) : NULL;
    if (!kernel || launched_before(unit, i)) continue;
    *end = without_cases(sc, kernel);
    end = &(*end)->next;
  }
  sc_print_ast(&text, &(Ast){.text = ast->text, .file = &file});
  XXH128_hash_t h = XXH3_128bits(text.at, text.n);
  const u64 half[2] = {h.high64, h.low64};
  for (int i = 0; i < 32; i++) hash[i] = "0123456789abcdef"[half[i / 16] >> (60 - i % 16 * 4) & 15];
  hash[32] = 0;
}
