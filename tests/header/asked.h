// asked.h - what is asked of the driver, as text: header.py compares what driver.c prints with what
// expect.c does.
#ifndef ASKED_H
#define ASKED_H

#include <stdint.h>
#include <stdio.h>

static void say_map(const void *map, int type, unsigned rank, const uint64_t *extent,
                    const uint64_t *stride, const uint32_t *box, const uint32_t *step,
                    int interleave, int swizzle, int promotion, int fill) {
  printf("map %d %u", type, rank);
  for (int i = 0; i < 5; i++) printf(" %llu", (unsigned long long)extent[i]);
  for (int i = 0; i < 4; i++) printf(" %llu", (unsigned long long)stride[i]);
  for (int i = 0; i < 5; i++) printf(" %u %u", box[i], step[i]);
  printf(" %d %d %d %d %d\n", (uintptr_t)map % 64 == 0, interleave, swizzle, promotion, fill);
}

static void say_clusters(const char *function, const unsigned grid[3], const unsigned block[3],
                         unsigned shared) {
  printf("clusters of %s %u %u %u %u %u %u %u\n", function, grid[0], grid[1], grid[2], block[0],
         block[1], block[2], shared);
}

// size: of the grid, of a CTA, and the shared memory; overlaps: it is the value of the attribute by
// which it may; param: tensor maps, then the block of `bytes`.
static void say_launch(const char *function, int zeroing, int overlaps, const unsigned size[7],
                       void **param, unsigned maps, size_t bytes, void **extra) {
  const unsigned char *block = (const unsigned char *)param[maps];
  printf("launch %s %d %d", function, zeroing, overlaps);
  for (int i = 0; i < 7; i++) printf(" %u", size[i]);
  printf(" %d\n", extra == NULL);
  for (unsigned i = 0; i < maps; i++) printf("of %p\n", *(void **)param[i]);
  printf("block ");
  for (size_t i = 0; i < bytes; i++) printf("%02x", block[i]);
  printf("\n");
}

#endif
