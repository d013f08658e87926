// warp.c - lanes that meet: instructions that all lanes of a warp run together (.sync.aligned,
// shuffles and votes of full warps), and what they exchange. A lane that comes to one waits for the
// others; one that comes to another one, or leaves the kernel, has parted from its warp, which none
// of these instructions allows.
#include <stdlib.h>
#include <string.h>

#include "elements.h"
#include "model.h"

const char *md_meet_name(u32 op) {
  static const char *const names[] = {[MEET_VALUE] = "a shuffle",
                                      [MEET_ANY] = "a vote",
                                      [MEET_SYNC] = "bar.warp.sync",
                                      [MEET_BAR_SYNC] = "bar.sync",
                                      [MEET_BAR_ARRIVE] = "bar.arrive",
                                      [MEET_REGISTERS] = "setmaxnreg",
                                      [MEET_COMMIT] = "wgmma.commit_group",
                                      [MEET_WAIT] = "wgmma.wait_group",
                                      [MEET_LDMATRIX] = "ldmatrix",
                                      [MEET_STMATRIX] = "stmatrix",
                                      [MEET_MMA] = "mma.sync"};
  return names[op];
}

static void parted(Thread *t, u32 op, u64 arg) {
  Warp *w = t->warp;
  const Thread *other = w->waiters;
  md_note(other->where, "%s waits at %s for all lanes of the warp", md_thread_name(other),
          md_meet_name(w->op));
  if (op == w->op)
    md_fault(
        "W5", t->where, "%s is at %s with another operand (%llu, not %llu): the warp has parted",
        md_thread_name(t), md_meet_name(op), (unsigned long long)arg, (unsigned long long)w->arg);
  md_fault("W5", t->where, "%s is at %s while lanes of its warp are at %s: the warp has parted",
           md_thread_name(t), md_meet_name(op), md_meet_name(w->op));
}

bool md_meet(u32 op, u64 arg) {
  Thread *t = md.self;
  Warp *w = t->warp;
  if (!w->met) {
    w->op = op;
    w->arg = arg;
  } else if (w->op != op || w->arg != arg) {
    parted(t, op, arg);
  }
  if (++w->met == LANES) return true;
  u32 round = w->round;
  while (w->round == round)
    md_wait(&w->waiters, (Waiting){.what = WAITS_LANES, .a = op, .where = t->where});
  return false;
}

void md_part(void) {
  Warp *w = md.self->warp;
  w->met = 0;
  w->round++;
  md_wake(&w->waiters);
}

void md_converge(u32 op, u64 arg) {
  if (md_meet(op, arg)) md_part();
}

static u32 lane_of(const Thread *t) { return t->number % LANES; }

// ---- shuffles and votes

unsigned md_lane_value(unsigned x, unsigned from) {
  Thread *t = md.self;
  t->where = HERE;
  u32 *value = t->warp->value[t->warp->round & 1];
  value[lane_of(t)] = x;
  md_converge(MEET_VALUE, 0);
  return value[from % LANES];
}

int md_any(int x) {
  Thread *t = md.self;
  t->where = HERE;
  u32 *value = t->warp->value[t->warp->round & 1], any = 0;
  value[lane_of(t)] = x != 0;
  md_converge(MEET_ANY, 0);
  for (u32 i = 0; i < LANES; i++) any |= value[i];
  return (int)any;
}

// The only one of these that orders accesses of memory (PTX ISA 9.0, 9.7.13.3).
void md_warp_sync(void) {
  Thread *t = md.self;
  Warp *w = t->warp;
  t->where = HERE;
  if (md_meet(MEET_SYNC, 0)) {
    Brings all = {0};
    for (u32 i = 0; i < LANES; i++) md_tell(&all, w->lane[i].mind);
    Know *k = md_settle(&all);
    for (u32 i = 0; i < LANES; i++) md_learn(w->lane[i].mind, k);
    md_drop(k);
    free(all.at);
    md_part();
  }
}

// ---- blocks of shared memory: each lane names a row of 16 bytes

enum { ROW = 16 };

static void touch_row(Thread *t, u32 at, Deed deed) {
  Stamp s = {t->cta->gang->id, t->mind->comp, t->mind->epoch, t->id, t->where, (u8)deed, BY_THREAD};
  Actor a = md_actor(t);
  md_touch(&a, md_stamp(&s), t->cta, at, ROW);
}

// Row r of block b is named by lane 8 b + r; lane l has elements 2 (l % 4) and the next of row l /
// 4 of each.
static void fragment(u32 lane, u32 block, u32 *owner, u32 *byte) {
  *owner = 8 * block + lane / 4;
  *byte = 4 * (lane % 4);
}

// Of a block that ldmatrix transposes, lane l has columns l / 4 of rows 2 (l % 4) and the next.
static u32 turned_pair(u32 (*words)[4], u32 lane, u32 block) {
  u32 pair = 0;
  for (u32 i = 0; i < 2; i++) {
    const u8 *row = (const u8 *)words[8 * block + 2 * (lane % 4) + i];
    memcpy((u8 *)&pair + 2 * i, row + 2 * (lane / 4), 2);
  }
  return pair;
}

void md_ldmatrix(unsigned at, unsigned *x, int turned) {
  Thread *t = md.self;
  Warp *w = t->warp;
  t->where = HERE;
  u32 r = w->round & 1, offset = md_offset(t->cta, at, ROW), lane = lane_of(t), owner, byte;
  if (at % ROW) md_fault("T5", t->where, "a row of ldmatrix is not at a multiple of 16 bytes");
  touch_row(t, offset, DEED_READ);
  memcpy(w->words[r][lane], t->cta->smem + offset, ROW);
  md_converge(MEET_LDMATRIX, (u64)turned);
  for (u32 b = 0; b < 4; b++) {
    if (turned) {
      x[b] = turned_pair(w->words[r], lane, b);
      continue;
    }
    fragment(lane, b, &owner, &byte);
    memcpy(&x[b], (u8 *)w->words[r][owner] + byte, 4);
  }
}

void md_stmatrix(unsigned at, const unsigned *x) {
  Thread *t = md.self;
  Warp *w = t->warp;
  t->where = HERE;
  u32 r = w->round & 1, offset = md_offset(t->cta, at, ROW), lane = lane_of(t), owner, byte, row[4];
  if (at % ROW) md_fault("T5", t->where, "a row of stmatrix is not at a multiple of 16 bytes");
  for (u32 b = 0; b < 4; b++) w->words[r][lane][b] = x[b];
  md_converge(MEET_STMATRIX, 0);
  touch_row(t, offset, DEED_WRITE);
  for (u32 c = 0; c < 4; c++) {  // this lane's row: of block lane / 8, row lane % 8
    fragment(4 * (lane % 8) + c, lane / 8, &owner, &byte);
    row[c] = w->words[r][4 * (lane % 8) + c][lane / 8];
  }
  memcpy(t->cta->smem + offset, row, ROW);
}

// ---- m16n8k16, of 8-bit elements m16n8k32: d += a b

void md_mma(float *d, const unsigned *a, unsigned b0, unsigned b1, int elem) {
  Thread *t = md.self;
  Warp *w = t->warp;
  t->where = HERE;
  u32 r = w->round & 1, lane = lane_of(t);
  for (u32 i = 0; i < 4; i++) w->words[r][lane][i] = a[i];
  const float *value = md_values[elem];
  u32(*b)[LANES] = w->b[r];
  b[0][lane] = b0;
  b[1][lane] = b1;
  md_converge(MEET_MMA, 0);
  // four lanes have half of a row, `each` elements of it in a word
  const u32 bits = elem >= MD_E4M3 ? 8 : 16, each = 32 / bits, most = (1u << bits) - 1;
  for (u32 e = 0; e < 4; e++) {
    u32 row = lane / 4 + 8 * (e >> 1), col = 2 * (lane % 4) + (e & 1);
    float sum = d[e];
    for (u32 k = 0; k < 8 * each; k++) {
      u32 half = k / (4 * each), of_four = k % (4 * each) / each, shift = bits * (k % each);
      u32 x = w->words[r][4 * (row % 8) + of_four][row / 8 + 2 * half] >> shift;
      sum += value[x & most] * value[b[half][4 * col + of_four] >> shift & most];
    }
    d[e] = sum;
  }
}
