// json.c - writes JSON through a writer callback, in pieces. In: calls in the order of the text.
// Out: valid JSON in any locale, whatever bytes the strings hold. Nothing is allocated.
#include "base/base.h"
#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void put(Json *j, const char *bytes, size_t n) {
  if (n && !j->failed) j->failed = j->write(j->user, bytes, n) != 0;
}

void json_raw(Json *j, const char *text) { put(j, text, strlen(text)); }

static void element(Json *j) {
  if (j->comma) put(j, ",", 1);
  j->comma = true;
}

void json_open(Json *j, char bracket) {
  element(j);
  put(j, &bracket, 1);
  j->comma = false;
}

void json_close(Json *j, char bracket) {
  put(j, &bracket, 1);
  j->comma = true;
}

// The length of the UTF-8 sequence at s, 0 if it is none (RFC 3629: no surrogates, nothing
// overlong).
size_t json_sequence(const char *text) {
  const unsigned char *s = (const unsigned char *)text;
  if (s[0] < 0x80) return 1;
  size_t n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
  if (s[0] < 0xc2 || s[0] > 0xf4) return 0;
  for (size_t i = 1; i < n; i++) {
    if ((s[i] & 0xc0) != 0x80) return 0;
  }
  if (s[0] == 0xe0 && s[1] < 0xa0) return 0;
  if (s[0] == 0xed && s[1] > 0x9f) return 0;
  if (s[0] == 0xf0 && s[1] < 0x90) return 0;
  if (s[0] == 0xf4 && s[1] > 0x8f) return 0;
  return n;
}

static void quoted(Json *j, const char *text) {
  const unsigned char *s = (const unsigned char *)text;
  put(j, "\"", 1);
  while (*s) {
    size_t n = json_sequence((const char *)s);
    char hex[8];
    if (n == 0) {
      put(j, "\xef\xbf\xbd", 3);
      n = 1;
    } else if (*s == '"' || *s == '\\') {
      put(j, "\\", 1);
      put(j, (const char *)s, 1);
    } else if (*s == '\n') {
      put(j, "\\n", 2);
    } else if (*s < 32 || *s == 127) {
      put(j, hex, (size_t)snprintf(hex, sizeof hex, "\\u%04x", *s));
    } else {
      put(j, (const char *)s, n);
    }
    s += n;
  }
  put(j, "\"", 1);
}

void json_key(Json *j, const char *key) {
  element(j);
  quoted(j, key);
  put(j, ":", 1);
  j->comma = false;
}

void json_text(Json *j, const char *text) {
  element(j);
  if (text) quoted(j, text);
  else json_raw(j, "null");
}

void json_uri(Json *j, const char *file) {
  static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
  char hex[4];
  element(j);
  put(j, "\"", 1);
  for (; *file; file++) {
    if (strchr(plain, *file)) put(j, file, 1);
    else put(j, hex, (size_t)snprintf(hex, sizeof hex, "%%%02X", (unsigned char)*file));
  }
  put(j, "\"", 1);
}

void json_int(Json *j, int64_t value) {
  char digits[32];
  element(j);
  put(j, digits, (size_t)snprintf(digits, sizeof digits, "%" PRId64, value));
}

void json_uint(Json *j, uint64_t value) {
  char digits[32];
  element(j);
  put(j, digits, (size_t)snprintf(digits, sizeof digits, "%" PRIu64, value));
}

void json_real(Json *j, double value) {
  char digits[48];
  if (isnan(value) || isinf(value)) {
    json_text(j, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
    return;
  }
  element(j);
  snprintf(digits, sizeof digits, "%.17g", value);
  sc_dotted(digits);
  json_raw(j, digits);
}

void json_bool(Json *j, bool value) {
  element(j);
  json_raw(j, value ? "true" : "false");
}
