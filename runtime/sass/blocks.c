// blocks.c - a function's instructions in the order in which they run. In: instructions as they
// lie, and where branches go. Out: those that are reached, each before what it leads to, but for
// the ways back of loops; and of each the loop that it is in. ptxas puts what is rare out of the
// way, and the arms of an `if` in any order: where code lies says little of when it runs. The idea:
// depth first over basic blocks, where ways out of a loop are taken first and thus end up behind
// it.
#include "runtime/sass/sass.h"

#include <string.h>

typedef struct Block {
  u32 lo, hi;        // instructions
  u32 next[2];       // the block that the branch goes to, and the one below; SC_NONE: there is none
  u32 loop;          // innermost; SC_NONE: it is in none
  u32 taken;         // of a search: successors that were taken
  bool seen, ended;  // of a search: it has come to the block; it has left it for good
} Block;

typedef struct Natural {  // a loop: what leads back to its head without leaving it
  u32 head, blocks;
  bool *in;  // by block
} Natural;

typedef struct Graph {
  Sc *sc;
  SassFunction *function;
  VEC(Block) block;
  VEC(Natural) loop;
  VEC(u32) way;    // of a search: from the entry to the block that is looked at
  VEC(u32) ended;  // of a search: the blocks that it has left for good, in that order
} Graph;

static bool ends_block(const Sass *s) { return s->kind == SASS_BRANCH || s->kind == SASS_EXIT; }

// Returns the block that begins at each instruction; SC_NONE: none does.
static u32 *find_blocks(Graph *g) {
  const SassFunction *f = g->function;
  u32 n = f->code.n, *at = NEWS(g->sc, u32, n + 1);
  bool *begins = NEWS(g->sc, bool, n + 1);
  for (u32 i = 0; i < n; i++) {
    const Sass *s = &f->code.at[i];
    if (ends_block(s)) begins[i + 1] = true;
    if (s->target < n) begins[s->target] = true;
  }
  for (u32 i = 0; i < n; i++) {
    Block b = {.lo = i, .hi = i + 1, .next = {SC_NONE, SC_NONE}, .loop = SC_NONE};
    at[i] = begins[i] || !i ? g->block.n : SC_NONE;
    if (at[i] != SC_NONE) PUSH(g->sc, &g->block, b);
    else g->block.at[g->block.n - 1].hi = i + 1;
  }
  return at;
}

static void find_successors(Graph *g, const u32 *at) {
  const SassFunction *f = g->function;
  for (u32 i = 0; i < g->block.n; i++) {
    Block *b = &g->block.at[i];
    const Sass *last = &f->code.at[b->hi - 1];
    if (last->target < f->code.n) b->next[0] = at[last->target];
    if (!last->always && i + 1 < g->block.n) b->next[1] = i + 1;
  }
}

// ---- loops

// What leads to a block of the loop leads back to its head.
static void fill(const Graph *g, Natural *l) {
  for (bool more = true; more;) {
    more = false;
    for (u32 i = 0; i < g->block.n; i++) {
      const Block *b = &g->block.at[i];
      for (u32 s = 0; s < 2 && !l->in[i] && b->seen; s++)
        if (b->next[s] != SC_NONE && b->next[s] != l->head && l->in[b->next[s]])
          l->in[i] = more = true;
    }
  }
  l->blocks = 0;
  for (u32 i = 0; i < g->block.n; i++) l->blocks += l->in[i];
}

static Natural *loop_at(Graph *g, u32 head) {
  for (u32 i = 0; i < g->loop.n; i++)
    if (g->loop.at[i].head == head) return &g->loop.at[i];
  Natural l = {.head = head, .in = NEWS(g->sc, bool, g->block.n)};
  SassNatural made = {.outer = SC_NONE};
  l.in[head] = true;
  PUSH(g->sc, &g->loop, l);
  PUSH(g->sc, &g->function->loop, made);
  return &g->loop.at[g->loop.n - 1];
}

static void add_way_back(Graph *g, u32 from, u32 head) {
  Natural *l = loop_at(g, head);
  const Sass *last = &g->function->code.at[g->block.at[from].hi - 1];
  l->in[from] = true;
  sc_add_line(g->sc, &g->function->loop.at[l - g->loop.at].lines, last->line);
}

// The innermost loop of each block, and the next one around each loop.
static void nest(Graph *g) {
  SassFunction *f = g->function;
  for (u32 l = 0; l < g->loop.n; l++) fill(g, &g->loop.at[l]);
  for (u32 l = 0; l < g->loop.n; l++) {
    const Natural *loop = &g->loop.at[l];
    u32 *outer = &f->loop.at[l].outer;
    for (u32 i = 0; i < g->block.n; i++) {
      u32 *innermost = &g->block.at[i].loop;
      if (loop->in[i] && (*innermost == SC_NONE || g->loop.at[*innermost].blocks > loop->blocks))
        *innermost = l;
    }
    for (u32 o = 0; o < g->loop.n; o++) {
      const Natural *around = &g->loop.at[o];
      if (around->blocks <= loop->blocks || !around->in[loop->head]) continue;
      if (*outer == SC_NONE || g->loop.at[*outer].blocks > around->blocks) *outer = o;
    }
  }
}

// ---- the search

// How many loops hold both.
static u32 shared(const Graph *g, u32 a, u32 b) {
  u32 n = 0;
  for (u32 l = 0; l < g->loop.n && b != SC_NONE; l++)
    n += g->loop.at[l].in[a] && g->loop.at[l].in[b];
  return n;
}

// The successor that is to be taken now; SC_NONE: it does not exist.
static u32 take(Graph *g, u32 block, bool by_loops) {
  Block *b = &g->block.at[block];
  bool below = by_loops && shared(g, block, b->next[1]) < shared(g, block, b->next[0]);
  return b->next[b->taken++ ? !below : below];
}

static void end_block(Graph *g, u32 block) {
  g->block.at[block].ended = true;
  PUSH(g->sc, &g->ended, block);
  g->way.n--;
}

static void begin_block(Graph *g, u32 block) {
  g->block.at[block].seen = true;
  PUSH(g->sc, &g->way, block);
}

// From the entry over all that is reached. The first search finds the loops, and the second goes by
// them.
static void search(Graph *g, bool finds) {
  g->ended.n = 0;
  for (u32 i = 0; i < g->block.n; i++) {
    Block *b = &g->block.at[i];
    b->taken = 0, b->seen = b->ended = false;
  }
  begin_block(g, 0);
  while (g->way.n) {
    u32 block = g->way.at[g->way.n - 1];
    if (g->block.at[block].taken == 2) {
      end_block(g, block);
      continue;
    }
    u32 to = take(g, block, !finds);
    if (to == SC_NONE) continue;
    if (!g->block.at[to].seen) begin_block(g, to);
    else if (finds && !g->block.at[to].ended) add_way_back(g, block, to);
  }
}

void sc_order_sass(Sc *sc, SassFunction *f) {
  Graph g = {.sc = sc, .function = f};
  if (!f->code.n) return;
  find_successors(&g, find_blocks(&g));
  search(&g, true);
  nest(&g);
  search(&g, false);
  Sass *lay = f->code.at;
  f->code.at = NULL;
  f->code.n = f->code.cap = 0;
  for (u32 i = g.ended.n; i-- > 0;) {
    const Block *b = &g.block.at[g.ended.at[i]];
    for (u32 at = b->lo; at < b->hi; at++) {
      lay[at].loop = b->loop;
      PUSH(sc, &f->code, lay[at]);
    }
  }
}
