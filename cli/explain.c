// explain.c - `schedc explain`: the page of a diagnostic, or the list of all.
#include "cli/cli.h"

int command_explain(const Args *args) {
  if (args->operands == 0) {
    for (size_t i = 0; schedc_code_at(i); i++) {
      printf("%-16s %s\n", schedc_code_at(i), schedc_code_summary(schedc_code_at(i)));
    }
    return EXIT_GOOD;
  }
  const char *code = args->operand[0], *page = schedc_explain(code);
  if (!page) return cli_usage(args, "'%s' is not a diagnostic ('schedc explain' lists them)", code);
  printf("%s: %s\n\n%s", code, schedc_code_summary(code), page);
  return EXIT_GOOD;
}
