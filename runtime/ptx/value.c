// value.c - evaluates instructions on values that the thread's number and constants determine: they
// decide which role's branch the thread takes, and the operands of its events (PTX ISA 9.0, 9.7.1,
// 9.7.6, 9.7.7, 9.7.9). All other values are BASE_ANY. An address is a base and a distance from it.
#include "runtime/ptx/ptx.h"

#include <stdlib.h>
#include <string.h>

// ---- decoding

enum { PARTS = 8 };
typedef struct Parts {
  Words at[PARTS];
  u32 n;
} Parts;

static Parts split(Words op) {
  Parts parts = {0};
  for (u32 i = 0; i < op.n && parts.n < PARTS; i++) {
    u32 n = 0;
    while (i + n < op.n && op.at[i + n] != '.') n++;
    parts.at[parts.n++] = (Words){op.at + i, n};
    i += n;
  }
  return parts;
}

// The bits of an integer type; 1: a predicate; 0: a real type.
static u8 bits_of(Words type) {
  if (sc_words_are(type, "pred")) return 1;
  if (!type.n || !strchr("sub", *type.at)) return 0;
  u64 bits = strtoul(type.at + 1, NULL, 10);
  return bits == 16 || bits == 32 || bits == 64 ? (u8)bits : 0;
}

typedef enum Compare { CMP_NONE, CMP_EQ, CMP_NE, CMP_LT, CMP_LE, CMP_GT, CMP_GE } Compare;
static u8 comparison(Words w) {
  static const char *const text[] = {"", "eq", "ne", "lt", "le", "gt", "ge"};
  static const char *const unsigned_text[] = {"", "", "", "lo", "ls", "hi", "hs"};
  for (u32 i = 1; i < COUNT(text); i++) {
    if (sc_words_are(w, text[i]) || sc_words_are(w, unsigned_text[i])) return (u8)i;
  }
  return CMP_NONE;
}

typedef enum Also { ALSO_NONE, ALSO_AND, ALSO_OR, ALSO_XOR } Also;
static u8 combination(Words w) {
  return sc_words_are(w, "and")   ? ALSO_AND
         : sc_words_are(w, "or")  ? ALSO_OR
         : sc_words_are(w, "xor") ? ALSO_XOR
                                  : ALSO_NONE;
}

// Does an instruction of this name set no register? (Events are not among these.)
static bool sets_nothing(Words mnemonic) {
  static const char *const words[] = {"st",       "red",     "nanosleep", "prefetch",
                                      "stmatrix", "discard", "pmevent",   "brkpt",
                                      "call",     "cp",      "prefetchu", "applypriority"};
  for (u32 i = 0; i < COUNT(words); i++) {
    if (sc_words_are(mnemonic, words[i])) return true;
  }
  return false;
}

static u8 computes(const Parts *p) {
#define COMPUTE(id, text, parts) \
  if (p->n == (parts) && sc_words_are(p->at[0], text)) return COMPUTE_##id;
#include "runtime/ptx/compute.def"
#undef COMPUTE
  return COMPUTE_UNKNOWN;
}

// Decodes the parts of a name other than the type: .lo, .idx, the comparison, the type that is
// converted. False: they are not known here.
static bool decode_more(PtxIns *ins, const Parts *p) {
  switch ((Compute)ins->compute) {
    case COMPUTE_CVT:
      ins->wide_from = bits_of(p->at[2]);
      ins->bits = bits_of(p->at[1]);
      return ins->wide_from && ins->bits;
    case COMPUTE_MUL:
    case COMPUTE_MAD:
      ins->wide_from = sc_words_are(p->at[1], "wide") ? ins->bits : 0;
      if (ins->wide_from) ins->bits = (u8)(2 * ins->bits);
      return ins->wide_from || sc_words_are(p->at[1], "lo");
    case COMPUTE_SETP2: ins->also = combination(p->at[2]);  // fall through
    case COMPUTE_SETP:
      ins->compare = comparison(p->at[1]);
      return ins->compare && (ins->compute == COMPUTE_SETP || ins->also);
    case COMPUTE_SHFL: return sc_words_are(p->at[1], "sync") && sc_words_are(p->at[2], "idx");
    default: return true;
  }
}

void sc_ptx_decode(PtxIns *ins) {
  Parts p = split(ins->op);
  Words type = p.at[p.n - 1];
  ins->compute = COMPUTE_NOTHING;
  if (ins->event == EV_WAIT || ins->event == EV_LOOK) ins->compute = COMPUTE_UNKNOWN;
  if (ins->event || sets_nothing(p.at[0])) return;
  ins->compute = computes(&p);
  ins->bits = bits_of(type);
  ins->is_signed = *type.at == 's';
  ins->compares_unequal = ins->compute == COMPUTE_SETP && sc_words_are(p.at[1], "ne");
  if (!ins->bits || !decode_more(ins, &p)) ins->compute = COMPUTE_UNKNOWN;
}

// ---- values

static const Known any = {0};

static u64 cut(u64 n, u32 bits) { return bits >= 64 ? n : n & (((u64)1 << bits) - 1); }
static i64 extend(u64 n, u32 bits) {
  return bits >= 64 ? (i64)n : (i64)(cut(n, bits) << (64 - bits)) >> (64 - bits);
}
static Known number(u64 n, u32 bits) {
  return (Known){.base = BASE_NUM, .exact = true, .n = cut(n, bits)};
}
static bool is_number(Known v) { return v.base == BASE_NUM; }

bool sc_ptx_same(Known a, Known b) {
  return a.base == b.base && a.exact == b.exact && a.which == b.which && a.n == b.n;
}

// The value with something unknown added to it.
static Known inexact(Known v) {
  return v.base == BASE_NUM ? any : (Known){v.base, false, v.which, v.n};
}

Known sc_ptx_join(Known a, Known b) {
  if (sc_ptx_same(a, b) || b.base == BASE_NONE) return a;
  if (a.base == BASE_NONE) return b;
  if (a.base == BASE_NUM || a.base != b.base || a.which != b.which) return any;
  if (a.exact != b.exact) return a.exact ? b : a;       // something unknown more: that is among it
  if (a.base == BASE_SHARED && a.n != b.n) return any;  // not even a part is known
  return (Known){a.base, false, a.which, a.n == b.n ? a.n : 0};
}

Known sc_ptx_value(const Registers *r, const PtxOperand *o) {
  switch ((PtxOperandKind)o->kind) {
    case OPND_REG: return r->at[o->n];
    case OPND_NUM: return number((u64)o->n, 64);
    case OPND_PARAM: return (Known){.base = BASE_PARAM, .exact = true, .which = (u32)o->n};
    case OPND_SHARED: return (Known){.base = BASE_SHARED, .exact = true};
    case OPND_TID: return number(r->tid, 32);
    case OPND_LANE: return number(r->tid % 32, 32);
    case OPND_AT:
    case OPND_LIST: {
      if (!o->n) return any;
      Known v = sc_ptx_value(r, &r->ptx->list.at[o->first]);
      if (o->kind == OPND_LIST || o->n < 2) return v;
      const PtxOperand *more = &r->ptx->list.at[o->first + 1];  // [%r1+8], or [map, {…}]
      if (more->kind == OPND_NUM) v.n += (u64)more->n;
      return v;
    }
    default: return any;
  }
}

// ---- arithmetic

static Known add(Known a, Known b, bool minus, u32 bits) {
  u64 n = minus ? a.n - b.n : a.n + b.n;
  if (is_number(a) && is_number(b)) return number(n, bits);
  if (is_number(a) && !minus) return add(b, a, false, bits);
  if (a.base == BASE_ANY || is_number(a)) return a.base == BASE_ANY && !minus ? inexact(b) : any;
  if (is_number(b)) return (Known){a.base, a.exact, a.which, cut(n, bits)};
  return b.base == BASE_ANY ? inexact(a) : any;
}

static u64 compare(const PtxIns *ins, u64 a, u64 b) {
  u32 bits = ins->bits;
  i64 sa = ins->is_signed ? extend(a, bits) : 0, sb = ins->is_signed ? extend(b, bits) : 0;
  a = cut(a, bits), b = cut(b, bits);
  bool less = ins->is_signed ? sa < sb : a < b, equal = a == b;
  switch ((Compare)ins->compare) {
    case CMP_EQ: return equal;
    case CMP_NE: return !equal;
    case CMP_LT: return less;
    case CMP_LE: return less || equal;
    case CMP_GT: return !less && !equal;
    default: return !less;
  }
}

static Known divide(const PtxIns *ins, u64 a, u64 b) {
  u32 bits = ins->bits;
  bool rest = ins->compute == COMPUTE_REM;
  a = cut(a, bits), b = cut(b, bits);
  if (!b) return any;
  if (!ins->is_signed) return number(rest ? a % b : a / b, bits);
  i64 sa = extend(a, bits), sb = extend(b, bits);
  if (sb == -1) return number(rest ? 0 : -(u64)sa, bits);
  return number((u64)(rest ? sa % sb : sa / sb), bits);
}

static Known shift(const PtxIns *ins, u64 a, u64 by) {
  u32 bits = ins->bits;
  by = cut(by, 32) < bits ? cut(by, 32) : bits;
  if (ins->compute == COMPUTE_SHL) return number(by >= 64 ? 0 : a << by, bits);
  if (ins->is_signed) return number((u64)(extend(a, bits) >> (by < bits ? by : bits - 1)), bits);
  return number(by >= 64 ? 0 : cut(a, bits) >> by, bits);
}

static u64 product(const PtxIns *ins, u64 a, u64 b) {
  if (!ins->wide_from || !ins->is_signed) {
    u32 bits = ins->wide_from ? ins->wide_from : 64;
    return cut(a, bits) * cut(b, bits);
  }
  return (u64)(extend(a, ins->wide_from) * extend(b, ins->wide_from));
}

static u64 pick(const PtxIns *ins, u64 a, u64 b) {
  PtxIns less = *ins;
  less.compare = CMP_LT;
  return (compare(&less, a, b) != 0) == (ins->compute == COMPUTE_MIN) ? a : b;
}

// Does this operand decide a conjunction or a disjunction alone?
static bool decides(Known v, Also how) {
  return is_number(v) && ((how == ALSO_AND && !v.n) || (how == ALSO_OR && v.n));
}

// Some bit is set, whatever the others are. The C compiler makes one comparison with 0 of two:
// `thread == 0 && n == 0` becomes `(thread | n) == 0`.
static bool is_not_0(Known v, u32 bits) {
  return v.base == BASE_NOT_0 || (is_number(v) && cut(v.n, bits));
}

static Known logic(Known a, Known b, Also how, u32 bits) {
  if (is_number(a) && is_number(b))
    return number(how == ALSO_AND ? a.n & b.n : how == ALSO_OR ? a.n | b.n : a.n ^ b.n, bits);
  if (decides(a, how) && (how == ALSO_AND || bits == 1)) return a;
  if (decides(b, how) && (how == ALSO_AND || bits == 1)) return b;
  if (how == ALSO_OR && (is_not_0(a, bits) || is_not_0(b, bits)))
    return (Known){.base = BASE_NOT_0, .exact = true};
  return any;
}

// Is a number that is not 0 compared with 0?
static bool compares_with_0(const PtxIns *ins, Known a, Known b) {
  if (ins->compute != COMPUTE_SETP || (ins->compare != CMP_EQ && ins->compare != CMP_NE))
    return false;
  return a.base == BASE_NOT_0 && is_number(b) && !cut(b.n, ins->bits);
}

static Known numbers(const PtxIns *ins, Known a, Known b) {
  if (compares_with_0(ins, a, b)) return number(ins->compare == CMP_NE, 1);
  if (!is_number(a) || !is_number(b)) return any;
  switch ((Compute)ins->compute) {
    case COMPUTE_MUL: return number(product(ins, a.n, b.n), ins->bits);
    case COMPUTE_SHL:
    case COMPUTE_SHR: return shift(ins, a.n, b.n);
    case COMPUTE_DIV:
    case COMPUTE_REM: return divide(ins, a.n, b.n);
    case COMPUTE_MIN:
    case COMPUTE_MAX: return number(pick(ins, a.n, b.n), ins->bits);
    case COMPUTE_SETP: return number(compare(ins, a.n, b.n), 1);
    default: return any;
  }
}

static Known convert(const PtxIns *ins, Known a) {
  if (!is_number(a)) return a.base != BASE_ANY && ins->bits >= 32 && ins->wide_from >= 32 ? a : any;
  return number(ins->is_signed ? (u64)extend(a.n, ins->wide_from) : cut(a.n, ins->wide_from),
                ins->bits);
}

static Known chosen(Known a, Known b, Known p) {
  if (is_number(p)) return p.n ? a : b;
  return sc_ptx_join(a, b);
}

static Known with_predicate(const PtxIns *ins, Known a, Known b, Known c) {
  PtxIns plain = *ins;
  plain.compute = COMPUTE_SETP;
  return logic(numbers(&plain, a, b), c, (Also)ins->also, 1);
}

static Known mapped(Known address, Known cta) {
  if (!is_number(cta)) return any;
  return (Known){BASE_THERE, address.base == BASE_SHARED && address.exact, (u32)cta.n, address.n};
}

// The result of a shuffle. It is known if lane 0's value goes to all lanes; shuffles from other
// lanes are not followed.
static Known shuffled(const Registers *r, Known source, Known lane, Known *lane0) {
  bool of_lane0 = is_number(lane) && !cut(lane.n, 32);
  if (r->tid % 32 == 0) *lane0 = sc_ptx_join(*lane0, source);
  return of_lane0 ? *lane0 : any;
}

// Does an instruction make something of a number of which it is only known that it is not 0?
static bool takes_not_0(const PtxIns *ins) {
  return ins->compute == COMPUTE_OR || ins->compute == COMPUTE_SETP ||
         ins->compute == COMPUTE_SETP2;
}

static Known result(const Registers *r, const PtxIns *ins, Known *lane0) {
  Known v[4] = {any, any, any, any};
  for (u32 i = 1; i < ins->operands && i <= 4; i++) {
    Known x = sc_ptx_value(r, &ins->operand[i]);
    if (x.base != BASE_NOT_0 || takes_not_0(ins)) v[i - 1] = x;
  }
  switch ((Compute)ins->compute) {
    case COMPUTE_MOVE:
    case COMPUTE_CVTA:
    case COMPUTE_CVTTO: return is_number(v[0]) ? number(v[0].n, ins->bits) : v[0];
    case COMPUTE_CVT: return convert(ins, v[0]);
    case COMPUTE_ADD: return add(v[0], v[1], false, ins->bits);
    case COMPUTE_SUB: return add(v[0], v[1], true, ins->bits);
    case COMPUTE_MAD: {
      PtxIns mul = *ins;
      mul.compute = COMPUTE_MUL;
      return add(numbers(&mul, v[0], v[1]), v[2], false, ins->bits);
    }
    case COMPUTE_AND: return logic(v[0], v[1], ALSO_AND, ins->bits);
    case COMPUTE_OR: return logic(v[0], v[1], ALSO_OR, ins->bits);
    case COMPUTE_XOR: return logic(v[0], v[1], ALSO_XOR, ins->bits);
    case COMPUTE_NOT: return is_number(v[0]) ? number(~v[0].n, ins->bits) : any;
    case COMPUTE_NEG: return is_number(v[0]) ? number(-v[0].n, ins->bits) : any;
    case COMPUTE_SELP: return chosen(v[0], v[1], v[2]);
    case COMPUTE_SETP2: return with_predicate(ins, v[0], v[1], v[2]);
    case COMPUTE_MAPA: return mapped(v[0], v[1]);
    case COMPUTE_SHFL: return shuffled(r, v[0], v[1], lane0);
    default: return numbers(ins, v[0], v[1]);
  }
}

void sc_ptx_compute(Registers *r, const PtxIns *ins, Known *lane0) {
  if (ins->compute == COMPUTE_NOTHING || !ins->operands) return;
  const PtxOperand *to = &ins->operand[0];
  Known v = ins->compute == COMPUTE_UNKNOWN ? any : result(r, ins, lane0);
  if (to->kind == OPND_REG) {
    r->at[to->n] = v;
  } else if (to->kind == OPND_LIST) {
    for (i64 i = 0; i < to->n; i++) {
      const PtxOperand *one = &r->ptx->list.at[to->first + i];
      if (one->kind == OPND_REG) r->at[one->n] = i ? any : v;
    }
  }
}
