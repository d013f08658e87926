// report.c - contexts, and what they report. In: a status and diagnostics of the C library. Out: a
// call of the package's `report`, which raises an exception or warns. The sink runs without the
// GIL, so it copies each diagnostic into memory of its own; Python sees them when the call is over.
#include <stdlib.h>
#include <string.h>

#include "core.h"

typedef struct Note {
  schedc_range where;
  char *text;
} Note;

typedef struct Report {
  struct Report *next;
  schedc_severity severity;
  schedc_range where;
  char *code, *file, *text, *help, *rendered;
  Note *note;
  size_t notes;
} Report;

struct Reports {
  Report *first, **end;
  int lost;  // memory ran out: not all are here
};

static char *copy_of(const char *text, int *lost) {
  if (!text) return NULL;
  const size_t size = strlen(text) + 1;
  char *copy = malloc(size);
  if (copy) memcpy(copy, text, size);
  else *lost = 1;
  return copy;
}

static void collect(void *user, const schedc_diagnostic *d) {
  Reports *all = user;
  Report *r = calloc(1, sizeof *r);
  Note *notes = calloc(d->note_count + 1, sizeof *notes);
  if (!r || !notes) {
    free(r);
    free(notes);
    all->lost = 1;
    return;
  }
  r->severity = d->severity;
  r->where = d->where;
  r->code = copy_of(d->code, &all->lost);
  r->file = copy_of(d->file, &all->lost);
  r->text = copy_of(d->text, &all->lost);
  r->help = copy_of(d->help, &all->lost);
  r->rendered = copy_of(d->rendered, &all->lost);
  r->note = notes;
  for (; r->notes < d->note_count; r->notes++) {
    notes[r->notes].where = d->notes[r->notes].where;
    notes[r->notes].text = copy_of(d->notes[r->notes].text, &all->lost);
  }
  *all->end = r;
  all->end = &r->next;
}

static void forget(Reports *all) {
  for (Report *r = all->first, *next; r; r = next) {
    next = r->next;
    for (size_t i = 0; i < r->notes; i++) free(r->note[i].text);
    free(r->note);
    free(r->code);
    free(r->file);
    free(r->text);
    free(r->help);
    free(r->rendered);
    free(r);
  }
  all->first = NULL;
  all->end = &all->first;
  all->lost = 0;
}

int call_open(Call *call, Core *core, int unverified) {
  schedc_options options = SCHEDC_OPTIONS_INIT;
  *call = (Call){NULL, calloc(1, sizeof(Reports))};
  if (!call->reports) {
    PyErr_NoMemory();
    return -1;
  }
  forget(call->reports);
  options.sink = collect;
  options.sink_user = call->reports;
  options.unverified = unverified;
  const schedc_status status = schedc_open(&call->context, &options);
  return status ? call_close(call, core, status) : 0;
}

void call_drop(Call *call) {
  schedc_close(call->context);
  if (call->reports) forget(call->reports);
  free(call->reports);
  *call = (Call){NULL, NULL};
}

static PyObject *range_tuple(schedc_range at) {
  return Py_BuildValue("(IIIIII)", at.offset, at.length, at.line, at.column, at.end_line,
                       at.end_column);
}

// Source texts may hold any bytes.
static PyObject *decoded(const char *text) {
  if (!text) Py_RETURN_NONE;
  return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

static PyObject *note_list(const Report *r) {
  PyObject *list = PyList_New(0);
  for (size_t i = 0; list && i < r->notes; i++) {
    PyObject *note = Py_BuildValue("(NN)", range_tuple(r->note[i].where), decoded(r->note[i].text));
    if (!note || PyList_Append(list, note)) Py_CLEAR(list);
    Py_XDECREF(note);
  }
  return list;
}

static PyObject *report_list(const Reports *all) {
  PyObject *list = PyList_New(0);
  for (const Report *r = all->first; list && r; r = r->next) {
    PyObject *one = Py_BuildValue("(iNNNNNNN)", (int)r->severity, decoded(r->code),
                                  decoded(r->file), range_tuple(r->where), decoded(r->text),
                                  decoded(r->help), note_list(r), decoded(r->rendered));
    if (!one || PyList_Append(list, one)) Py_CLEAR(list);
    Py_XDECREF(one);
  }
  return list;
}

int call_report(Call *call, Core *core, schedc_status status) {
  if (!status && !call->reports->first) return PyErr_Occurred() ? -1 : 0;
  if (PyErr_Occurred()) {  // of a callback that stopped the call: it says more than the status
    forget(call->reports);
    return -1;
  }
  if (status == SCHEDC_ENOMEM || call->reports->lost) {
    forget(call->reports);
    PyErr_NoMemory();
    return -1;
  }
  PyObject *list = report_list(call->reports);
  forget(call->reports);
  PyObject *done =
      !list ? NULL
            : PyObject_CallFunction(core->report, "issO", (int)status, schedc_status_name(status),
                                    schedc_status_text(status), list);
  Py_XDECREF(list);
  Py_XDECREF(done);
  if (done && !status) return 0;
  if (done) PyErr_SetString(PyExc_SystemError, "schedc: an error was reported and not raised");
  return -1;
}

int call_close(Call *call, Core *core, schedc_status status) {
  const int failed = call_report(call, core, status);
  call_drop(call);
  return failed;
}

int write_piece(void *user, const char *bytes, size_t length) {
  Written *w = user;
  if (w->room - w->length < length) {
    const size_t room = 2 * (w->length + length);
    char *data = realloc(w->data, room);
    if (!data) return 1;
    w->data = data;
    w->room = room;
  }
  memcpy(w->data + w->length, bytes, length);
  w->length += length;
  return 0;
}

PyObject *written_str(Written *w, int failed) {
  PyObject *text =
      failed ? NULL
             : PyUnicode_DecodeUTF8(w->data ? w->data : "", (Py_ssize_t)w->length, "replace");
  free(w->data);
  *w = (Written){0};
  return text;
}

PyObject *written_bytes(Written *w, int failed) {
  PyObject *bytes = failed ? NULL : PyBytes_FromStringAndSize(w->data, (Py_ssize_t)w->length);
  free(w->data);
  *w = (Written){0};
  return bytes;
}
