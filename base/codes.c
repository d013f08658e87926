// codes.c - names and texts of statuses and diagnostics, as schedc.h offers them.
#include "base/base.h"

#include <string.h>

static const struct {
  const char *name, *text;
} status_table[] = {
    [SCHEDC_OK] = {"SCHEDC_OK", "done"},
    [SCHEDC_EINPUT] = {"SCHEDC_EINPUT", "the schedule, a parameter or a tensor is at fault"},
    [SCHEDC_EFAULT] = {"SCHEDC_EFAULT", "the run found a race, a deadlock or another fault"},
    [SCHEDC_ENOMEM] = {"SCHEDC_ENOMEM", "out of memory"},
    [SCHEDC_ELIMIT] = {"SCHEDC_ELIMIT", "a limit was passed"},
    [SCHEDC_EIO] = {"SCHEDC_EIO",
                    "a file could not be read or written, or is not what it should be"},
    [SCHEDC_EARG] = {"SCHEDC_EARG",
                     "the call is wrong: NULL, an unknown name or an index out of range"},
    [SCHEDC_ECANCEL] = {"SCHEDC_ECANCEL", "stopped by the progress callback"},
    [SCHEDC_EUNAVAIL] = {"SCHEDC_EUNAVAIL", "not available on this machine"},
};

const char *schedc_status_name(schedc_status status) {
  return (u32)status < COUNT(status_table) ? status_table[status].name : "SCHEDC_UNKNOWN";
}

const char *schedc_status_text(schedc_status status) {
  return (u32)status < COUNT(status_table) ? status_table[status].text : "not a status of schedc";
}

#define TEXT_OF_(x) #x
#define TEXT_OF(x) TEXT_OF_(x)
const char *schedc_version(void) {
  return TEXT_OF(SCHEDC_VERSION_MAJOR) "." TEXT_OF(SCHEDC_VERSION_MINOR) "." TEXT_OF(
      SCHEDC_VERSION_PATCH);
}

static DiagId find_code(const char *code) {
  DiagId id = 0;
  while (id < D_COUNT && (!code || strcmp(sc_diag_code(id), code) != 0)) id++;
  return id;
}

const char *schedc_code_at(size_t index) {
  return index < D_COUNT ? sc_diag_code((DiagId)index) : NULL;
}

const char *schedc_code_summary(const char *code) {
  DiagId id = find_code(code);
  return id < D_COUNT ? sc_diag_summary(id) : NULL;
}

const char *schedc_explain(const char *code) {
  DiagId id = find_code(code);
  return id < D_COUNT ? sc_diag_explain(id) : NULL;
}
