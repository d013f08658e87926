// memory.c - memory of the model's own. Where the host has none, the launch ends.
#include <stdlib.h>
#include <string.h>

#include "model.h"

static void *have(void *block) {
  if (!block) md_fault("host", NULL, "the host has no memory");
  return block;
}

void *md_new(size_t bytes) { return have(calloc(1, bytes ? bytes : 1)); }
void *md_more(void *block, size_t bytes) { return have(realloc(block, bytes)); }
