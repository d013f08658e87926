// name.c - makes text of the schedule safe in emitted text: names, comments and paths. In: anything
// that a schedule or its path may hold. Out: one identifier for each name, comments that end where
// they should, and string literals. Called by all files of the emitter; calls none of them.
#include "compiler/emit/emit.h"

#include <string.h>

#include "base/json.h"

// ---- names
//
// The schedule's names are kept where they can be. One that C++, CUDA or the emitter itself uses
// gets a '_' at its end, and so does one that ends in '_' already: no two names become one.

static bool is_word(const char *name) {
  static const char *const words[] = {
      // C++
      "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break",
      "case", "catch", "char", "char8_t", "char16_t", "char32_t", "class", "compl", "concept",
      "const", "const_cast", "consteval", "constexpr", "constinit", "continue", "co_await",
      "co_return", "co_yield", "decltype", "default", "delete", "do", "double", "dynamic_cast",
      "else", "enum", "explicit", "export", "extern", "false", "float", "for", "friend", "goto",
      "if", "inline", "int", "long", "main", "mutable", "namespace", "new", "noexcept", "not",
      "not_eq", "nullptr", "operator", "or", "or_eq", "private", "protected", "public", "register",
      "restrict", "reinterpret_cast", "requires", "return", "short", "signed", "sizeof", "static",
      "static_assert", "static_cast", "struct", "switch", "template", "this", "thread_local",
      "throw", "true", "try", "typedef", "typeid", "typename", "union", "unsigned", "using",
      "virtual", "void", "volatile", "wchar_t", "while", "xor", "xor_eq",
      // CUDA, as far as emitted code calls it; so are the functions of expr.def
      "atomicAdd", "blockDim", "blockIdx", "float2", "float4", "gridDim", "half", "int4",
      "make_float4", "make_int4", "make_uint4", "threadIdx", "uint4", "warpSize",
      // what NVRTC declares itself
      "acos", "acosh", "asin", "asinh", "assert", "atan", "atan2", "atanh", "cbrt", "ceil", "clock",
      "clock64", "clock_t", "copysign", "cos", "cosh", "cospi", "dim3", "double2", "double4", "erf",
      "erfc", "erfcinv", "erfcx", "erfinv", "exp", "exp10", "exp2", "expm1", "fabs", "fdim",
      "fdividef", "floor", "fma", "fmax", "fmin", "fmod", "free", "frexp", "hypot", "ilogb", "int2",
      "int3", "isfinite", "isinf", "isnan", "j0", "j1", "jn", "labs", "ldexp", "lgamma", "llabs",
      "llmax", "llmin", "llrint", "llround", "log", "log10", "log1p", "log2", "logb", "lrint",
      "lround", "malloc", "memcpy", "memset", "modf", "nan", "nearbyint", "nextafter", "norm",
      "norm3d", "norm4d", "normcdf", "normcdfinv", "pow", "powi", "printf", "ptrdiff_t", "rcbrt",
      "remainder", "remquo", "rhypot", "rint", "rnorm", "rnorm3d", "rnorm4d", "round", "rsqrt",
      "saturate", "scalbln", "scalbn", "signbit", "sin", "sincos", "sincospi", "sinh", "sinpi",
      "size_t", "sqrt", "surfaceReference", "tan", "tanh", "textureReference", "tgamma", "trap",
      "trunc", "uint2", "uint3", "ullmax", "ullmin", "umax", "umin", "y0", "y1", "yn", "NULL", "_",
      // the emitter's own
      "DEV", "List", "Lists", "SC_INF", "TensorMap", "a_desc", "args", "at", "b", "b_desc", "col",
      "col0", "counter", "cta", "cta_rank", "e", "inside", "instance", "lane", "memory", "met", "n",
      "named_bars", "next", "owner", "r", "row", "row0", "row_out", "sc", "slot", "smem", "thread",
      "tile", "tile0", "tile_step", "tiles", "u16", "u32", "u64", "waits", "warp", "warp_of_cta",
      "warpgroup", "workspace", "x", "y"};
  for (u32 i = 0; i < COUNT(words); i++) {
    if (!strcmp(words[i], name)) return true;
  }
  for (u32 i = 0; i < X_COUNT; i++) {
    const char *real = sc_xop[i].c, *integer = sc_xop[i].c_int;
    if ((real && !strcmp(real, name)) || (integer && !strcmp(integer, name))) return true;
  }
  return false;
}

// Names that the emitter forms: k_fill, x_tile, Q_stride, old_19.
bool cu_is_formed(const char *name) {
  static const char *const ends[] = {"_",       "_args",       "_bytes",  "_empty",    "_fill",
                                     "_full",   "_generation", "_held",   "_map",      "_next",
                                     "_oldest", "_parity",     "_place",  "_place_of", "_stage",
                                     "_stride", "_tile",       "_vectors"};
  static const char *const stems[] = {"next", "rest", "round", "turn", "vote"};
  size_t n = strlen(name), digits = n;
  for (u32 i = 0; i < COUNT(ends); i++) {
    size_t m = strlen(ends[i]);
    if (n > m && !strcmp(name + n - m, ends[i])) return true;
  }
  while (digits && name[digits - 1] >= '0' && name[digits - 1] <= '9') digits--;
  if (digits == n || !digits) return false;
  for (u32 i = 0; i < COUNT(stems); i++) {
    if (!strncmp(stems[i], name, strlen(stems[i]))) return true;
  }
  return name[digits - 1] == '_';
}

const char *sc_cuda_name(Sc *sc, Sym name) {
  size_t n = strlen(name);  // sinf as sin
  bool taken = is_word(name) ||
               (n && name[n - 1] == 'f' && is_word(sc_printf(sc, "%.*s", (int)n - 1, name))) ||
               cu_is_formed(name) || !strncmp(name, "sc_", 3) || !strncmp(name, "__", 2);
  return taken ? sc_printf(sc, "%s_", name) : name;
}

// ---- what code names

static bool is_of_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// The next name or number at or after `p`, of *n bytes; NULL at the end. Comments are skipped: they
// hold words of the schedule.
const char *cu_next_name(const char *p, size_t *n) {
  while (*p && !is_of_name(*p)) p += p[0] == '/' && p[1] == '/' ? strcspn(p, "\n") : 1;
  for (*n = 0; is_of_name(p[*n]);) ++*n;
  return *n ? p : NULL;
}

// ---- comments and literals

// Puts bytes of the schedule or of its name into a comment. None of them may end the comment or
// continue it on the next line. Bytes that are not UTF-8 become blanks: of some, NVRTC makes a
// program without a kernel and reports nothing.
void sc_cuda_comment(Str *out, const char *at, size_t n) {
  for (size_t i = 0, bytes; i < n; i += bytes ? bytes : 1) {
    u8 c = (u8)at[i];
    bool unsafe = c < 32 || c == 127 || c == '\\' ||
                  (c == '/' && i && (at[i - 1] == '?' || at[i - 1] == '*'));
    bytes = json_sequence(&at[i]);
    if (unsafe || !bytes || bytes > n - i) str_puts(out, " ");
    else str_put(out, &at[i], bytes);
  }
}

// A string literal. Octal escapes have three digits, so that what follows is never taken for a
// fourth. A quote in a file's name would reach the PTX, where ptxas cannot read it.
static void put_string(Str *out, const char *text) {
  str_puts(out, "\"");
  for (const char *p = text; *p; p++) {
    u8 c = (u8)*p;
    if (c == '"') str_puts(out, "'");
    else if (c < 32 || c >= 127 || c == '\\' || c == '?') str_printf(out, "\\%03o", c);
    else str_put(out, p, 1);
  }
  str_puts(out, "\"");
}

void cu_put_line(Str *out, const Kernel *k) {
  str_printf(out, "#line %u ", sc_line_col(k->text, k->span.lo).line);
  put_string(out, k->text->name);
  str_puts(out, "\n");
}

// "schedules/fa3_fwd.sched: T = f16, D = 128", as part of a comment.
void sc_cuda_origin(Str *out, const Kernel *k) {
  sc_cuda_comment(out, k->text->name, strlen(k->text->name));
  for (u32 i = 0; i < k->param.n; i++) {
    const Value *v = &k->param.at[i].value;
    str_printf(out, i ? ", %s = " : ": %s = ", k->param.at[i].name);
    sc_put_value(out, v);
  }
}
