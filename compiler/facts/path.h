// path.h - what is true on a path through a role's code: which conditions were asked on it, how
// they were answered, and where in their ranges the loops' variables are. A path belongs to no data
// flow: who follows one keeps it beside a state.
#ifndef SC_FACTS_PATH_H
#define SC_FACTS_PATH_H

#include "compiler/facts/facts.h"

// A condition that holds or does not, or (cond 0) a form that is not negative.
typedef struct Truth {
  Xid cond;
  bool holds;
  u32 site;  // the `if` that asked, or the loop that has no round; SC_NONE: neither
  const struct Lin *least0;
} Truth;

enum { MAX_TRUTHS = 24 };
typedef struct Path {
  u32 n;
  Truth at[MAX_TRUTHS];  // what finds no room is forgotten
} Path;

typedef struct PathFacts {
  Facts *facts;
  const Kernel *k;
  const Code *code;
  Below below;
  VEC(Xid) asked;  // conditions whose answer is kept when both united paths give the same one
  VEC(Xid) apart;  // conditions that keep two paths apart if one says yes and the other no
  u32 left;        // who asks sets it: so many paths may be asked for that, then they are united
  Keys answers;    // by question: what was answered, + 1
  bool supposed;   // a path's truths are among the facts, from `mark` on
  u32 mark;
} PathFacts;

// The effort of a plan that is tried; and of the proof of one, which goes other ways than it did.
enum { PATHS_TRIED = 150, PATHS_PROVED = 4 * PATHS_TRIED };
PathFacts *sc_path_facts(Sc *sc, const Kernel *k, const Role *role);
// … of a role whose paths are told apart in another way now. What was answered stays so: `asked`
// and `apart` are each what the code has, or empty, so no answer is of another list.
void sc_path_ask(PathFacts *f, const Role *role);

// Can the path go on like this? Then it says what is true there, else it is of no more use.
bool sc_path_if(PathFacts *f, Path *p, u32 pc, bool holds);  // into a side of the `if` at pc
bool sc_path_enter(PathFacts *f, Path *p, u32 loop);         // into a loop, for its first round
bool sc_path_skip(PathFacts *f, Path *p, u32 loop);          // … past it
bool sc_path_again(PathFacts *f, Path *p, u32 loop);  // from the loop's end to its next round
bool sc_path_leave(PathFacts *f, Path *p, u32 loop);  // … out of it
// May the paths be united before operation pc, for all that their conditions say?
bool sc_path_alike(PathFacts *f, const Path *a, const Path *b, u32 pc);
// What is true on both, before operation pc, remains in `into`. changed: did something go? NULL:
// nobody asks, as no loop begins here. (Then more remains: of a loop's head less must be true each
// time, and what is true must not be written in other words.)
void sc_path_unite(PathFacts *f, Path *into, const Path *from, u32 pc, bool *changed);

#endif
