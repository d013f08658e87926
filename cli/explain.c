// explain.c - `schedc explain`: the page of a diagnostic, or a list: of a rule's, or of all.
#include "cli/cli.h"

#include <string.h>

// Prints a line for each code of a rule ("R3"; NULL: of all). Returns how many there are.
static size_t list(const char *rule) {
  size_t listed = 0, length = rule ? strlen(rule) : 0;
  for (size_t i = 0; schedc_code_at(i); i++) {
    const char *code = schedc_code_at(i);
    if (rule && (strncmp(code, rule, length) != 0 || code[length] != '.')) continue;
    printf("%-16s %s\n", code, schedc_code_summary(code));
    listed++;
  }
  return listed;
}

int command_explain(const Args *args) {
  const char *code = args->operands ? args->operand[0] : NULL, *page = schedc_explain(code);
  if (!page && list(code)) return EXIT_GOOD;
  if (!page) return cli_usage(args, "'%s' is not a diagnostic ('schedc explain' lists them)", code);
  printf("%s: %s\n\n%s", code, schedc_code_summary(code), page);
  return EXIT_GOOD;
}
