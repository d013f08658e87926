// read.c - reads PTX text into blocks of instructions (PTX ISA 9.0, 4 and 5). In: the text, and the
// name of a function. Out: a Ptx whose instructions have the schedule's lines. An instruction that
// was inlined has the line of the call in the schedule. Registers and labels that inline assembly
// declares belong to its braces. An instruction under a predicate becomes a block of its own, which
// a jump skips.
#include "runtime/ptx/ptx.h"

#include <stdlib.h>
#include <string.h>

typedef struct Loc {
  u32 file, line, col;
} Loc;

// A jump to a label, which may stand further down.
typedef struct Jump {
  u32 block, scope;
  Words label;
} Jump;

typedef struct Reader {
  Sc *sc;
  Ptx *ptx;
  const char *p, *function;
  VEC(u32) outer;  // scopes: the one around each
  u32 scope;
  Keys name;         // of registers: their numbers, + 1; of labels: their blocks, + 1
  u32 home;          // the file in which the function stands, the schedule; 0: not known yet
  VEC(Loc) inlined;  // the last `.loc` and what it was inlined at, outermost first
  VEC(Jump) jump;
} Reader;

static void wrong(Reader *r, const char *why, Words at) {
  if (!r->ptx->wrong)
    r->ptx->wrong = sc_printf(r->sc, "%s: '%.*s'", why, (int)(at.n < 60 ? at.n : 60), at.at);
}

static bool begins(Words a, const char *text) {
  size_t n = strlen(text);
  return a.n >= n && !memcmp(a.at, text, n);
}

static bool in_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '$' || c == '%';
}

static Words word(const char *p) {
  u32 n = 0;
  while (in_name(p[n])) n++;
  return (Words){p, n};
}

static const char *blanks(const char *p) {
  for (;;) {
    while (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r') p++;
    if (p[0] != '/' || p[1] != '/') return p;
    p += strcspn(p, "\n");
  }
}

// ---- names

// A name is its scope's, and of a register or a label.
static u32 find(const Reader *r, u32 scope, bool label, Words w) {
  return sc_key_number(&r->name, 2 * scope + label, w.at, w.n);
}

static u32 find_outward(const Reader *r, u32 scope, bool label, Words w) {
  u32 n = 0;
  for (; scope != SC_NONE && !n; scope = r->outer.at[scope]) n = find(r, scope, label, w);
  return n;
}

static u32 declare(Reader *r, u32 scope, bool label, Words w, u32 value) {
  return sc_key(r->sc, &r->name, 2 * scope + label, w.at, w.n)->number = value + 1;
}

// The number of a register. Those that a function declares by the hundred (%r<224>) are numbered
// where they are first used.
static u32 reg(Reader *r, Words w) {
  u32 n = find_outward(r, r->scope, false, w);
  if (!n) n = declare(r, 0, false, w, r->ptx->regs++);
  return n - 1;
}

// ---- operands

static PtxOperand special(Words w) {
  static const char *const of_no_number[] = {"%tid.y", "%tid.z"};  // a CTA is a row of threads
  if (sc_words_are(w, "%tid.x")) return (PtxOperand){.kind = OPND_TID};
  if (sc_words_are(w, "%laneid")) return (PtxOperand){.kind = OPND_LANE};
  for (u32 i = 0; i < COUNT(of_no_number); i++) {
    if (sc_words_are(w, of_no_number[i])) return (PtxOperand){.kind = OPND_NUM};
  }
  return (PtxOperand){.kind = OPND_OTHER};
}

// "gemm_param_2": 2.
static bool is_parameter(const Reader *r, Words w, i64 *number) {
  size_t n = strlen(r->function);
  if (!begins(w, r->function) || w.n <= n + 7 || memcmp(w.at + n, "_param_", 7)) return false;
  *number = strtol(w.at + n + 7, NULL, 10);
  return true;
}

static PtxOperand operand(Reader *r, const char **p);

// Reads the operands of a list up to `close`, or those of `a|b` from the second on.
static PtxOperand list(Reader *r, const char **p, char close) {
  PtxOperand one[SC_MAX_NEST * 4];
  u32 n = 0;
  for (*p = blanks(*p + 1); **p && **p != close && **p != ';' && n < COUNT(one);) {
    one[n++] = operand(r, p);
    *p = blanks(*p);
    if (**p == ',' || **p == '+') *p = blanks(*p + 1);
  }
  if (**p == close) ++*p;
  else wrong(r, "an operand that does not end", (Words){*p, 20});
  PtxOperand all = {close == ']' ? OPND_AT : OPND_LIST, r->ptx->list.n, n};
  for (u32 i = 0; i < n; i++) PUSH(r->sc, &r->ptx->list, one[i]);
  return all;
}

static PtxOperand number(const char **p) {
  char *end;
  bool real = **p == '0' && ((*p)[1] == 'f' || (*p)[1] == 'd' || (*p)[1] == 'F' || (*p)[1] == 'D');
  i64 n = **p == '-' ? strtoll(*p, &end, 0) : (i64)strtoull(*p, &end, 0);
  if (real || *end == '.') {
    while (in_name(*end) || *end == '.' || *end == '-') end++;
    *p = end;
    return (PtxOperand){.kind = OPND_OTHER};
  }
  *p = *end == 'U' ? end + 1 : end;
  return (PtxOperand){.kind = OPND_NUM, .n = n};
}

static PtxOperand named(Reader *r, const char **p) {
  i64 n;
  Words w = word(*p);
  if (*w.at == '%' && w.at[w.n] == '.') {
    w.n += 1 + word(w.at + w.n + 1).n;
    *p += w.n;
    return special(w);
  }
  *p += w.n;
  if (sc_words_are(w, "_")) return (PtxOperand){.kind = OPND_OTHER};
  if (is_parameter(r, w, &n)) return (PtxOperand){.kind = OPND_PARAM, .n = n};
  if (find_outward(r, r->scope, false, w)) return (PtxOperand){.kind = OPND_REG, .n = reg(r, w)};
  if (*w.at != '%')  // a variable: what a kernel has in shared memory, or what it knows nothing of
    return (PtxOperand){.kind = sc_words_are(w, "memory") ? OPND_SHARED : OPND_OTHER};
  for (u32 i = 1; i < w.n; i++) {  // %r12; %laneid and the like are no registers of the function
    if (w.at[i] >= '0' && w.at[i] <= '9') return (PtxOperand){.kind = OPND_REG, .n = reg(r, w)};
  }
  return special(w);
}

static PtxOperand operand(Reader *r, const char **p) {
  *p = blanks(*p);
  if (**p == '{') return list(r, p, '}');
  if (**p == '[') return list(r, p, ']');
  if (**p == '-' || (**p >= '0' && **p <= '9')) return number(p);
  if (**p == '!') ++*p;
  if (!in_name(**p)) {
    wrong(r, "an operand that is none", (Words){*p, 20});
    *p += strcspn(*p, ";");
    return (PtxOperand){.kind = OPND_OTHER};
  }
  PtxOperand first = named(r, p);
  if (**p != '|') return first;
  ++*p;
  PtxOperand second = named(r, p);
  PUSH(r->sc, &r->ptx->list, first);
  PUSH(r->sc, &r->ptx->list, second);
  return (PtxOperand){OPND_LIST, r->ptx->list.n - 2, 2};
}

// ---- blocks

static PtxBlock *block(Reader *r) { return &r->ptx->block.at[r->ptx->block.n - 1]; }

// Begins a block. The block before leads into it, unless that ends with a jump that is always
// taken.
static void begin_block(Reader *r) {
  u32 number = r->ptx->block.n;
  if (number && block(r)->next != SC_NONE) block(r)->next = number;
  PUSH(r->sc, &r->ptx->block, ((PtxBlock){r->ptx->ins.n, 0, number + 1, SC_NONE, SC_NONE, false}));
}

static void end_block(Reader *r, u32 guard, bool negated) {
  block(r)->guard = guard;
  block(r)->negated = negated;
}

static void label(Reader *r, Words w) {
  begin_block(r);
  declare(r, r->scope, true, w, r->ptx->block.n - 1);
}

// ---- events

// Does one of the row's spellings fit the instruction: as a prefix, if it ends in a dot, or else as
// a whole?
static bool spelt(const char *spellings, Words op) {
  for (const char *p = spellings; *p;) {
    u32 n = (u32)strcspn(p, " ");
    bool prefix = p[n - 1] == '.';
    if (!memcmp(p, op.at, n < op.n ? n : op.n) && (prefix ? op.n >= n : op.n == n)) return true;
    p += n + (p[n] == ' ');
  }
  return false;
}

const EventInfo sc_ptx_event[EV_COUNT] = {
#define EVENT(id, operands, what, spellings) {operands, what, spellings},
#include "runtime/ptx/event.def"
#undef EVENT
};

static u8 event_of(Words op) {
  for (u32 i = 1; i < EV_COUNT; i++) {
    if (*sc_ptx_event[i].spellings && spelt(sc_ptx_event[i].spellings, op)) return (u8)i;
  }
  return EV_NONE;
}

// ---- statements

static void jump(Reader *r, Words op, u32 guard, bool negated) {
  Words w = word(blanks(op.at + op.n));
  PUSH(r->sc, &r->jump, ((Jump){r->ptx->block.n - 1, r->scope, w}));
  end_block(r, guard, negated);
  if (guard == SC_NONE) block(r)->next = SC_NONE;
  begin_block(r);
}

static void leave(Reader *r) {
  block(r)->next = SC_NONE;
  begin_block(r);
}

// The line of the schedule's innermost place. (The rounds of a loop that is split are a function,
// too.) 0: of what was moved only the place in a called function is left.
static u32 line_of(const Reader *r) {
  u32 i = r->inlined.n;
  while (i && r->inlined.at[i - 1].file != r->home) i--;
  return i ? r->inlined.at[i - 1].line : 0;
}

static void plain(Reader *r, Words op) {
  PtxIns ins = {.op = op, .line = line_of(r), .event = event_of(op)};
  const char *p = blanks(op.at + op.n);
  while (*p && *p != ';') {
    PtxOperand o = operand(r, &p);
    if (ins.operands < PTX_OPERANDS) ins.operand[ins.operands++] = o;
    else if (ins.event) wrong(r, "an instruction with too many operands", op);
    p = blanks(p);
    if (*p == ',') p++;
  }
  sc_ptx_decode(&ins);
  PUSH(r->sc, &r->ptx->ins, ins);
  block(r)->n++;
}

static void instruction(Reader *r) {
  bool guarded = *r->p == '@', negated = false;
  u32 guard = SC_NONE;
  if (guarded) {
    negated = r->p[1] == '!';
    Words w = word(r->p + 1 + negated);
    guard = reg(r, w);
    r->p = blanks(w.at + w.n);
  }
  Words op = {r->p, (u32)strcspn(r->p, " \t\n;")};
  if (sc_words_are(op, "bra") || sc_words_are(op, "bra.uni")) {
    jump(r, op, guard, negated);
  } else if (begins(op, "brx")) {
    wrong(r, "a jump by a table", op);
  } else {
    u32 before = r->ptx->block.n - 1;
    if (guarded) end_block(r, guard, !negated), begin_block(r);
    if (sc_words_are(op, "ret") || sc_words_are(op, "exit") || sc_words_are(op, "trap")) leave(r);
    else plain(r, op);
    if (guarded) {
      if (block(r)->n) begin_block(r);
      r->ptx->block.at[before].jump = r->ptx->block.n - 1;
    }
  }
  r->p += strcspn(r->p, ";");
}

static bool equal(Loc a, Loc b) { return a.file == b.file && a.line == b.line && a.col == b.col; }

static Loc read_loc(const char *p) {
  char *end;
  Loc at;
  at.file = (u32)strtoul(p, &end, 10);
  at.line = (u32)strtoul(end, &end, 10);
  at.col = (u32)strtoul(end, &end, 10);
  return at;
}

// ".loc 2 14 29, function_name $L__info_string0, inlined_at 1 7 3": where that was inlined stands
// before it.
static void loc(Reader *r) {
  static const char inlined_at[] = "inlined_at ";
  size_t n = strcspn(r->p, "\n");
  const char *line = sc_printf(r->sc, "%.*s", (int)n, r->p), *in = strstr(line, inlined_at);
  if (!in) {
    r->inlined.n = 0;
  } else {
    Loc by = read_loc(in + sizeof inlined_at - 1);
    while (r->inlined.n && !equal(r->inlined.at[r->inlined.n - 1], by)) r->inlined.n--;
    if (!r->inlined.n) PUSH(r->sc, &r->inlined, by);
  }
  PUSH(r->sc, &r->inlined, read_loc(line + strlen(".loc")));
  if (!r->home) r->home = r->inlined.at[0].file;  // the first one is of the function itself
  r->p += n;
}

// ".reg .pred p, q;" of inline assembly; those of a function are numbered, "%r<224>".
static void declare_registers(Reader *r) {
  const char *p = blanks(r->p + strlen(".reg"));
  p += strcspn(p, " \t\n");
  while (*(p = blanks(p)) && *p != ';') {
    Words w = word(p);
    p += w.n;
    if (!w.n) p++;
    else if (*w.at != '%' && *p != '<' && !find(r, r->scope, false, w))
      declare(r, r->scope, false, w, r->ptx->regs++);
  }
  r->p = p;
}

static void open_scope(Reader *r) {
  PUSH(r->sc, &r->outer, r->scope);
  r->scope = r->outer.n - 1;
  r->p++;
}

static void statement(Reader *r) {
  Words w = word(r->p);
  const char *after = blanks(r->p + w.n);
  if (!strncmp(r->p, ".loc", 4)) loc(r);
  else if (!strncmp(r->p, ".reg", 4)) declare_registers(r);
  else if (*r->p == '.' || *r->p == ';') r->p += strcspn(r->p, ";") + (*r->p == ';');
  else if (w.n && *after == ':') label(r, w), r->p = after + 1;
  else if (w.n || *r->p == '@') instruction(r);
  else wrong(r, "a statement that cannot be read", (Words){r->p, 20}), r->p += strlen(r->p);
}

// ---- the function

// The "{" that begins the function's body.
static const char *body(const char *text, const char *function) {
  size_t n = strlen(function);
  for (const char *p = text; (p = strstr(p, ".entry ")); p++) {
    Words name = word(p + strlen(".entry "));
    if (name.n == n && !memcmp(name.at, function, n)) return strstr(p, "\n{");
  }
  return NULL;
}

static void resolve(Reader *r) {
  for (u32 i = 0; i < r->jump.n; i++) {
    const Jump *j = &r->jump.at[i];
    u32 to = find_outward(r, j->scope, true, j->label);
    if (!to) wrong(r, "a jump to nowhere", j->label);
    else r->ptx->block.at[j->block].jump = to - 1;
  }
}

Ptx sc_ptx_read(Sc *sc, const char *text, const char *function) {
  Ptx ptx = {0};
  Reader r = {.sc = sc, .ptx = &ptx, .function = function, .scope = SC_NONE};
  r.p = body(text, function);
  if (!r.p) {
    ptx.wrong = sc_printf(sc, "it has no function '%s'", function);
    return ptx;
  }
  begin_block(&r);
  r.p++;
  do {
    if (*r.p == '{') open_scope(&r);
    else if (*r.p == '}') r.scope = r.outer.at[r.scope], r.p++;
    else if (*r.p) statement(&r);
    if (r.scope != SC_NONE) r.p = blanks(r.p);
  } while (r.scope != SC_NONE && *r.p && !ptx.wrong);
  if (r.scope != SC_NONE && !ptx.wrong) ptx.wrong = "it ends within the function";
  leave(&r);
  block(&r)->next = SC_NONE;
  if (!ptx.wrong) resolve(&r);
  return ptx;
}
