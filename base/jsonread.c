// jsonread.c - reads JSON. In: bytes with a NUL behind them. Out: a tree on the arena, or what is
// wrong and where. The NUL is the sentinel: no loop passes it, so none looks for the end. Nesting
// and the members of an object are bounded; numbers are read as in the C locale.
#include "base/jsonread.h"

#include <string.h>

#include "base/json.h"

enum { MAX_DEPTH = 32, MAX_MEMBERS = 1000 };

typedef struct Reader {
  Sc *sc;
  const char *from, *at, *end;
  JsonFault *fault;
} Reader;

static JsonValue *value(Reader *r, u32 depth);

static void *wrong(Reader *r, const char *what) {
  bool ended = r->at == r->end;
  *r->fault =
      (JsonFault){ended ? "the text ends inside a value" : what, (u32)(r->at - r->from), ended};
  return NULL;
}

static void blanks(Reader *r) { r->at += strspn(r->at, " \t\r\n"); }

// Skips `c`, and blanks before it.
static bool taken(Reader *r, char c) {
  blanks(r);
  if (*r->at != c) return false;
  r->at++;
  return true;
}

// ---- texts

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// Four digits behind \u. False: they are not there.
static bool unit(Reader *r, u32 *out) {
  *out = 0;
  for (int i = 0; i < 4; i++, r->at++) {
    int digit = hex_digit(*r->at);
    if (digit < 0) return false;
    *out = *out << 4 | (u32)digit;
  }
  return true;
}

static void put_code_point(Str *out, u32 c) {
  char b[4];
  size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  static const u8 head[] = {0, 0, 0xc0, 0xe0, 0xf0};
  for (size_t i = n - 1; i; i--, c >>= 6) b[i] = (char)(0x80 | (c & 0x3f));
  b[0] = (char)(head[n] | c);
  str_put(out, b, n);
}

// What follows \u, and the second half of a pair.
static bool escaped_point(Reader *r, Str *out) {
  u32 c, low;
  if (!unit(r, &c)) return wrong(r, "four hexadecimal digits belong behind \\u") != NULL;
  if (c == 0) return wrong(r, "a text holds no NUL") != NULL;
  if (c >= 0xd800 && c < 0xe000) {
    bool pair = c < 0xdc00 && *r->at == '\\' && r->at[1] == 'u';
    r->at += pair ? 2 : 0;
    if (!pair || !unit(r, &low) || low < 0xdc00 || low > 0xdfff)
      return wrong(r, "half of a surrogate pair stands alone") != NULL;
    c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
  }
  put_code_point(out, c);
  return true;
}

static bool escape(Reader *r, Str *out) {
  static const char written[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
  r->at++;
  if (*r->at == 'u') {
    r->at++;
    return escaped_point(r, out);
  }
  const char *which = *r->at ? strchr(written, *r->at) : NULL;
  if (!which) return wrong(r, "no such escape") != NULL;
  str_put(out, &meant[which - written], 1);
  r->at++;
  return true;
}

// What is no UTF-8: at the end of the bytes it may be a sequence that was cut off.
static void *no_sequence(Reader *r) {
  const char *at = r->at;
  while ((u8)*at >= 0x80) at++;
  if (at == r->end && at - r->at < 4) r->at = at;
  return wrong(r, "a byte that is not UTF-8");
}

// A text behind its quote, up to the other one. NULL: a fault.
static const char *quoted(Reader *r) {
  Str out = {.sc = r->sc};
  while (*r->at != '"') {
    size_t n = json_sequence(r->at);
    if ((u8)*r->at < 32) return wrong(r, "a control character in a text");
    if (*r->at == '\\') {
      if (!escape(r, &out)) return NULL;
    } else {
      if (!n) return no_sequence(r);
      str_put(&out, r->at, n);
      r->at += n;
    }
  }
  r->at++;
  return out.n ? out.at : "";
}

// ---- numbers and words

static const char *digits(const char *at) { return at + strspn(at, "0123456789"); }

static JsonValue *number(Reader *r, JsonValue *v) {
  const char *from = r->at, *whole = from + (*from == '-');
  r->at = *whole == '0' ? whole + 1 : digits(whole);
  bool good = r->at > whole;
  if (good && *r->at == '.') {
    const char *part = ++r->at;
    r->at = digits(part);
    good = r->at > part;
  }
  if (good && (*r->at == 'e' || *r->at == 'E')) {
    r->at += 1 + (r->at[1] == '+' || r->at[1] == '-');
    const char *part = r->at;
    r->at = digits(part);
    good = r->at > part;
  }
  if (!good) return wrong(r, "a digit is missing here");
  v->kind = JSON_NUMBER;
  v->text = sc_printf(r->sc, "%.*s", (int)(r->at - from), from);
  if (!sc_read_real(r->sc, from, (size_t)(r->at - from), &v->number))
    return wrong(r, "the number is too large");
  return v;
}

static JsonValue *word(Reader *r, JsonValue *v) {
  static const char *const words[] = {"null", "false", "true"};
  for (u32 i = 0; i < COUNT(words); i++) {
    size_t same = 0;
    while (words[i][same] && r->at[same] == words[i][same]) same++;
    if (!same) continue;
    r->at += same;
    if (words[i][same]) break;
    v->kind = i ? JSON_BOOL : JSON_NULL;
    v->truth = i == 2;
    return v;
  }
  return wrong(r, "no value of JSON begins so");
}

// ---- arrays and objects

static const char *member_name(Reader *r, const JsonValue *object) {
  if (!taken(r, '"')) return wrong(r, "a member begins with its name in quotes");
  const char *name = quoted(r);
  if (!name) return NULL;
  if (sc_json_member(object, name)) return wrong(r, "the object has a member of this name already");
  return taken(r, ':') ? name : wrong(r, "a ':' belongs behind a member's name");
}

static JsonValue *container(Reader *r, JsonValue *v, char close, u32 depth) {
  JsonValue **end = &v->first;
  if (depth == MAX_DEPTH) return wrong(r, "values are nested more than 32 deep");
  r->at++;
  if (taken(r, close)) return v;
  for (u32 n = 0; n == 0 || taken(r, ','); n++) {
    const char *name = NULL;
    if (close == '}' && n == MAX_MEMBERS) return wrong(r, "an object has more than 1000 members");
    if (close == '}' && !(name = member_name(r, v))) return NULL;
    JsonValue *element = value(r, depth + 1);
    if (!element) return NULL;
    element->name = name;
    *end = element;
    end = &element->next;
  }
  return taken(r, close) ? v : wrong(r, "a ',' or the closing bracket belongs here");
}

static JsonValue *value(Reader *r, u32 depth) {
  JsonValue *v = NEW(r->sc, JsonValue), *out;
  blanks(r);
  v->at.lo = (u32)(r->at - r->from);
  if (*r->at == '{' || *r->at == '[') {
    v->kind = *r->at == '{' ? JSON_OBJECT : JSON_ARRAY;
    out = container(r, v, *r->at == '{' ? '}' : ']', depth);
  } else if (*r->at == '"') {
    r->at++;
    v->kind = JSON_TEXT;
    v->text = quoted(r);
    out = v->text ? v : NULL;
  } else {
    out = *r->at == '-' || digits(r->at) > r->at ? number(r, v) : word(r, v);
  }
  v->at.hi = (u32)(r->at - r->from);
  return out;
}

const JsonValue *sc_json_read(Sc *sc, const char *at, size_t n, JsonFault *fault) {
  Reader r = {sc, at, at, at + n, fault};
  const JsonValue *v = value(&r, 0);
  if (!v) return NULL;
  blanks(&r);
  return r.at == r.end ? v : wrong(&r, "something follows the value");
}

const JsonValue *sc_json_member(const JsonValue *object, const char *name) {
  const JsonValue *m = object->kind == JSON_OBJECT ? object->first : NULL;
  while (m && strcmp(m->name, name) != 0) m = m->next;
  return m;
}
