// options.c - SCHEDC_MODEL: how the model runs, read at each launch.
// "policy=random,seed=3,sms=2,lanes=together".
#define _GNU_SOURCE  // secure_getenv
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

enum { USUAL_SMS = 4, MOST_SMS = 64 };

static bool is(const char *word, size_t n, const char *name) {
  return strlen(name) == n && !memcmp(word, name, n);
}

static bool number(const char *value, size_t n, u64 *out) {
  char *end;
  *out = strtoull(value, &end, 10);
  return n && end == value + n && *value >= '0' && *value <= '9';
}

static bool option(const char *key, size_t key_n, const char *value, size_t n, Options *o) {
  static const char *const policies[] = {"early", "late", "random", "laggard"};
  u64 x = 0;
  if (is(key, key_n, "seed")) return number(value, n, &o->seed);
  if (is(key, key_n, "sms")) return number(value, n, &x) && x && x <= MOST_SMS && (o->sms = (u32)x);
  if (is(key, key_n, "devices"))
    return number(value, n, &x) && x && x <= MOST_DEVICES && (o->devices = (u32)x);
  if (is(key, key_n, "lanes")) {
    o->together = is(value, n, "together");
    return o->together || is(value, n, "apart");
  }
  for (u32 i = 0; i < COUNT(policies) && is(key, key_n, "policy"); i++) {
    o->policy = (Policy)i;
    if (is(value, n, policies[i])) return true;
  }
  return false;
}

const char *md_options(Options *out) {
  static _Thread_local char wrong[300];
  *out = (Options){.sms = USUAL_SMS, .devices = 1};
  const char *at = secure_getenv("SCHEDC_MODEL");
  while (at && *at) {
    size_t n = strcspn(at, ","), key = strcspn(at, "=");
    if (key >= n || !option(at, key, at + key + 1, n - key - 1, out)) {
      snprintf(wrong, sizeof wrong,
               "SCHEDC_MODEL is a list, with commas, of policy=early, late, random or laggard, "
               "seed=NUMBER, sms=NUMBER (1 to %d), devices=NUMBER (1 to %d) and lanes=apart or "
               "together; '%.*s' is none of them",
               MOST_SMS, MOST_DEVICES, (int)n, at);
      return wrong;
    }
    at += n + (at[n] == ',');
  }
  return NULL;
}
