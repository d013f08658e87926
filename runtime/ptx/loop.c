// loop.c - finds the back edges of the control-flow graph. In: a Ptx. Out: PtxBlock.back. The order
// of blocks in the text says nothing: the end of a loop's body may stand before its beginning. In a
// depth-first search from the entry, an edge is a back edge if it leads to a block that the search
// has entered and not yet left. So every cycle has one. In a loop with one entry, and CUDA C's
// `for` makes no others, it leads to that entry.
#include "runtime/ptx/ptx.h"

void sc_ptx_find_loops(Sc *sc, Ptx *ptx) {
  enum { LEFT = 2 * REACHED };  // beside the ways that were followed
  u8 *state = NEWS(sc, u8, ptx->block.n);
  VEC(u32) path = {0};
  state[0] = REACHED;
  PUSH(sc, &path, 0);
  while (path.n) {
    u32 b = path.at[path.n - 1];
    PtxBlock *at = &ptx->block.at[b];
    u8 way = !(state[b] & GOES_NEXT) ? GOES_NEXT : GOES_JUMP;
    if (state[b] & way) {
      state[b] |= LEFT;
      path.n--;
      continue;
    }
    state[b] |= way;
    u32 to = way == GOES_NEXT ? at->next : at->jump;
    if (to == SC_NONE) continue;
    if (state[to] & REACHED && !(state[to] & LEFT)) at->back |= way;
    if (state[to] & REACHED) continue;
    state[to] |= REACHED;
    PUSH(sc, &path, to);
  }
}
