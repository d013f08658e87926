// table.c - what `schedc run` prints: the case, the tensors, and how far each output is from its
// specification.
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

static void put_shape(char *to, size_t room, const int64_t *shape, size_t rank) {
  size_t n = 0;
  to[0] = 0;
  for (size_t i = 0; i < rank && n < room; i++) {
    n += (size_t)snprintf(to + n, room - n, "%s%lld", i ? " x " : "", (long long)shape[i]);
  }
}

static const char *direction_name(int direction) {
  return direction == SCHEDC_IN ? "in" : direction == SCHEDC_OUT ? "out" : "inout";
}

static void put_params(const schedc_kernel *k) {
  schedc_param_info p = SCHEDC_PARAM_INFO_INIT;
  for (size_t i = 0; schedc_param_at(k, i, &p) == SCHEDC_OK; i++) {
    printf("%s%s = %s", i ? ", " : "  params  ", p.name, p.value);
  }
  if (schedc_param_count(k)) putchar('\n');
}

static void put_tuned(const Tuned *t) {
  Buffer said = {0};
  tuned_text(t, &t->record, &said);
  printf("  tuned   %s\n", said.at);
  free(said.at);
}

void table_head(const Session *s, const Data *d, const char *case_name, const Tuned *tuned) {
  printf("%s  (%s%s%s)\n", schedc_kernel_name(d->kernel), s->args->operand[0],
         case_name ? ", case " : "", case_name ? case_name : "");
  put_params(d->kernel);
  if (tuned) put_tuned(tuned);
  for (size_t i = 0; i < d->dim_count; i++) {
    printf("%s%s = %lld", i ? ", " : "  dims    ", d->dims[i].name, (long long)d->dims[i].value);
  }
  puts(d->dim_count ? "\n" : "");
  printf("  %-10s %-6s %-5s %s\n", "tensor", "", "type", "shape");
  for (size_t t = 0; t < d->tensor_count; t++) {
    const schedc_tensor *x = &d->tensors[t];
    char shape[160];
    put_shape(shape, sizeof shape, x->shape, x->rank);
    printf("  %-10s %-6s %-5s %s%s\n", x->name, direction_name(d->direction[t]),
           schedc_type_name(x->type), shape, d->file[t] ? "  (from file)" : "");
  }
  putchar('\n');
}

const char *table_verdict(const schedc_error *e) {
  return e->pass ? "PASS" : e->unproven ? "UNPROVEN" : "FAIL";
}

bool table_right(const Args *args, InputKind kind, const schedc_error *e) {
  return e->pass || (e->unproven && kind != args->inputs[0]);
}

static void put_worst(const schedc_error *e) {
  printf("  %-10s worst at [", "");
  for (size_t a = 0; a < SCHEDC_MAX_RANK && (a == 0 || e->worst[a] >= 0); a++) {
    printf("%s%lld", a ? ", " : "", (long long)e->worst[a]);
  }
  printf("]: is %.6g, specified %.6g\n", e->worst_out, e->worst_ref);
}

// Why an output has not passed.
static void put_reason(const schedc_error *e) {
  if (e->overflowed) {
    printf(
        "  %-10s %llu elements are infinite or NaN where the specification has a number: a value "
        "on the way\n  %-10s is beyond its type (f16 ends at 65504, bf16 and f32 at 3.4e38)\n",
        "", (unsigned long long)e->overflowed, "");
  }
  if (e->unwritten) {
    printf(
        "  %-10s %llu elements are NaN where the specification has a number: never written, or "
        "read too early%s\n",
        "", (unsigned long long)e->unwritten,
        e->may_overflow ? ", or made of an f16 that overflowed" : "");
  }
  if (e->unproven) {
    printf(
        "  %-10s the allowed error is %.2g times the output's size, so that this proves nothing: "
        "%s\n  %-10s would pass. State the types of the specification's intermediates "
        "(schedc explain R9.exponent), "
        "or take other inputs\n",
        "", e->looseness,
        e->looseness < 1 ? "an output that is off by as much" : "an output of zeros", "");
  } else if (!e->overflowed && !e->unwritten) {
    put_worst(e);
  }
}

void table_errors(const schedc_error *errors, size_t n) {
  printf("  %-10s %10s  %21s   %21s\n", "output", "elements", "max error   (allowed)",
         "mean error   (allowed)");
  for (size_t i = 0; i < n; i++) {
    const schedc_error *e = &errors[i];
    printf("  %-10s %10llu   %9.3e (%9.3e)    %9.3e (%9.3e)  %s\n", e->tensor,
           (unsigned long long)e->elements, e->max_error, e->max_allowed, e->mean_error,
           e->mean_allowed, table_verdict(e));
    if (e->elements < e->total) {
      printf("  %-10s of %llu, a sample; all were searched for NaN\n", "",
             (unsigned long long)e->total);
    }
    if (!e->pass) put_reason(e);
  }
}

void table_json(Json *j, const schedc_error *errors, size_t n) {
  json_open(j, '[');
  for (size_t i = 0; i < n; i++) {
    const schedc_error *e = &errors[i];
    json_open(j, '{');
    json_key(j, "tensor"), json_text(j, e->tensor);
    json_key(j, "elements"), json_uint(j, e->total);
    json_key(j, "compared"), json_uint(j, e->elements);
    json_key(j, "unwritten"), json_uint(j, e->unwritten);
    json_key(j, "overflowed"), json_uint(j, e->overflowed);
    json_key(j, "max_error"), json_real(j, e->max_error);
    json_key(j, "max_allowed"), json_real(j, e->max_allowed);
    json_key(j, "mean_error"), json_real(j, e->mean_error);
    json_key(j, "mean_allowed"), json_real(j, e->mean_allowed);
    json_key(j, "looseness"), json_real(j, e->looseness);
    json_key(j, "unproven"), json_bool(j, e->unproven);
    json_key(j, "pass"), json_bool(j, e->pass);
    json_close(j, '}');
  }
  json_close(j, ']');
}
