// base.h - what every part stands on: an arena that owns all memory of one compilation, byte spans,
// and diagnostics. Nothing here is global: the context `Sc` is passed first.
#ifndef SC_BASE_H
#define SC_BASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schedc.h"

typedef uint8_t u8;
typedef uint16_t u16;
typedef int16_t i16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t i8;
typedef int32_t i32;
typedef int64_t i64;

#define COUNT(a) (sizeof(a) / sizeof *(a))

// A byte range [lo, hi) of the compilation's one source text. Lines and columns exist only in
// print.
typedef struct Span {
  u32 lo, hi;
} Span;

// An interned name: equal names of one source are equal pointers. NUL-terminated, UTF-8 never
// occurs.
typedef const char *Sym;

// The text of one file, with the start of each line. Immutable once made.
typedef struct Text {
  const char *name;  // as the user gave it
  const char *at;    // `len` bytes, followed by a NUL (the lexer's sentinel)
  u32 len;
  const u32 *line;  // byte offset of each line's start
  u32 lines;
  bool unread;  // what stands for a file of which no line can be shown
} Text;

typedef struct Chunk Chunk;

// Bump allocation out of chunks that the caller's allocator provides. SC_ONE_CHUNK_A_NODE (a test
// build) gives each request a chunk of its own, so that sanitizers see each object's bounds and the
// out-of-memory test can fail each request in turn.
typedef struct Arena {
  Chunk *head;
  Chunk *spare;  // of a compilation before this one
  char *at, *end;
} Arena;

#define DIAG(id, code, severity, summary, explain) D_##id,
typedef enum DiagId {
#include "base/diag.def"
  D_COUNT
} DiagId;
#undef DIAG

// One secondary place of a diagnostic: "`v` is in flight from here".
typedef struct Note {
  Span at;
  const char *text;
  struct Note *next;
} Note;

typedef struct Diag {
  DiagId id;
  schedc_severity severity;  // the table's, unless demoted
  Span at;
  const char *text;  // one sentence, no full stop, lower case
  const char *help;  // what to do, or NULL
  Note *notes;       // in the order in which they were added
  struct Diag *next;
} Diag;

enum { SC_MAX_ERRORS = 20, SC_MAX_NEST = 64 };

// One compilation: owner of everything it allocates. Used by one thread at a time.
typedef struct Sc {
  schedc_allocator alloc;
  Arena arena;
  const Text *text;  // what spans refer to
  Diag *diags;       // in the order of report
  Diag **diag_end;
  u32 errors;         // how many of them are errors, with those that were dropped
  bool unverified;    // the caller wants what may race or hang: its reports are warnings
  bool until_error;   // the first error, which is not said, unwinds: SCHEDC_EINPUT
  u32 trying;         // > 0: what is said now may be taken back, and ends nothing
  DiagId first;       // until_error: that error
  Diag dropped;       // stands for every report past the limit
  jmp_buf *unwind;    // where limits and out of memory go: set by the API boundary
  schedc_status why;  // set by sc_unwind
} Sc;

// ---- arena.c
extern const schedc_allocator sc_host_memory;         // malloc and free
void sc_init(Sc *sc, const schedc_allocator *alloc);  // alloc NULL: sc_host_memory
// releases every chunk; sc may be reused after sc_init
void sc_free(Sc *sc);
// as sc_free and sc_init, but keeps chunks for what comes: fresh ones cost more than what is done
// in them
void sc_recycle(Sc *sc);
// never returns; the arena stays valid until sc_free
_Noreturn void sc_unwind(Sc *sc, schedc_status why);
// n zeroed bytes aligned to 16; unwinds when there are none
void *sc_new(Sc *sc, size_t n);
void *sc_grow(Sc *sc, void *old, size_t had, size_t want);  // a larger copy, the rest zeroed
char *sc_printf(Sc *sc, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *sc_vprintf(Sc *sc, const char *fmt, va_list ap);

#define NEW(sc, T) ((T *)sc_new((sc), sizeof(T)))
#define NEWS(sc, T, n) ((T *)sc_new((sc), sizeof(T) * (size_t)(n)))

// Growable arrays: VEC(Ins) code; PUSH(sc, &k->code, ins). Elements move when the array grows.
#define VEC(T)  \
  struct {      \
    T *at;      \
    u32 n, cap; \
  }
#define PUSH(sc, v, item)                                                                          \
  ((v)->n == (v)->cap ? (void)((v)->at = sc_grow((sc), (v)->at, sizeof *(v)->at * (v)->cap,        \
                                                 sizeof *(v)->at * ((v)->cap ? (v)->cap * 2 : 8)), \
                               (v)->cap = (v)->cap ? (v)->cap * 2 : 8)                             \
                      : (void)0,                                                                   \
   (v)->at[(v)->n++] = (item))

// A text that grows; what printers write into.
typedef struct Str {
  Sc *sc;
  char *at;  // NUL-terminated, NULL when empty
  u32 n, cap;
} Str;
void str_put(Str *s, const char *bytes, size_t n);
int str_write(void *str, const char *bytes, size_t n);  // the same, as a schedc_writer
void str_puts(Str *s, const char *text);
void str_printf(Str *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
// Reals as text, the same in every locale. Printed: the fewest digits that read back as v, always
// with a point or an exponent, or inf, -inf, nan. Read: digits [. digits] [e [+-] digits]; false:
// too large.
void str_real(Str *s, double v);
void str_float(Str *s, float v);  // … that read back as v when rounded to f32
bool sc_read_real(Sc *sc, const char *at, size_t n, double *out);
// Of a number that printf wrote, the locale's decimal point becomes '.'. False: it has none.
bool sc_dotted(char *text);

// ---- text.c
// copies; n < 2^31 checked by the caller
Text *sc_text(Sc *sc, const char *name, const char *bytes, size_t n);
Text sc_unread(const char *name);  // stands for a file of which no line can be shown
typedef struct LineCol {
  u32 line, col;  // from 1; columns in bytes
} LineCol;
LineCol sc_line_col(const Text *text, u32 offset);
// Misspelt names: is `name` what was meant by `written`, with at most *slips letters wrong, left
// out, too many or swapped with the next? If so, *slips becomes what a nearer name may have.
// sc_slips: how many to begin with.
u32 sc_slips(const char *written);
bool sc_nearer(const char *written, const char *name, u32 *slips);

// ---- keys.c: numbers of keys, which are bytes, and of which there may be several kinds
typedef struct Key {
  const void *at;  // a copy of the bytes, followed by a NUL; NULL: free
  u32 n, kind, hash, number;
} Key;
typedef struct Keys {  // {0}: none
  Key *at;
  u32 n, room;
} Keys;
// The place of a key, until the next one comes; its number is 0 if it is new.
Key *sc_key(Sc *sc, Keys *keys, u32 kind, const void *at, size_t n);
u32 sc_key_number(const Keys *keys, u32 kind, const void *at, size_t n);  // 0: it has none
void sc_keys_clear(Keys *keys);

// ---- threads.c
enum { SC_MAX_THREADS = 64 };
u32 sc_threads(u32 wanted, u32 most);  // how many there are to be; 0: one for each core, 1 at least
// Runs `work` on each of at most SC_MAX_THREADS jobs, the first on this thread, and waits for all.
// Jobs for which no thread can be had are done behind the first.
void sc_on_threads(u32 n, void *(*work)(void *), void *jobs, size_t bytes);

// ---- numbers.c
void sc_sort(double *v, u32 n);  // the smallest first
void sc_sort_u32(u32 *v, u32 n);
double sc_median(double *v, u32 n);  // sorts them; 0 if there are none

// ---- diag.c
// Each appends to sc->diags and returns the report, so that notes and a help line can follow. After
// SC_MAX_ERRORS errors further ones are counted, cost nothing and are all &sc->dropped.
Diag *sc_report(Sc *sc, DiagId id, Span at, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
Diag *sc_vreport(Sc *sc, DiagId id, Span at, const char *fmt, va_list ap);
static inline bool sc_at_limit(const Sc *sc) { return sc->errors >= SC_MAX_ERRORS; }
// Between sc_said and sc_unsay, which takes the reports since then back. Out: the first error among
// them, or NULL.
typedef struct Reports {
  Diag **end;
  u32 errors;
} Reports;
static inline Reports sc_said(Sc *sc) {
  sc->trying++;
  return (Reports){sc->diag_end, sc->errors};
}
const Diag *sc_unsay(Sc *sc, Reports before);
void sc_demote(Sc *sc, Diag *d);  // an error that the caller chose to hear of as a warning
void sc_note(Sc *sc, Diag *d, Span at, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void sc_help(Sc *sc, Diag *d, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
const char *sc_diag_code(DiagId id);
const char *sc_diag_summary(DiagId id);
const char *sc_diag_explain(DiagId id);
// the compiler-style report with source lines and carets
void sc_diag_text(Str *out, const Text *text, const Diag *d);

#endif
