// protocol.h - what the files share that prove that no role waits for ever and that all roles agree
// about each tile's fills, drains and turns.
//
// The idea (see compiler/verify/README.md): of a role only its protocol counts, the operations that
// wait for others or that others wait for, with the loops and conditions around them. A protocol is
// run with conditions answered by an evaluator: a concrete one, which knows all dimensions, or a
// symbolic one, which knows bounds on differences; the run branches where they do not decide.
#ifndef SC_PROTOCOL_H
#define SC_PROTOCOL_H

#include "compiler/facts/linear.h"
#include "compiler/verify/verify.h"
#include "compiler/verify/zone.h"

// ---- script.c: the protocol of a role, as a flat list of steps

typedef enum StepKind {
  STEP_ACQUIRE,
  STEP_COMMIT,
  STEP_WAIT,
  STEP_RELEASE,
  STEP_TAKE,
  STEP_PASS,
  STEP_IF,     // goes on if `x` holds, else to `to`
  STEP_GO,     // to `to`
  STEP_ENTER,  // loop `ref`: its variable gets its first value
  STEP_HEAD,   // goes on if there is another round, else to `to`
  STEP_NEXT,   // the next round, to `to`
  STEP_END
} StepKind;

// How the rounds of a loop are counted: by its variable, or otherwise where no condition reads
// that, as then only the number of rounds matters.
typedef enum Counting {
  COUNT_VALUE,  // from `x` to below `y`
  COUNT_BACK,  // a reversed loop: from 0 to below `y` - `x`; the variable is `y` - 1 less the count
  COUNT_ROUNDS,  // from 0 to below `y` - `x`
  COUNT_DOWN,    // a reversed loop: by its variable, from `y` - 1 down to `x`
  COUNT_ON       // from where the loop at step `prev` ended, so many rounds on
} Counting;

typedef struct Step {
  u8 kind;    // StepKind
  u8 count;   // loops: Counting
  u8 depth;   // loops: how many loops of the script are around it
  bool read;  // loops: a condition or a bound reads the variable
  u32 ref;    // ring, turn or loop
  u32 to;
  u32 prev;  // COUNT_ON; SC_NONE: none, it begins at `x`
  Xid x, y;
  u32 pc;  // of the operation in the role's code
} Step;

typedef struct Script {
  u32 role;
  VEC(Step) step;  // the last is STEP_END
  u32 depth;       // the most loops around a step
  u8 *loop_depth;  // by loop of the kernel
  u32 *loop_head;  // by loop: its STEP_HEAD, SC_NONE: it is not in the script
} Script;

// How loops are counted whose variable no condition reads, and whether quotients of one number are
// taken apart (residue.c): there is more than one way, and each proves what others do not.
typedef struct Way {
  Counting count;  // COUNT_VALUE, COUNT_ROUNDS, COUNT_DOWN, COUNT_ON
  bool residues;
} Way;
Script *sc_script(Verify *v, u32 role, Way way);

// ---- machine.c: the processes, what they share, and a run of them

// An instance of a role in one CTA of a cluster. Instances that do the same are one process.
typedef struct Process {
  u32 role, instance, rank;
  const Script *script;
  u32 *channel;  // by ring
  u32 *fill;     // by ring: the number of its count of fills; SC_NONE: it does not fill
  u32 *drain;    // by ring: … of waits; that of releases follows
  u32 *member;   // by turn: its place among the members; SC_NONE: none
} Process;

// A ring, in one CTA or (multicast) in all of a cluster; private rings, of one process.
typedef struct Channel {
  u32 ring, stages;
  VEC(u32) fills;   // counts
  VEC(u32) drains;  // counts of waits; those of releases follow
} Channel;

typedef struct Protocol {
  Sc *sc;
  const Kernel *k;
  Way way;
  VEC(Process) process;
  VEC(Channel) channel;
  u32 counts;
  u32 ranks;     // CTAs of a cluster that may do different things; else 1
  u32 *members;  // by turn: how many; 0: taking it is free within a tile
  bool *used;    // by turn: somebody takes it
  u32 loops;     // zone variables that loops need, over all processes
  u32 *slot;     // by process: its first one
} Protocol;

bool sc_instances_apart(const Protocol *p, u32 role);  // is each instance a process of its own?
Protocol *sc_protocol(Verify *v, Way way, u32 ranks);
// Do bounds or conditions depend on elements of tensors?
bool sc_reads_data(const Protocol *p);

typedef enum Answer { NO, YES, OPEN, UNKNOWN } Answer;  // UNKNOWN: it cannot be told at all

typedef struct Run Run;
struct Run {
  const Protocol *p;
  u32 *at;     // by process: its step
  u32 *count;  // fills, waits, releases so far in the tile
  u32 *taken;  // by process and turn: how often in the tile
  u8 *turn;    // by turn and rank: whose turn it is
  u64 steps;   // taken
  u64 most;    // … at most
  // Answers a STEP_IF or a loop's step. NO: to `to`.
  Answer (*ask)(Run *r, u32 process, const Step *s);
  void *evaluator;  // … by this: a Concrete, or a Symbolic
  // Turns over CTAs: may the process take it, and it has taken it or passed it on. NULL: taking
  // them is free.
  bool (*may_take)(const Run *r, u32 process, const Step *s);
  void (*turned)(Run *r, u32 process, const Step *s);
};

typedef enum Outcome {
  OUT_DONE,      // all processes are at their end, and agree
  OUT_STUCK,     // nobody can go on
  OUT_UNEVEN,    // all are at their end, and have counted differently
  OUT_OPEN,      // a condition is not decided: Run.evaluator knows which
  OUT_UNKNOWN,   // … and cannot be
  OUT_EXHAUSTED  // too many steps
} Outcome;

void sc_run_begin(Run *r, Sc *sc, const Protocol *p);
void sc_run_again(Run *r);  // from the beginning
// One step of a process that is not at its end, as if it need not wait. YES: it has been taken;
// OPEN, UNKNOWN: a condition has no answer.
Answer sc_run_step(Run *r, u32 process);
// Everybody goes on as far as possible.
Outcome sc_run_on(Run *r);
// Why can the process not go on? The channel or turn that it waits for is given by its step.
bool sc_run_blocked(const Run *r, u32 process);
// OUT_UNEVEN: a channel whose counts differ, or SC_NONE and a turn.
u32 sc_run_uneven(const Run *r, u32 *turn);

// ---- residue.c: numbers that are compared after division

// floor(x / d), for several d, or with several constants added: with D a common multiple of the
// divisors and x = D q + r, each is a multiple of q and a constant, once r is known.
typedef struct Family {
  const Lin *of;  // what is divided, without its constant
  i64 at, unit;   // x = (of + at) / unit, rounded down
  u32 parts;      // r is below it
  u32 q;          // the atom
} Family;

enum { MAX_FAMILIES = 4, MAX_CASES = 64 };

typedef struct Residues {
  u32 n;
  Family family[MAX_FAMILIES];
  u32 cases;     // products of the parts: so many proofs
  u32 *modulus;  // by loop: conditions ask for its variable's remainder; else 1
} Residues;
Residues sc_residues(Verify *v, const Protocol *p);
// The atom as a form over the q of its family, in this case. False: it is in none.
bool sc_in_family(Facts *f, const Residues *r, u32 which, u32 atom, Lin *out);

// ---- symbolic.c: answers from a zone
//
// Zone variables: 0; those of loops, by process; values that are the same for the whole tile;
// ghosts. A loop's variable is its zone variable, or (residue.c) a multiple of it and a known
// remainder.

// The value of an expression over loop variables, at one place: what one role has found out about
// `mask[t]`, others find as well.
typedef struct Ghost {
  Xid x;
  u32 process;                  // who asked for it first
  u32 args;                     // loops in it, in the order in which they are met
  u32 loop[2];                  // … of the process that asked first
  u8 modulus[2], remainder[2];  // … and how they were counted
} Ghost;

enum { MAX_GHOSTS = 4, GHOST_VARS = 3, MAX_VALUES = 16 };  // of a ghost: its value, its arguments

// Which minima, maxima and choices of values of a tile are looked into: the others are values of
// their own, of which is known what the facts say.
typedef enum Expand { EXPAND_NONE, EXPAND_BOUNDS, EXPAND_ALL } Expand;

// What a question has been told: of the process, deep in a condition or not, and in these rounds of
// loops (Symbolic.past).
typedef struct Told {
  u32 question, process, past;
  bool deep;
  Answer is;
} Told;
typedef struct Resolved {
  Told told;
  Lin *form;  // if told.is YES
} Resolved;

typedef struct Symbolic {
  Verify *v;
  Sc *sc;
  Facts *f;
  Below below;
  const Protocol *p;
  const Residues *residues;
  u32 which;               // of their cases
  u8 expand;               // Expand
  u32 asking;              // depth of conditions and quotients in work
  u32 question;            // the number of the present one
  Told *told;              // by truth: what the last question was told that asked
  VEC(Resolved) resolved;  // by atom, likewise
  u32 values, room;        // … known, and of these in the zone
  u32 value[MAX_VALUES];   // atoms
  bool haunted;            // there is room for ghosts
  bool wants;              // UNKNOWN: only because a value or the ghosts are not in the zone yet
  Zone zone;
  u8 *modulus,
      *remainder;  // by loop variable, from 1: it is modulus times that of the zone + remainder
  u32 ghosts;
  Ghost ghost[MAX_GHOSTS];
  bool renumbered;   // ghosts, since the question was asked
  u32 past;          // loops have the values that this ghost remembers; SC_NONE: those of now
  u32 ask_i, ask_j;  // OPEN: does x_i - x_j <= ask_c hold?
  i64 ask_c;
  u32 who, why;  // UNKNOWN: the process and its operation
} Symbolic;

static inline u32 symbolic_first_value(const Symbolic *m) { return 1 + m->p->loops; }
static inline u32 symbolic_ghost_var(const Symbolic *m, u32 ghost) {
  return symbolic_first_value(m) + m->room + GHOST_VARS * ghost;
}
static inline u32 symbolic_vars(const Symbolic *m) {
  return symbolic_ghost_var(m, m->haunted ? MAX_GHOSTS : 0);
}
Answer sc_symbolic_ask(Run *r, u32 process, const Step *s);

// ---- ties.c
// Where one value is the difference of two others, or a quotient of another, what is known of it
// and of them is learnt of both. False: they contradict each other.
bool sc_symbolic_tie(Symbolic *m);

// ---- atoms.c
Lin sc_zone_form(Symbolic *m, u32 var);       // a zone variable
u32 sc_zone_of(const Symbolic *m, u32 atom);  // … that the atom is; SC_NONE: it is none
// For a Symbolic: has the atom another value in another round of a loop, or in another CTA of the
// cluster; has it one in another round?
LinIs sc_symbolic_moves, sc_symbolic_turns;

// ---- ghost.c
// The zone variable that has the value of x for the process; SC_NONE: it cannot be kept.
u32 sc_ghost(Symbolic *m, u32 process, Xid x);
// Ghosts that nobody asks for again are forgotten; the others keep their order.
void sc_ghosts_tidy(Run *r);

Lin sc_value_form(const Symbolic *m, u32 atom);  // what a value is

// ---- bounds.c
// What the facts say of the values, as bounds of the zone.
void sc_symbolic_facts(Symbolic *m);

// ---- explore.c: all runs of a tile

typedef struct Explored {
  Outcome outcome;  // OUT_DONE: of all runs
  u32 states;
  u32 process, pc;  // OUT_UNKNOWN: where
} Explored;
// most: bounds of the zone beyond it are given up. budget: no more states are explored.
Explored sc_explore(Verify *v, const Protocol *p, Expand expand, i64 most, u32 budget);

// ---- concrete.c: one run, with everything known

// Dimensions, scalars, a tile, and a rule for the elements of tensors.
typedef struct Sample {
  i64 *dim, *arg;
  i64 axis[SC_MAX_AXES];  // cluster axes: of rank 0
  u32 sms;                // that the run has; 0: it does not matter
  bool early;             // it shows where each goes on as far as it can
  u32 data;               // see DATA_RULES
  const bool *list;       // by buf: its elements name places in tensors, and are not negative
  u32 negative;           // … but those of this buf may be; SC_NONE: of none
  bool unclear;           // whether it is allowed is not known: what says so takes too long
} Sample;

// Rules for an element of a tensor: 0; rising by 1, by 64, by 0 to 200 from one to the next; from 0
// to 7; -1; from -4 to 3; 600, which makes long loops. An element is kept within the range that its
// declaration gives, and what is declared `rising` rises. What names a place in a tensor is not
// negative where no range is declared: no `require` can say so.
enum { DATA_RULES = 8, RISING_RULES = 4 };

typedef struct Concrete {
  const Protocol *p;
  const Sample *s;
  i64 *loop;      // by process and loop
  i64 *now;       // the loops of the process that asks
  u32 rank;       // of that process
  Effort effort;  // of the question that is asked
  u64 spent;      // steps, for all questions
} Concrete;
void sc_concrete_begin(Concrete *c, Run *r, Sc *sc, const Protocol *p, const Sample *s);
Numbers sc_concrete_numbers(Concrete *c);
// Integers and truths; false: there is no value, or it takes too long.
bool sc_concrete_value(Concrete *c, Xid x, i64 *out);
// How many CTAs lie along an axis, with those that fill up the last cluster. False: that is not
// known, or more than `most`.
bool sc_concrete_ctas(Concrete *c, u32 axis, i64 most, i64 *n);
// An element of a tensor, by the sample's rule. False: its range is empty, or cannot be told.
bool sc_concrete_element(Concrete *c, u32 buf, const i64 *at, i64 *out);

// ---- sample.c: dimensions for which it goes wrong

Sample *sc_sample(Verify *v);
// By buf: do its elements name places in tensors, as those of X[idx[t]*64..] do?
const bool *sc_lists(Verify *v);
// What does `require` say of such dimensions? (Those that it decides are set.)
bool sc_sample_allowed(const Protocol *p, Sample *s);
// Sets the dimensions, scalars and rule of `s`, to what is allowed, until `look` is true of them;
// then makes them small. False: it never is.
bool sc_search(Verify *v, const Protocol *p, Sample *s, bool (*look)(void *user), void *user);

// ---- failure.c: runs of a tile that fail

typedef struct Failure {
  Sample s;
  Outcome outcome;  // OUT_STUCK, OUT_UNEVEN; OUT_DONE: none was found
  Run run;
  u32 tried;  // runs
} Failure;
// negative: a buf whose elements may be negative, even if they name places in tensors; or SC_NONE.
Failure sc_find_failure(Verify *v, const Protocol *p, u32 negative);
// All dimensions up to the bound are tried that loops and conditions depend on, with all tiles;
// those on which they do not depend are as in a run that was tried. 0: there are too many, or a run
// fails.
u32 sc_try_all(Verify *v, const Protocol *p);

// ---- ctaturns.c
void sc_prove_cta_turns(Verify *v);

// ---- command.c
const char *sc_sample_text(Verify *v, const Sample *s);  // dimensions and the tile
// A note with a command that shows it.
void sc_note_command(Verify *v, const Protocol *p, const Sample *s, Diag *d);

// ---- blocked.c: who waits for whom, where a run has stopped
const char *sc_process_text(Verify *v, const Protocol *p, u32 process);
// Who must act for a blocked process to go on; SC_NONE: nobody of this run can.
u32 sc_awaited(const Run *r, u32 process);
const char *sc_waits_text(Verify *v, const Run *r, u32 process);  // "for …"

// ---- witness.c: the report
void sc_report_failure(Verify *v, const Protocol *p, const Failure *f);

#endif
