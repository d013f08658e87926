// check.c - `schedc check`: every kernel and sequence of a file is instantiated, which checks it;
// or every point of its params' domains is, or those of its cases are (points.c).
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

static schedc_status check_unit(Session *s, const char *unit, Buffer *points) {
  const Args *args = s->args;
  session_next(s);
  if (args->all_params || args->all_cases) return points_check(s, unit, points);
  schedc_kernel *kernel;
  schedc_status status = schedc_instantiate(&kernel, s->context, s->source, unit, args->case_name,
                                            args->param.at, args->param.n);
  schedc_verdict verdict;
  if (status == SCHEDC_OK) status = schedc_verify(s->context, kernel, &verdict);
  if (status == SCHEDC_OK && args->format == FORMAT_TEXT)
    printf("%s: %s\n", schedc_kernel_name(kernel), schedc_verdict_text(verdict));
  schedc_kernel_free(kernel);
  return status;
}

// The worst of all units, so that an error in the first does not hide the second.
static schedc_status check_all(Session *s, Buffer *points) {
  schedc_status worst = SCHEDC_OK;
  size_t n = schedc_unit_count(s->source);
  if (s->args->operands > 1) return check_unit(s, s->args->operand[1], points);
  for (size_t i = 0; i < n; i++) {
    schedc_unit_info info = SCHEDC_UNIT_INFO_INIT;
    schedc_unit(s->source, i, &info);
    schedc_status status = check_unit(s, info.name, points);
    if (status > worst) worst = status;
  }
  return n ? worst : check_unit(s, NULL, points);
}

static int emit(Session *s) {
  const Args *args = s->args;
  Buffer out = {0};
  const char *unit = args->operands > 1 ? args->operand[1] : NULL;
  if (!schedc_stage_summary(args->emit)) return cli_usage(args, "'%s' is not a stage", args->emit);
  schedc_status status = schedc_emit(s->context, s->source, unit, args->case_name, args->param.at,
                                     args->param.n, args->emit, buffer_write, &out);
  int code = session_status(s, status);
  const char *path = args->output ? args->output : "-";
  if (code == EXIT_GOOD && !file_replace(path, out.n ? out.at : "", out.n))
    code = cli_unwritten(args, path);
  free(out.at);
  return code;
}

int command_check(const Args *args) {
  Session s;
  if (args->output && !args->emit) return cli_usage(args, "-o is where --emit=STAGE writes to");
  bool many = args->all_params || args->all_cases;
  if (many && args->emit) return cli_usage(args, "--emit is of one point");
  bool standard = args->emit && (!args->output || strcmp(args->output, "-") == 0);
  if (standard && args->format != FORMAT_TEXT)
    return cli_usage(args, "--emit and --format %s both want the standard output: give -o FILE",
                     args->format == FORMAT_JSON ? "json" : "sarif");
  if (args->all_cases && (args->all_params || args->case_name))
    return cli_usage(args, "--all-cases looks at each case: leave '--%s' out",
                     args->case_name ? "case" : "all-params");
  Buffer points = {0};
  int code = session_open(&s, args, 0);
  if (code == EXIT_GOOD) {
    code = args->emit ? emit(&s) : session_status(&s, check_all(&s, &points));
  }
  bool object = many && args->format == FORMAT_JSON && (s.source || s.errors);
  if (object) printf("{\"units\":[%s],\"diagnostics\":", points.n ? points.at : "");
  if (s.source || s.errors) session_print_reports(&s);
  if (object) puts("}");
  free(points.at);
  session_close(&s);
  return code;
}
