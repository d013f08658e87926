// json.h - JSON, written as it goes: the one escaper of the project. Depends on nothing but
// schedc.h.
#ifndef SC_JSON_H
#define SC_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "schedc.h"

typedef struct Json {
  schedc_writer write;
  void *user;
  bool comma;   // an element stands before, in the container that is open
  bool failed;  // the writer refused; nothing more is written
} Json;

// Containers: '{' or '['. A key precedes each member of an object.
void json_open(Json *j, char bracket);
void json_close(Json *j, char bracket);
void json_key(Json *j, const char *key);
// Any bytes: what is not UTF-8 becomes U+FFFD. NULL is written as null.
void json_text(Json *j, const char *text);
// A file name as a URI reference (RFC 3986): what may not stand in a path is percent-encoded.
void json_uri(Json *j, const char *file);
void json_int(Json *j, int64_t value);
void json_uint(Json *j, uint64_t value);
void json_real(Json *j, double value);  // infinities and NaN, which JSON lacks, as strings
void json_bool(Json *j, bool value);
void json_raw(Json *j, const char *text);  // between elements: a newline

// How many bytes the UTF-8 sequence at `text` has, which ends with a NUL; 0: it is none.
size_t json_sequence(const char *text);

#endif
