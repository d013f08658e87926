// jsonread.h - JSON, read strictly: RFC 8259, one value, every name of an object once.
#ifndef SC_JSONREAD_H
#define SC_JSONREAD_H

#include "base/base.h"

typedef enum JsonKind {
  JSON_NULL,
  JSON_BOOL,
  JSON_NUMBER,
  JSON_TEXT,
  JSON_ARRAY,
  JSON_OBJECT
} JsonKind;

typedef struct JsonValue {
  u8 kind;           // JsonKind
  bool truth;        // BOOL
  Span at;           // in the bytes that were read
  const char *name;  // of a member of an object
  const char
      *text;  // TEXT: without escapes, ends with a NUL and holds no other; NUMBER: as written
  double number;
  struct JsonValue *first, *next;  // elements or members; the next one beside this
} JsonValue;

typedef struct JsonFault {
  const char *what;  // one sentence
  u32 at;            // offset of what is wrong
  bool ended;        // nothing is wrong but that there are no more bytes
} JsonFault;

// Reads n bytes, which a NUL follows. NULL: `fault` says why. Nothing is reported.
const JsonValue *sc_json_read(Sc *sc, const char *at, size_t n, JsonFault *fault);
const JsonValue *sc_json_member(const JsonValue *object, const char *name);  // or NULL

#endif
