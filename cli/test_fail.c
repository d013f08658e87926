// test_fail.c - `schedc test`: what it says of a failure, and of combinations that cannot be
// instantiated: each report of the compiler once, with the combinations of which it is true; and a
// command that repeats it.
#include "cli/test.h"

#include <stdlib.h>
#include <string.h>

// What the combination chose, of params alone or of all lines of its case, but where the command
// line or a sweep says something else. like: an instance of the case; NULL: there is none, and
// nothing was chosen.
static void put_choices(const Tester *t, const schedc_kernel *like, bool all, Buffer *b) {
  schedc_bind_info line = SCHEDC_BIND_INFO_INIT;
  for (size_t i = 0; like && schedc_bind_at(like, t->kase, i, &line) == SCHEDC_OK; i++) {
    bool param = line.kind == SCHEDC_BIND_PARAM;
    if (line.kind == SCHEDC_BIND_ABSENT) continue;
    if (!line.is_choice || line.count < 2 || (!param && !all)) continue;
    if (pairs_have(param ? &t->s->args->param : &t->set, line.name)) continue;
    buffer_printf(b, " %s %s=%s", param ? "-p" : "--set", line.name, line.texts[t->choice[i]]);
  }
}

static void put_combination(const Tester *t, const schedc_kernel *like, bool all, Buffer *b) {
  const Args *args = t->s->args;
  buffer_printf(b, " %s %s --case %s", args->operand[0], t->unit, t->case_name);
  put_choices(t, like, all, b);
  for (size_t i = 0; i < t->set.n; i++)
    buffer_printf(b, " --set %s=%s", t->set.at[i].name, t->set.at[i].value);
  for (size_t i = 0; i < args->param.n; i++)
    buffer_printf(b, " -p %s=%s", args->param.at[i].name, args->param.at[i].value);
}

// The command that repeats a run.
static void put_command(Tester *t, Buffer *b, const Run *run) {
  const Args *args = t->s->args;
  buffer_puts(b, "schedc run");
  put_combination(t, t->kernel, true, b);
  if (args->model) buffer_puts(b, " --on model");
  else if (args->cuda) buffer_puts(b, " --on cuda");
  if (args->model || !args->cuda) buffer_printf(b, " --policy %s", policy_name(run->policy));
  if (run->sms) buffer_printf(b, " --sms %u", run->sms);
  if (run->debug_waits) buffer_puts(b, " --debug-waits");
  buffer_printf(b, " --seed %llu --inputs %s", (unsigned long long)run->seed,
                schedc_input_at(run->inputs));
  if (run->seed != args->seed)
    buffer_printf(b, " --inputs-seed %llu", (unsigned long long)args->seed);
}

enum { TOLD = 3 };  // failures of a case that are told: most others have the same cause

void test_end_case(Tester *t) {
  if (t->told > TOLD && t->s->args->format == FORMAT_TEXT)
    printf("  … and %zu more of the case '%s': --format json has them all\n", t->told - TOLD,
           t->case_name);
  t->told = 0;
}

void test_fail(Tester *t, const Run *run, const char *why) {
  Buffer command = {0};
  t->tally.failed++;
  progress_end(&t->progress);
  put_command(t, &command, run);
  if (t->s->args->format == FORMAT_JSON) {
    Json j = {.write = buffer_write, .user = &t->failures, .comma = t->failures.n > 0};
    json_open(&j, '{');
    json_key(&j, "command"), json_text(&j, command.at);
    json_key(&j, "why"), json_text(&j, why);
    json_close(&j, '}');
  } else if (t->told++ < TOLD) {
    printf("FAIL %s\n  again: %s\n", why, command.at);
    if (t->s->reports.n) printf("%s", t->s->reports.at);
  }
  session_forget(t->s);
  free(command.at);
}

// ---- what cannot be instantiated

static Refusal *refusal_of(Tester *t, char *report) {
  for (size_t i = 0; i < t->refusals; i++) {
    if (strcmp(t->refusal[i].report, report) != 0) continue;
    free(report);
    return &t->refusal[i];
  }
  t->refusal = need(realloc(t->refusal, (t->refusals + 1) * sizeof *t->refusal));
  t->refusal[t->refusals] = (Refusal){.report = report};
  return &t->refusal[t->refusals++];
}

// Takes the name. Combinations that differ in dimensions alone have the same one, and follow each
// other.
static void add_place(Refusal *r, Buffer *name) {
  enum { NAMED = 8 };
  if (r->last.n && strcmp(r->last.at, name->at) == 0) {
    free(name->at);
    return;
  }
  if (r->places < NAMED) buffer_printf(&r->where, "%s%s", r->places ? ", " : "", name->at);
  if (r->places++ == NAMED) buffer_puts(&r->where, ", …");
  free(r->last.at);
  r->last = *name;
}

void test_refuse(Tester *t, const schedc_kernel *like) {
  t->tally.failed++;
  for (size_t i = 0; i < t->s->count; i++) {
    Refusal *r = refusal_of(t, session_report(t->s, i));
    Buffer name = {0};
    if (!r->times++) {
      buffer_puts(&r->command, "schedc check");
      put_combination(t, like, false, &r->command);
    }
    buffer_printf(&name, "%s %s", t->unit, t->case_name);
    put_choices(t, like, false, &name);
    add_place(r, &name);
  }
  session_forget(t->s);
}

void test_print_refusals(Tester *t) {
  for (size_t i = 0; i < t->refusals; i++) {
    Refusal *r = &t->refusal[i];
    if (t->s->args->format == FORMAT_JSON) {
      Json j = {.write = buffer_write, .user = &t->failures, .comma = t->failures.n > 0};
      json_open(&j, '{');
      json_key(&j, "command"), json_text(&j, r->command.at);
      json_key(&j, "why"), json_text(&j, "cannot be instantiated");
      json_key(&j, "times"), json_uint(&j, r->times);
      json_key(&j, "where"), json_text(&j, r->where.at);
      json_key(&j, "diagnostic"), json_raw(&j, r->report);
      json_close(&j, '}');
    } else {
      printf("FAIL cannot be instantiated, %zu time%s: %s\n  again: %s\n%s", r->times,
             r->times == 1 ? "" : "s", r->where.at, r->command.at, r->report);
    }
    free(r->report);
    free(r->where.at);
    free(r->last.at);
    free(r->command.at);
  }
  free(t->refusal);
}
