// program.c - the experiment's programs: expressions and statements made, copied, substituted.
#include "program.h"

u32 draw(Program *p, u32 below) {
  p->seed ^= p->seed >> 12;
  p->seed ^= p->seed << 25;
  p->seed ^= p->seed >> 27;
  return (u32)((p->seed * 0x2545f4914f6cdd1dull >> 33) * below >> 31);
}

// ---- expressions

const Ex *ex(Program *p, XKind kind, int n, const Ex *a, const Ex *b) {
  Ex *x = NEW(p->sc, Ex);
  *x = (Ex){kind, n, a, b};
  return x;
}

const Ex *number(Program *p, int n) { return ex(p, E_INT, n, NULL, NULL); }

bool reads_loop(const Ex *x, int var) {
  if (!x) return false;
  return (x->kind == E_LOOP && x->n == var) || reads_loop(x->a, var) || reads_loop(x->b, var);
}

const Ex *with_loop(Program *p, const Ex *x, int var, const Ex *by) {
  if (!reads_loop(x, var)) return x;
  if (x->kind == E_LOOP) return by;
  return ex(p, x->kind, x->n, with_loop(p, x->a, var, by), with_loop(p, x->b, var, by));
}

// ---- statements

St *st(Program *p, SKind kind, int ref, St *body) {
  St *s = NEW(p->sc, St);
  *s = (St){.kind = kind, .ref = ref, .body = body};
  return s;
}

St *copy_list(Program *p, const St *s) {
  St *first = NULL, **end = &first;
  for (; s; s = s->next, end = &(*end)->next) {
    *end = NEW(p->sc, St);
    **end = *s;
    (*end)->next = NULL;
    (*end)->body = copy_list(p, s->body);
    (*end)->other = copy_list(p, s->other);
  }
  return first;
}

St *copy_one(Program *p, const St *s) {
  St one = *s;
  one.next = NULL;
  return copy_list(p, &one);
}

void substitute(Program *p, St *s, int var, const Ex *by) {
  for (; s; s = s->next) {
    s->x = with_loop(p, s->x, var, by);
    s->y = with_loop(p, s->y, var, by);
    substitute(p, s->body, var, by);
    substitute(p, s->other, var, by);
  }
}

bool list_reads_loop(const St *s, int var) {
  for (; s; s = s->next)
    if (reads_loop(s->x, var) || reads_loop(s->y, var) || list_reads_loop(s->body, var) ||
        list_reads_loop(s->other, var))
      return true;
  return false;
}

int size(const St *s) {
  int n = 0;
  for (; s; s = s->next) n += 1 + size(s->body) + size(s->other);
  return n;
}

int cells_in(const Program *p, int ring) {
  return p->ring[ring].copied || p->ring[ring].narrow ? 1 : CELLS;
}

void append(St **list, St *s) {
  while (*list) list = &(*list)->next;
  *list = s;
}
