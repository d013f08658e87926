// cover.c - which combinations of a case's choices are tried: all of them, or few in which each
// pair of values of two lines occurs together (a greedy pairwise cover, the same every time).
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_ALL = 4096 };

// Is the pair of line i's value a and line j's value b (i < j) still to be seen?
static bool *pair_at(Cover *c, size_t i, size_t a, size_t j, size_t b) {
  return &c->open[((i * c->widest + a) * c->lines + j) * c->widest + b];
}

void cover_start(Cover *c, const size_t *counts, size_t lines, bool all) {
  *c = (Cover){.lines = lines, .counts = counts, .widest = 1, .total = 1};
  for (size_t i = 0; i < lines; i++) {
    if (counts[i] > c->widest) c->widest = counts[i];
    if (__builtin_mul_overflow(c->total, counts[i], &c->total) || c->total > MAX_ALL)
      c->total = MAX_ALL + 1;
  }
  c->pairwise = !all || c->total > MAX_ALL;
  if (!c->pairwise) return;
  c->open = need(calloc(lines * lines * c->widest * c->widest + 1, 1));
  for (size_t i = 0; i < lines; i++) {
    for (size_t j = i + 1; j < lines; j++) {
      for (size_t a = 0; a < counts[i]; a++) {
        for (size_t b = 0; b < counts[j]; b++) {
          *pair_at(c, i, a, j, b) = counts[i] > 1 && counts[j] > 1;
          c->left += counts[i] > 1 && counts[j] > 1;
        }
      }
    }
  }
}

void cover_end(Cover *c) { free(c->open); }

static bool next_of_all(Cover *c, size_t *choice) {
  if (c->given == c->total) return false;
  size_t n = c->given++;
  for (size_t i = 0; i < c->lines; i++) {
    choice[i] = n % c->counts[i];
    n /= c->counts[i];
  }
  return true;
}

// How many unseen pairs line i's value a makes with the lines that are set.
static size_t gain(Cover *c, const size_t *choice, const bool *set, size_t i, size_t a) {
  size_t n = 0;
  for (size_t j = 0; j < c->lines; j++) {
    if (!set[j] || j == i) continue;
    n += i < j ? *pair_at(c, i, a, j, choice[j]) : *pair_at(c, j, choice[j], i, a);
  }
  return n;
}

// Sets two lines to the first pair that is still to be seen.
static void seed(Cover *c, size_t *choice, bool *set) {
  for (size_t i = 0; i < c->lines; i++) {
    for (size_t j = i + 1; j < c->lines; j++) {
      for (size_t a = 0; a < c->counts[i]; a++) {
        for (size_t b = 0; b < c->counts[j]; b++) {
          if (!*pair_at(c, i, a, j, b)) continue;
          choice[i] = a, choice[j] = b;
          set[i] = set[j] = true;
          return;
        }
      }
    }
  }
}

bool cover_next(Cover *c, size_t *choice) {
  if (!c->pairwise) return next_of_all(c, choice);
  size_t longest = 1;  // a single line with a choice has no pairs: each of its values once
  for (size_t i = 0; i < c->lines; i++) longest = c->counts[i] > longest ? c->counts[i] : longest;
  if (c->left == 0 && c->given >= longest) return false;
  bool *set = need(calloc(c->lines + 1, 1));
  seed(c, choice, set);
  for (size_t i = 0; i < c->lines; i++) {
    if (set[i]) continue;
    size_t best = c->given % c->counts[i];
    for (size_t a = 0; a < c->counts[i]; a++) {
      if (gain(c, choice, set, i, a) > gain(c, choice, set, i, best)) best = a;
    }
    choice[i] = best;
    set[i] = true;
  }
  free(set);
  for (size_t i = 0; i < c->lines; i++) {
    for (size_t j = i + 1; j < c->lines; j++) {
      bool *open = pair_at(c, i, choice[i], j, choice[j]);
      c->left -= *open;
      *open = false;
    }
  }
  c->given++;
  return true;
}
