// store.c - measured points, a line of JSON each. In: the text of a store, or records. Out: records
// on the arena, reports with lines, a line to append, and the record that fits a key best. One
// table says which members a line has; reader, printer and check go through it.
#include "runtime/tune/store.h"

#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonread.h"
#include "runtime/data/nearest.h"

enum { FORMAT = 1 };

typedef enum MemberKind { TEXT, COUNT32, COUNT64, REAL, PARAMS, DIMS } MemberKind;

typedef struct Member {
  const char *name;
  MemberKind kind;
  size_t at, count;     // where it stands in a record; PARAMS, DIMS: where their number does
  const char *lacking;  // what it is in lines that were written before it was a member; NULL: all
                        // have it
} Member;

#define AT(field) offsetof(schedc_store_record, field)
static const Member members[] = {
    {"schedule", TEXT, AT(schedule), 0, NULL},
    {"unit", TEXT, AT(unit), 0, NULL},
    {"problem", PARAMS, AT(problem), AT(problem_count), NULL},
    {"dims", DIMS, AT(dims), AT(dim_count), NULL},
    {"gpu", TEXT, AT(gpu), 0, NULL},
    {"driver", COUNT32, AT(driver), 0, NULL},
    {"nvrtc", COUNT32, AT(nvrtc), 0, NULL},
    {"schedc", TEXT, AT(schedc), 0, NULL},
    {"tuning", PARAMS, AT(tuning), AT(tuning_count), NULL},
    {"status", TEXT, AT(status), 0, NULL},
    {"inputs", TEXT, AT(inputs), 0, NULL},
    {"measured", TEXT, AT(measured), 0, ""},
    {"cold_ms", REAL, AT(cold_ms), 0, NULL},
    {"sustained_ms", REAL, AT(sustained_ms), 0, NULL},
    {"noise", REAL, AT(noise), 0, NULL},
    {"reference_ms", REAL, AT(reference_ms), 0, NULL},
    {"launches", COUNT64, AT(launches), 0, NULL},
    {"rank", COUNT32, AT(rank), 0, NULL},
    {"date", TEXT, AT(date), 0, NULL},
};

static void *field(const schedc_store_record *r, size_t at) { return (char *)r + at; }

static const char *text_in(const schedc_store_record *r, const Member *m) {
  const char *text = *(const char *const *)field(r, m->at);
  return text ? text : m->lacking;
}

// ---- reading

// What is wrong with a member, or NULL.
static const char *read_params(Sc *sc, const JsonValue *v, schedc_store_record *r,
                               const Member *m) {
  VEC(schedc_param) all = {0};
  if (v->kind != JSON_OBJECT) return "is an object of texts";
  for (const JsonValue *p = v->first; p; p = p->next) {
    if (p->kind != JSON_TEXT) return "is an object of texts";
    PUSH(sc, &all, ((schedc_param){p->name, p->text}));
  }
  *(const schedc_param **)field(r, m->at) = all.at;
  *(size_t *)field(r, m->count) = all.n;
  return NULL;
}

static bool whole_number(const JsonValue *v, double limit) {
  return v->kind == JSON_NUMBER && v->number >= 0 && v->number <= limit &&
         v->number == (double)(u64)v->number;
}

static const double exact = 9007199254740992;  // up to here every integer is a double

static const char *read_dims(Sc *sc, const JsonValue *v, schedc_store_record *r, const Member *m) {
  VEC(schedc_dim) all = {0};
  if (v->kind != JSON_OBJECT) return "is an object of whole numbers";
  for (const JsonValue *d = v->first; d; d = d->next) {
    if (!whole_number(d, exact)) return "is an object of whole numbers";
    PUSH(sc, &all, ((schedc_dim){d->name, (i64)d->number}));
  }
  *(const schedc_dim **)field(r, m->at) = all.at;
  *(size_t *)field(r, m->count) = all.n;
  return NULL;
}

static const char *read_member(Sc *sc, const JsonValue *v, schedc_store_record *r,
                               const Member *m) {
  switch (m->kind) {
    case TEXT:
      if (v->kind != JSON_TEXT) return "is a text";
      *(const char **)field(r, m->at) = v->text;
      return NULL;
    case COUNT32:
      if (!whole_number(v, UINT32_MAX)) return "is a whole number";
      *(unsigned *)field(r, m->at) = (unsigned)v->number;
      return NULL;
    case COUNT64:
      if (!whole_number(v, exact)) return "is a whole number";
      *(uint64_t *)field(r, m->at) = (uint64_t)v->number;
      return NULL;
    case REAL:
      if (v->kind != JSON_NUMBER || v->number < 0) return "is a number, not negative";
      *(double *)field(r, m->at) = v->number;
      return NULL;
    case PARAMS: return read_params(sc, v, r, m);
    case DIMS: return read_dims(sc, v, r, m);
  }
  return NULL;
}

static bool unfit(Sc *sc, u32 at, const char *what) {
  sc_report(sc, D_F_STORE, (Span){at, at + 1}, "%s", what);
  return false;
}

static bool read_record(Sc *sc, const JsonValue *line, u32 lo, schedc_store_record *r) {
  const JsonValue *format = sc_json_member(line, "store");
  if (!format || format->kind != JSON_NUMBER)
    return unfit(sc, lo, "this is no store of measured points: a line of one begins {\"store\":1");
  if (format->number != FORMAT)
    return unfit(sc, lo + format->at.lo, "a store of another version than 1");
  *r = (schedc_store_record)SCHEDC_STORE_RECORD_INIT;
  for (u32 i = 0; i < COUNT(members); i++) {
    const JsonValue *v = sc_json_member(line, members[i].name);
    const JsonValue lacking = {.kind = JSON_TEXT, .text = members[i].lacking};
    if (!v && members[i].lacking) v = &lacking;
    if (!v) return unfit(sc, lo, sc_printf(sc, "the line lacks '%s'", members[i].name));
    const char *wants = read_member(sc, v, r, &members[i]);
    if (wants) return unfit(sc, lo + v->at.lo, sc_printf(sc, "'%s' %s", members[i].name, wants));
  }
  return true;
}

static bool read_line(Sc *sc, const Text *text, u32 number, Records *out) {
  u32 lo = text->line[number - 1];
  u32 hi = number < text->lines ? text->line[number] - 1 : text->len;
  const char *line = sc_printf(sc, "%.*s", (int)(hi - lo), text->at + lo);
  JsonFault fault;
  schedc_store_record r;
  u32 n = (u32)strlen(line);
  if (n < hi - lo) return unfit(sc, lo + n, "this is no store of measured points: it has a NUL");
  if (strspn(line, " \t\r") == n) return true;
  const JsonValue *v = sc_json_read(sc, line, n, &fault);
  if (!v && fault.ended && line[0] == '{') {
    sc_demote(sc, sc_report(sc, D_F_STORE, (Span){lo, hi},
                            "this line was not written to its end, and is passed by"));
    return true;
  }
  if (!v) return unfit(sc, lo + fault.at, fault.what);
  if (!read_record(sc, v, lo, &r)) return false;
  r.line = number;
  PUSH(sc, &out->record, r);
  return true;
}

bool sc_store_read(Sc *sc, const Text *text, Records *out) {
  for (u32 i = 0; i < text->lines; i++)
    if (!read_line(sc, text, i + 1, out)) return false;
  return true;
}

// ---- writing

static void print_dims(Json *j, const schedc_store_record *r, bool buckets) {
  json_open(j, '{');
  for (size_t i = 0; i < r->dim_count; i++) {
    json_key(j, r->dims[i].name);
    json_int(j, buckets ? scl_bucket(r->dims[i].value) : r->dims[i].value);
  }
  json_close(j, '}');
}

static void print_params(Json *j, const schedc_param *p, size_t n) {
  json_open(j, '{');
  for (size_t i = 0; i < n; i++) json_key(j, p[i].name), json_text(j, p[i].value);
  json_close(j, '}');
}

static void print_member(Json *j, const schedc_store_record *r, const Member *m) {
  const void *at = field(r, m->at);
  json_key(j, m->name);
  switch (m->kind) {
    case TEXT: json_text(j, text_in(r, m)); break;
    case COUNT32: json_uint(j, *(const unsigned *)at); break;
    case COUNT64: json_uint(j, *(const uint64_t *)at); break;
    case REAL: json_real(j, *(const double *)at); break;
    case PARAMS:
      print_params(j, *(const schedc_param *const *)at, *(const size_t *)field(r, m->count));
      break;
    case DIMS:
      print_dims(j, r, false);
      json_key(j, "bucket");
      print_dims(j, r, true);
      break;
  }
}

void sc_store_print(Str *out, const schedc_store_record *r) {
  Json j = {.write = str_write, .user = out};
  json_open(&j, '{');
  json_key(&j, "store"), json_int(&j, FORMAT);
  for (u32 i = 0; i < COUNT(members); i++) print_member(&j, r, &members[i]);
  json_close(&j, '}');
  json_raw(&j, "\n");
}

static bool whole_params(const schedc_param *p, size_t n) {
  bool good = p || !n;
  for (size_t i = 0; good && i < n; i++) {
    good = p[i].name && p[i].value;
    for (size_t k = 0; good && k < i; k++) good = strcmp(p[k].name, p[i].name) != 0;
  }
  return good;
}

static bool whole_dims(const schedc_dim *d, size_t n) {
  bool good = d || !n;
  for (size_t i = 0; good && i < n; i++) {
    good = d[i].name && d[i].value >= 0 && (double)d[i].value <= exact;
    for (size_t k = 0; good && k < i; k++) good = strcmp(d[k].name, d[i].name) != 0;
  }
  return good;
}

bool sc_store_whole(const schedc_store_record *r) {
  for (u32 i = 0; i < COUNT(members); i++) {
    const void *at = field(r, members[i].at);
    if (members[i].kind == TEXT && !text_in(r, &members[i])) return false;
    if (members[i].kind == COUNT64 && (double)*(const uint64_t *)at > exact) return false;
    double real = members[i].kind == REAL ? *(const double *)at : 0;
    if (!(real >= 0 && real - real == 0)) return false;
  }
  return whole_params(r->problem, r->problem_count) && whole_params(r->tuning, r->tuning_count) &&
         whole_dims(r->dims, r->dim_count);
}

static const schedc_param *copy_params(Sc *sc, const schedc_param *p, size_t n) {
  schedc_param *copy = NEWS(sc, schedc_param, n + 1);
  for (size_t i = 0; i < n; i++)
    copy[i] = (schedc_param){sc_printf(sc, "%s", p[i].name), sc_printf(sc, "%s", p[i].value)};
  return copy;
}

schedc_store_record sc_store_copy(Sc *sc, const schedc_store_record *r) {
  schedc_store_record copy = *r;
  schedc_dim *dims = NEWS(sc, schedc_dim, r->dim_count + 1);
  for (u32 i = 0; i < COUNT(members); i++) {
    const char **text = field(&copy, members[i].at);
    if (members[i].kind == TEXT) *text = sc_printf(sc, "%s", text_in(r, &members[i]));
  }
  for (size_t i = 0; i < r->dim_count; i++)
    dims[i] = (schedc_dim){sc_printf(sc, "%s", r->dims[i].name), r->dims[i].value};
  copy.dims = dims;
  copy.problem = copy_params(sc, r->problem, r->problem_count);
  copy.tuning = copy_params(sc, r->tuning, r->tuning_count);
  return copy;
}

// ---- finding

// Has each of the n params its value among the m others?
static bool are_among(const schedc_param *a, size_t n, const schedc_param *b, size_t m) {
  bool found = true;
  for (size_t i = 0; found && i < n; i++) {
    found = false;
    for (size_t k = 0; k < m; k++)
      found |= !strcmp(a[i].name, b[k].name) && !strcmp(a[i].value, b[k].value);
  }
  return found;
}

bool sc_same_params(const schedc_param *a, size_t n, const schedc_param *b, size_t m) {
  return n == m && are_among(a, n, b, m);
}

// By nearest.c; UINT32_MAX: they do not have the same dimensions.
static u32 distance(const schedc_store_record *r, const schedc_store_record *key) {
  SclApart apart = {0};
  if (r->dim_count != key->dim_count) return UINT32_MAX;
  for (size_t i = 0; i < r->dim_count; i++) {
    size_t k = 0;
    while (k < key->dim_count && strcmp(r->dims[i].name, key->dims[k].name) != 0) k++;
    if (k == key->dim_count) return UINT32_MAX;
    scl_compare_dim(&apart, r->dims[i].value, key->dims[k].value);
  }
  return scl_distance(apart);
}

static bool fits(const schedc_store_record *r, const schedc_store_record *key) {
  return !strcmp(r->status, "verified") && !strcmp(r->schedule, key->schedule) &&
         !strcmp(r->unit, key->unit) && (!key->gpu || !strcmp(r->gpu, key->gpu)) &&
         sc_same_params(r->problem, r->problem_count, key->problem, key->problem_count) &&
         are_among(key->tuning, key->tuning_count, r->tuning, r->tuning_count);
}

bool sc_store_rather(const schedc_store_record *a, const schedc_store_record *b) {
  return a->rank < b->rank || (a->rank == b->rank && strcmp(a->date, b->date) >= 0);
}

const schedc_store_record *sc_store_find(const Records *all, const schedc_store_record *key) {
  const schedc_store_record *best = NULL;
  u32 least = 2 * SCL_FARTHEST;
  for (u32 i = 0; i < all->record.n; i++) {
    const schedc_store_record *r = &all->record.at[i];
    u32 apart = fits(r, key) ? distance(r, key) : UINT32_MAX;
    if (apart > least) continue;
    if (!best || apart < least || sc_store_rather(r, best)) best = r, least = apart;
  }
  return best;
}
