// roundtrip.h - what must hold of every text: parsing ends, and a text without errors survives the
// formatter with its tree and comments, which leaves its own output alone. Used by unit tests and
// the fuzzer.
#ifndef ROUNDTRIP_H
#define ROUNDTRIP_H

#include <string.h>

#include "lang/ast.h"

static inline const Ast *parse_text(Sc *sc, const char *bytes, size_t n) {
  const Text *text = sc_text(sc, "text.sched", bytes, n);
  sc->text = text;
  return sc_parse(sc, text);
}

static inline const char *tree_text(Sc *sc, const Ast *ast) {
  Str s = {.sc = sc};
  sc_print_ast(&s, ast);
  return s.at;
}

static inline Str source_text(Sc *sc, const Ast *ast) {
  Str s = {.sc = sc};
  str_puts(&s, "");
  sc_print_source(&s, ast);
  return s;
}

static inline bool same_comments(const Ast *a, const Ast *b) {
  if (a->comments.n != b->comments.n) return false;
  for (u32 i = 0; i < a->comments.n; i++) {
    Span x = a->comments.at[i].span, y = b->comments.at[i].span;
    if (x.hi - x.lo != y.hi - y.lo) return false;
    if (memcmp(a->text->at + x.lo, b->text->at + y.lo, x.hi - x.lo) != 0) return false;
  }
  return true;
}

// NULL, or what is wrong. `sc` is fresh, and its `unwind` set.
static inline const char *roundtrip(Sc *sc, const char *bytes, size_t n) {
  const Ast *ast = parse_text(sc, bytes, n);
  if (!ast->file) return "no tree";
  if (sc->errors) return NULL;
  Str once = source_text(sc, ast);
  const Ast *again = parse_text(sc, once.at, once.n);
  if (sc->errors) return "the formatted text is not read without error";
  if (strcmp(tree_text(sc, ast), tree_text(sc, again)) != 0)
    return "the formatted text has another tree";
  if (!same_comments(ast, again)) return "the formatted text has other comments";
  Str twice = source_text(sc, again);
  if (strcmp(once.at, twice.at) != 0) return "formatting twice changes something";
  return NULL;
}

#endif
