// spared.h - damages to a plan that do no harm, for damages.c.
#ifndef SPARED_H
#define SPARED_H

// What survives though no rule of its damage (`harmless`) says why: in so many places of a kernel.
typedef struct Spared {
  const char *kernel, *damage;
  u32 places;
  const char *why;
} Spared;

static const Spared spared[] = {
    {"stored_tensor", "no sync", 1, "they met at the release before, and did nothing since"},
    {"stored_tensor", "a sync one operation later", 1, "the same"},
    {"read_tensor", "no sync", 1, "they met at the release before, and did nothing since"},
    {"read_tensor", "a sync one operation later", 1, "the same"},
    {"elected_acquire", "no sync", 1, "each element is written by the thread that has read it"},
    {"elected_acquire", "a sync one operation later", 1, "the same"},
    {"swap_halves", "only the source is waited for", 2, "nobody reads Y"},
    {"written_twice_in_a_round", "only the source is waited for", 1, "GLOBAL is what needs it"},
    {"written_twice_in_a_round", "a group more stays in flight", 1, "the same"},
    {"written_twice_in_a_round", "no wait for copies", 1, "the same"},
    {"product_but_in_the_first", "a group more stays in flight", 1, "the wait before leaves none"},
    {"product_but_in_the_first", "no wait for products", 1, "the same"},
    {"fa3_stale", "a fence one operation later", 1, "it still stands before the release"},
    {"fa3_fp8", "a fence one operation later", 1, "the same"},
    {"first_round_by_flag", "no fence", 1, "the release has one, for those who skip the block"},
    {"first_round_by_flag", "a fence one operation later", 1, "the same"},
    {"scan", "a sync one operation later", 1, "it still stands between one round and the next"},
    {"neighbours", "a sync one operation later", 1, "it still stands between two rounds"},
    {"triangle", "a sync one operation later", 1, "it still stands between two rounds"},
    {"flat_and_nested", "a sync one operation later", 1, "it still stands between two rounds"},
    {"brought_when_it_changes", "a sync one operation later", 1, "it still stands between rounds"},
    {"rows_of_a_list", "a sync one operation later", 1, "it still stands between two rounds"},
    {"offsets_of_offsets", "a sync one operation later", 1, "it still stands between two rounds"},
    {"parts_by_even_and_odd", "a sync one operation later", 2, "it still stands between rounds"},
    {"rounded_up_by_minus", "a sync one operation later", 1, "it still stands between two rounds"},
    {"told_when_it_is_there", "a sync one operation later", 1, "it still stands between rounds"},
    {"both_write_both_read", "a sync one operation later", 4, "it still stands between two rounds"},
    {"five_words_in_turn", "a sync one operation later", 2, "it still stands between two rounds"},
    {"empty_tiles", "no sync", 2, "the warp met before its lane arrived for the release"},
    {"empty_tiles", "a sync one operation later", 2, "the same"},
    {"falling_triangle", "no sync", 1, "the warp met before its lane arrived for the release"},
    {"falling_triangle", "a sync one operation later", 1, "the same"},
    {"first", "one thread releases", 1, "they met at the store"},
    {"first", "a sync one operation later", 1, "it still stands between two rounds"},
    {"apply", "one thread releases", 1, "the loop runs, and its products tell that all are past"},
    {"paged_scores", "one thread releases", 1, "the loop runs, and its products tell that, too"},
    {"scaled", "one thread releases", 1, "they met at the product"},
    {"round_trip", "one thread releases", 1, "they met at the fill"},
    {"turned", "one thread releases", 1, "they met at the copy out"},
    {"handed_by_copy", "one thread releases", 1, "they met at the acquire"},
    {"word_behind_pairs_and_one", "only the source is waited for", 1, "nobody reads Y"},
    {"rounds_that_never_come", "16 bytes more", 1, "the loop has no round"},
    {"rounds_that_never_come", "16 bytes less", 1, "the same"},
    {"rounds_that_never_come", "no arrival", 3, "the same"},
    {"rounds_that_never_come", "an arrival more", 4, "the same"},
    {"rounds_that_never_come", "full count + 1", 1, "nobody uses it but in loops without rounds"},
    {"rounds_that_never_come", "full count - 1", 1, "the same"},
    {"rounds_that_never_come", "empty count + 1", 1, "the same"},
    {"rounds_that_never_come", "empty count - 1", 1, "the same"},
};

#endif
