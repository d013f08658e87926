// keys.c - numbers of keys: names, questions, whatever bytes tell apart. Open addressing. Keys are
// compared whole, and copied: no two share a number.
#include "base/base.h"

#include <string.h>

static u64 mixed(u64 h) {
  h *= 0x9e3779b97f4a7c15u;
  return h ^ h >> 32;
}

static u32 hash_of(u32 kind, const u8 *at, size_t n) {
  u64 h = mixed((u64)kind << 32 | n), word;
  for (size_t step; n; at += step, n -= step) {
    step = n < sizeof word ? n : sizeof word;
    word = 0;
    memcpy(&word, at, step);
    h = mixed(h ^ word);
  }
  return (u32)h;
}

// Where the key stands, or where there is room for it.
static Key *slot_of(const Keys *keys, const Key *key) {
  for (u32 i = key->hash & (keys->room - 1);; i = (i + 1) & (keys->room - 1)) {
    Key *k = &keys->at[i];
    bool same = k->hash == key->hash && k->kind == key->kind && k->n == key->n;
    if (!k->at || (same && !memcmp(k->at, key->at, k->n))) return k;
  }
}

static void make_room(Sc *sc, Keys *keys) {
  Keys more = {.n = keys->n, .room = keys->room ? 2 * keys->room : 64};
  more.at = NEWS(sc, Key, more.room);
  for (u32 i = 0; i < keys->room; i++)
    if (keys->at[i].at) *slot_of(&more, &keys->at[i]) = keys->at[i];
  *keys = more;
}

Key *sc_key(Sc *sc, Keys *keys, u32 kind, const void *at, size_t n) {
  if (keys->n >= keys->room / 2) make_room(sc, keys);
  const Key key = {at, (u32)n, kind, hash_of(kind, at, n), 0};
  Key *slot = slot_of(keys, &key);
  if (!slot->at) {
    u8 *kept = NEWS(sc, u8, n + 1);
    memcpy(kept, at, n);
    *slot = key;
    slot->at = kept;
    keys->n++;
  }
  return slot;
}

u32 sc_key_number(const Keys *keys, u32 kind, const void *at, size_t n) {
  const Key key = {at, (u32)n, kind, hash_of(kind, at, n), 0};
  return keys->room ? slot_of(keys, &key)->number : 0;
}

void sc_keys_clear(Keys *keys) {
  keys->n = 0;
  if (keys->room) memset(keys->at, 0, sizeof *keys->at * keys->room);
}
