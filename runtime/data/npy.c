// npy.c - NumPy's .npy files (numpy.lib.format, versions 1.0 to 3.0). In: a file image, perhaps an
// enemy's. Out: type, shape, and where the data is in the image. The header is a Python dictionary
// literal; only what NumPy writes is read: string keys, a string, True or False, a tuple of
// integers, any spacing.
#include <stdio.h>
#include <string.h>

#include "runtime/run.h"

enum { MOST_HEADER = (1 << 16) - 12 };

typedef struct Reader {
  const char *at, *end;
} Reader;

static void skip_space(Reader *r) {
  while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n')) r->at++;
}

static bool take(Reader *r, char c) {
  skip_space(r);
  if (r->at == r->end || *r->at != c) return false;
  r->at++;
  return true;
}

static bool take_word(Reader *r, const char *word) {
  size_t n = strlen(word);
  skip_space(r);
  if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n)) return false;
  r->at += n;
  return true;
}

// 'text' or "text" without escapes.
static bool take_string(Reader *r, const char **text, size_t *n) {
  skip_space(r);
  if (r->at == r->end || (*r->at != '\'' && *r->at != '"')) return false;
  const char *from = r->at + 1, *to = memchr(from, *r->at, (size_t)(r->end - from));
  if (!to) return false;
  *text = from;
  *n = (size_t)(to - from);
  r->at = to + 1;
  return true;
}

static bool take_int(Reader *r, i64 *out) {
  skip_space(r);
  const char *from = r->at;
  for (*out = 0; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++)
    if (__builtin_mul_overflow(*out, (i64)10, out) ||
        __builtin_add_overflow(*out, (i64)(*r->at - '0'), out))
      return false;
  return r->at > from;
}

static const char *read_descr(Reader *r, Npy *out) {
  const char *s;
  size_t n;
  if (!take_string(r, &s, &n))
    return "its descr is not a string: structured types are not supported";
  if (n == 3 && s[0] == '>' && s[2] != '1')
    return "it is big-endian: write it with native byte order";
  bool order = n == 3 && (s[0] == '<' || s[0] == '|' || s[0] == '=' || s[0] == '>');
  bool kind = order && (s[1] == 'f' || s[1] == 'i' || s[1] == 'u');
  if (!kind || !strchr("1248", s[2]))
    return "its element type is no plain float or integer of 1 to 8 bytes";
  out->descr = s[1];
  out->bytes = (u8)(s[2] - '0');
  return NULL;
}

static const char *read_shape(Reader *r, Npy *out) {
  if (!take(r, '(')) return "its shape is not a tuple";
  while (!take(r, ')')) {
    if (out->rank == SC_MAX_RANK) return "it has more than 6 dimensions";
    if (!take_int(r, &out->shape[out->rank++]))
      return "its shape has an entry that is no valid size";
    if (take(r, ',')) continue;
    if (!take(r, ')')) return "its shape is not a tuple";
    break;
  }
  return NULL;
}

enum { HAS_DESCR = 1, HAS_ORDER = 2, HAS_SHAPE = 4, HAS_ALL = 7 };

static const char *read_entry(Reader *r, Npy *out, unsigned *has) {
  const char *key, *wrong = NULL;
  size_t n;
  if (!take_string(r, &key, &n) || !take(r, ':')) return "its header is no dictionary";
  unsigned which = n == 5 && !memcmp(key, "descr", 5)             ? HAS_DESCR
                   : n == 13 && !memcmp(key, "fortran_order", 13) ? HAS_ORDER
                   : n == 5 && !memcmp(key, "shape", 5)           ? HAS_SHAPE
                                                                  : 0;
  if (!which) return "its header has an unknown key";
  if (*has & which) return "its header has a key twice";
  *has |= which;
  if (which == HAS_DESCR) wrong = read_descr(r, out);
  else if (which == HAS_SHAPE) wrong = read_shape(r, out);
  else if (take_word(r, "True")) wrong = "it is in Fortran order: use numpy.ascontiguousarray";
  else if (!take_word(r, "False")) wrong = "its fortran_order is neither True nor False";
  return wrong;
}

static const char *read_header(Reader *r, Npy *out) {
  unsigned has = 0;
  if (!take(r, '{')) return "its header is no dictionary";
  while (!take(r, '}')) {
    const char *wrong = read_entry(r, out, &has);
    if (wrong) return wrong;
    if (take(r, ',')) continue;
    if (!take(r, '}')) return "its header is no dictionary";
    break;
  }
  skip_space(r);
  if (r->at != r->end) return "something follows its header's dictionary";
  return has == HAS_ALL ? NULL : "its header lacks descr, fortran_order or shape";
}

const char sc_npy_short[] = "it has less data than its shape says";

const char *sc_npy_head(Npy *out, const void *image, size_t n) {
  const u8 *at = image;
  *out = (Npy){0};
  if (n < 10 || memcmp(at, "\x93NUMPY", 6)) return "it is no .npy file";
  if (at[6] < 1 || at[6] > 3) return "its format version is not 1, 2 or 3";
  size_t prefix = at[6] == 1 ? 10 : 12;
  if (n < prefix) return "it ends within its header";
  size_t header = at[8] | (size_t)at[9] << 8;
  if (prefix == 12) header |= (size_t)at[10] << 16 | (size_t)at[11] << 24;
  if (header > MOST_HEADER) return "its header is longer than 64 KiB";
  if (header > n - prefix) return "it ends within its header";
  Reader r = {(const char *)at + prefix, (const char *)at + prefix + header};
  const char *wrong = read_header(&r, out);
  if (wrong) return wrong;
  size_t bytes = out->bytes;
  for (u32 i = 0; i < out->rank; i++)
    if (__builtin_mul_overflow(bytes, (size_t)out->shape[i], &bytes))
      return "its shape is too large";
  out->data = at + prefix + header;
  out->size = bytes;
  return NULL;
}

bool sc_npy_fits_i32(const Npy *npy) {
  for (size_t i = 0; i < npy->size / 8; i++) {
    i64 v;
    memcpy(&v, (const char *)npy->data + 8 * i, 8);
    if (v < INT32_MIN || v > INT32_MAX) return false;
  }
  return true;
}

// n elements, from element `first` of the file on.
static void copy_run(const Npy *npy, size_t first, size_t n, void *to) {
  const char *from = (const char *)npy->data + first * npy->bytes;
  for (size_t i = 0; i < n; i++) {
    double f;
    i64 v;
    if (npy->descr == 'f') memcpy(&f, from + 8 * i, 8), ((float *)to)[i] = (float)f;
    else memcpy(&v, from + 8 * i, 8), ((i32 *)to)[i] = (i32)v;
  }
}

void sc_npy_copy(const Npy *npy, Elem elem, void *to, const Extent *extent) {
  size_t bytes = sc_elem[elem].bytes, n = sc_elements(extent), run = sc_run_length(extent);
  for (size_t i = 0; i < n; i += run) {
    char *at = (char *)to + (size_t)sc_where(extent, i) * bytes;
    if (npy->bytes == bytes) memcpy(at, (const char *)npy->data + i * bytes, run * bytes);
    else copy_run(npy, i, run, at);
  }
}

// Writes a version 1.0 header of a multiple of 64 bytes, as NumPy does. Returns its length, or 0 if
// it does not fit.
size_t sc_npy_header(char *to, size_t room, char descr, u8 bytes, const i64 *shape, size_t rank) {
  char text[256];
  if (rank > SC_MAX_RANK) return 0;
  int n = snprintf(text, sizeof text, "{'descr': '%c%c%d', 'fortran_order': False, 'shape': (",
                   bytes == 1 ? '|' : '<', descr, bytes);
  for (size_t i = 0; i < rank; i++)
    n += snprintf(text + n, sizeof text - (size_t)n, "%s%lld%s", i ? ", " : "", (long long)shape[i],
                  rank == 1 ? "," : "");
  n += snprintf(text + n, sizeof text - (size_t)n, "), }");
  size_t total = (10 + (size_t)n + 1 + 63) / 64 * 64, header = total - 10;
  if (total > room) return 0;
  memcpy(to, "\x93NUMPY\x01\x00", 8);
  to[8] = (char)(header & 255);
  to[9] = (char)(header >> 8);
  memcpy(to + 10, text, (size_t)n);
  memset(to + 10 + n, ' ', header - (size_t)n - 1);
  to[total - 1] = '\n';
  return total;
}
