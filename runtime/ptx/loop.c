// loop.c - which ways out of blocks lead back. In: a Ptx. Out: PtxBlock.back. Where blocks stand in
// the text says nothing: the end of a loop's body may stand before its beginning. Along ways from
// the entry, depth first, one leads back if it goes to a block that the way there went through. So
// every circle has one; and in a loop that has one entry, which are all that CUDA C's `for` makes,
// it leads to that.
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
