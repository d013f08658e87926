// diag_json.c - diagnostics for machines: JSON objects, and SARIF 2.1.0 logs (OASIS standard, 2020)
// in which the notes of a report are its related locations and, in the order in which the report
// gives them and with its own place last, a code flow.
#include "base/json.h"

#include <string.h>

static void put_range(Json *j, const schedc_range *r) {
  json_open(j, '{');
  json_key(j, "offset"), json_uint(j, r->offset);
  json_key(j, "length"), json_uint(j, r->length);
  json_key(j, "line"), json_uint(j, r->line);
  json_key(j, "column"), json_uint(j, r->column);
  json_key(j, "end_line"), json_uint(j, r->end_line);
  json_key(j, "end_column"), json_uint(j, r->end_column);
  json_close(j, '}');
}

schedc_status schedc_write_json(const schedc_diagnostic *d, schedc_writer writer, void *user) {
  if (!d || !writer) return SCHEDC_EARG;
  Json j = {.write = writer, .user = user};
  json_open(&j, '{');
  json_key(&j, "severity"), json_text(&j, d->severity == SCHEDC_ERROR ? "error" : "warning");
  json_key(&j, "code"), json_text(&j, d->code);
  json_key(&j, "file"), json_text(&j, d->file);
  json_key(&j, "range"), put_range(&j, &d->where);
  json_key(&j, "text"), json_text(&j, d->text);
  json_key(&j, "help"), json_text(&j, d->help);
  json_key(&j, "notes"), json_open(&j, '[');
  for (size_t i = 0; i < d->note_count; i++) {
    json_open(&j, '{');
    json_key(&j, "range"), put_range(&j, &d->notes[i].where);
    json_key(&j, "text"), json_text(&j, d->notes[i].text);
    json_close(&j, '}');
  }
  json_close(&j, ']');
  json_close(&j, '}');
  return j.failed ? SCHEDC_EIO : SCHEDC_OK;
}

// ---- SARIF

static void put_message(Json *j, const char *text) {
  json_open(j, '{');
  json_key(j, "text"), json_text(j, text);
  json_close(j, '}');
}

// A SARIF location: where, and what is there.
static void put_location(Json *j, const char *file, const schedc_range *r, const char *text) {
  json_open(j, '{');
  json_key(j, "physicalLocation"), json_open(j, '{');
  json_key(j, "artifactLocation"), json_open(j, '{');
  json_key(j, "uri"), json_uri(j, file);
  json_close(j, '}');
  json_key(j, "region"), json_open(j, '{');
  json_key(j, "startLine"), json_uint(j, r->line);
  json_key(j, "startColumn"), json_uint(j, r->column);
  json_key(j, "endLine"), json_uint(j, r->end_line);
  json_key(j, "endColumn"), json_uint(j, r->end_column);
  json_key(j, "byteOffset"), json_uint(j, r->offset);
  json_key(j, "byteLength"), json_uint(j, r->length);
  json_close(j, '}');
  json_close(j, '}');
  if (text) json_key(j, "message"), put_message(j, text);
  json_close(j, '}');
}

schedc_status schedc_sarif_begin(schedc_writer writer, void *user) {
  if (!writer) return SCHEDC_EARG;
  Json j = {.write = writer, .user = user};
  json_open(&j, '{');
  json_key(&j, "$schema"), json_text(&j, "https://json.schemastore.org/sarif-2.1.0.json");
  json_key(&j, "version"), json_text(&j, "2.1.0");
  json_key(&j, "runs"), json_open(&j, '[');
  json_open(&j, '{');
  // Columns count bytes. Of a schedule's text only comments hold other than ASCII, behind all else.
  json_key(&j, "columnKind"), json_text(&j, "unicodeCodePoints");
  json_key(&j, "tool"), json_open(&j, '{');
  json_key(&j, "driver"), json_open(&j, '{');
  json_key(&j, "name"), json_text(&j, "schedc");
  json_key(&j, "version"), json_text(&j, schedc_version());
  json_key(&j, "rules"), json_open(&j, '[');
  for (size_t i = 0; schedc_code_at(i); i++) {
    const char *code = schedc_code_at(i);
    json_open(&j, '{');
    json_key(&j, "id"), json_text(&j, code);
    json_key(&j, "shortDescription"), put_message(&j, schedc_code_summary(code));
    json_key(&j, "fullDescription"), put_message(&j, schedc_explain(code));
    json_close(&j, '}');
  }
  json_close(&j, ']');
  json_close(&j, '}');
  json_close(&j, '}');
  json_key(&j, "results"), json_open(&j, '[');
  return j.failed ? SCHEDC_EIO : SCHEDC_OK;
}

// The notes in the order in which the report gives them, then the report's own place.
static void put_code_flow(Json *j, const schedc_diagnostic *d) {
  json_key(j, "codeFlows"), json_open(j, '[');
  json_open(j, '{');
  json_key(j, "threadFlows"), json_open(j, '[');
  json_open(j, '{');
  json_key(j, "locations"), json_open(j, '[');
  for (size_t i = 0; i <= d->note_count; i++) {
    const schedc_note *note = i < d->note_count ? &d->notes[i] : NULL;
    json_open(j, '{');
    json_key(j, "location");
    put_location(j, d->file, note ? &note->where : &d->where, note ? note->text : d->text);
    json_close(j, '}');
  }
  json_close(j, ']');
  json_close(j, '}');
  json_close(j, ']');
  json_close(j, '}');
  json_close(j, ']');
}

schedc_status schedc_sarif_result(const schedc_diagnostic *d, int first, schedc_writer writer,
                                  void *user) {
  if (!d || !writer) return SCHEDC_EARG;
  size_t rule = 0;
  while (schedc_code_at(rule) && strcmp(schedc_code_at(rule), d->code) != 0) rule++;
  Json j = {.write = writer, .user = user, .comma = !first};
  json_open(&j, '{');
  json_key(&j, "ruleId"), json_text(&j, d->code);
  if (schedc_code_at(rule)) json_key(&j, "ruleIndex"), json_uint(&j, rule);
  json_key(&j, "level"), json_text(&j, d->severity == SCHEDC_ERROR ? "error" : "warning");
  json_key(&j, "message"), put_message(&j, d->text);
  json_key(&j, "locations"), json_open(&j, '[');
  put_location(&j, d->file, &d->where, NULL);
  json_close(&j, ']');
  if (d->note_count) {
    json_key(&j, "relatedLocations"), json_open(&j, '[');
    for (size_t i = 0; i < d->note_count; i++)
      put_location(&j, d->file, &d->notes[i].where, d->notes[i].text);
    json_close(&j, ']');
    put_code_flow(&j, d);
  }
  if (d->help) {
    json_key(&j, "properties"), json_open(&j, '{');
    json_key(&j, "help"), json_text(&j, d->help);
    json_close(&j, '}');
  }
  json_close(&j, '}');
  return j.failed ? SCHEDC_EIO : SCHEDC_OK;
}

schedc_status schedc_sarif_end(schedc_writer writer, void *user) {
  if (!writer) return SCHEDC_EARG;
  static const char tail[] = "]}]}\n";
  return writer(user, tail, sizeof tail - 1) ? SCHEDC_EIO : SCHEDC_OK;
}
