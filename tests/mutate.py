#!/usr/bin/env python3
"""A mutation test: is every wait, release and acquire of a schedule needed, and does schedc notice?

Each mutant deletes one of them, drops one name of its list, moves it (by one statement up or down, or next
to the synchronising statement before or after it in its role), or swaps two of a role. A mutant is rejected by
`schedc check`; or else it is run, by the interpreter and, as emitted, on the model of a GPU: either notices it by
a race, a deadlock, a broken rule, a wrong result, or other bits than the schedule's own. What is no program at all (a
statement moved out of its role) is not counted.

What survives must be proved by `check` for all trip counts. Why it does what the schedule does is found by this test: its
emitted text is the same; or it has all of the schedule's order and more (equivalent.py); or what it lost is the order of a
turn, and the schedule without the turn is proved and has the same bits, too; or else it has the same bits on the model when
each warp and each engine is the last in its turn. That last class is the weakest, so each of it must be in mutate.expected.

With --witnesses each rejection that says what goes wrong in a run is tried: the interpreter must fail in that way,
by the command of the report, or with --unverified; or it was a false alarm. (Other rejections are of rules within
a role, without which a program has no meaning: nothing can be run.)

  mutate.py --schedc build/schedc [--file schedules/fa3_fwd.sched …| --all] [--on cpu] [--witnesses] [-j 2]
            [--results FILE] [--table tests/mutate.md]
  exit status: 0 every survivor is expected, 1 some is not, 2 the test itself could not be run
"""
import argparse
import collections
import concurrent.futures
import dataclasses
import difflib
import glob
import hashlib
import json
import os
import re
import sys
import tempfile
import time

import judge
from judge import CLASSES, FAILS, NEEDLESS, NOT_RUN, OTHERWISE, PASSES, POLICIES, RACES, RUNS, SLOWER, \
    UNSEEN, VERDICTS, Verdict
from mutants import join, mutants, split

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
REJECTED, RUN = VERDICTS[:2], VERDICTS[2:4]
VALUES = {"wrong", "other bits"}  # what is computed, not whether it can hang or race


class Results:
    """Verdicts, a line of JSON each in a file that may be gone on with: by the compiler, the mutant and what was asked."""

    def __init__(self, args):
        self.path, self.kept, self.args = args.results, {}, args
        with open(args.schedc, "rb") as file:
            self.compiler = hashlib.sha256(file.read()).hexdigest()
        if self.path and os.path.exists(self.path):
            with open(self.path, encoding="utf-8") as file:
                self.kept = {line["key"]: Verdict(**line["verdict"]) for line in map(json.loads, file)}

    def key(self, name, mutant):
        asked = (self.compiler, name, join(mutant), RUNS[name], self.args.on, self.args.witnesses)
        return hashlib.sha256(repr(asked).encode()).hexdigest()

    def judged(self, name, mutant, by):
        key = self.key(name, mutant)
        if key not in self.kept:
            began = time.monotonic()
            v = by.judge(mutant)
            v.seconds = round(time.monotonic() - began, 2)
            self.kept[key] = v
            if self.path:
                with open(self.path, "a", encoding="utf-8") as file:
                    file.write(json.dumps({"schedule": name, "key": key, "verdict": dataclasses.asdict(v)}) + "\n")
        return self.kept[key]


def read_expected(path):
    """{(schedule, mutant): reason} of lines `operator  name  # reason`, in sections `[schedule]`."""
    known, name = {}, None
    for line in open(path, encoding="utf-8"):
        section = re.match(r"\[(\w+)\]$", line.strip())
        if section:
            name = section.group(1)
        elif line.strip() and not line.startswith("#"):
            mutant, _, reason = line.partition("  # ")
            if not reason.strip():
                sys.exit(f"{path}: a mutant without a reason: {line.strip()}")
            known[name, mutant.strip()] = reason.strip()
    return known


class Outcome:
    """Of a schedule: how many mutants are of each operator and class, and which ones a list names."""

    def __init__(self, name):
        self.name = name
        self.count = collections.defaultdict(collections.Counter)    # by operator
        self.classes = collections.defaultdict(collections.Counter)  # survivors, by operator
        self.details = collections.Counter()
        self.model_only, self.interpreter_only, self.survivors = [], [], []
        self.witnesses = collections.Counter()  # by code, and what became of it
        self.forbidden = collections.Counter()  # by the rule that forbids to run what R3.release rejects
        self.otherwise = []                     # witnesses that fail otherwise
        self.open, self.alarms = [], []         # survivors that check does not prove; false alarms
        self.holes, self.values = [], []        # proved, and yet a run fails; or computes something else
        self.slower, self.contradictions = 0, []  # have only more order; and race nevertheless
        self.no_program, self.seconds = 0, 0

    def add(self, operator, name, v, mutant, both, witnesses):
        title = f"{operator}  {name}"
        self.seconds += v.seconds
        if v.kind == "no program":
            self.no_program += 1
            return
        self.count[operator.split()[0]][v.kind] += 1
        self.slower += v.order == SLOWER
        self.contradictions += [(title, v.said)] if v.order == SLOWER and {v.said, v.model} & RACES else []
        if v.kind == "survived":
            self.classes[operator.split()[0]][v.order] += 1
            self.survivors.append((title, mutant, v.order))
            self.open += [] if v.proved else [title]
        else:
            self.details[f"{v.kind} {v.said or v.model}"] += 1
        if v.kind in RUN and v.proved:
            found = {v.said, v.model} - {None}
            (self.values if found <= VALUES else self.holes).append((title, ", ".join(sorted(found))))
        if v.kind == "model only":
            self.model_only.append((title, v.model))
        if v.kind == "interpreter" and both and not v.model:
            self.interpreter_only.append((title, v.said))
        if witnesses:
            self.add_witness(title, v)

    def add_witness(self, title, v):
        if v.kind not in REJECTED:
            return
        self.witnesses[v.said, v.witness or UNSEEN] += 1
        if v.witness == PASSES:
            self.alarms.append((title, v.said))
        if v.witness == OTHERWISE:
            self.otherwise.append((title, f"{v.said}; a run: {v.seen}"))
        if v.witness == NOT_RUN:
            self.forbidden[v.seen] += 1

    def total(self):
        return sum(self.count.values(), collections.Counter())


def mutate(args, results, folder, path):
    """The outcome of a schedule; exits where it does not pass itself."""
    name = os.path.basename(path).removesuffix(".sched")
    if name not in RUNS:
        sys.exit(f"{name}: RUNS does not say what is to be run of it")
    with open(path, encoding="utf-8") as file:
        statements = split(file.read())
    folder = os.path.join(folder, name)
    os.mkdir(folder)
    outcome, by = Outcome(name), judge.Judge(args, folder, name, statements)
    for operator, label, mutant in mutants(statements):
        v = results.judged(name, mutant, by)
        outcome.add(operator, label, v, mutant, args.on == "both", args.witnesses)
        if args.verbose:
            said = f"{v.kind:11} {v.said or '-':12} {v.model or '-':12} {v.witness or v.order or '-'}"
            print(f"{name} {said}  {operator}  {label}", flush=True)
    return outcome, join(statements)


def report_survivors(outcome, whole, known):
    """Prints them; how many are not expected."""
    unexpected = 0
    for mutant, text, order in outcome.survivors:
        print(f"\nsurvivor: {mutant}: {order}")
        if order != NEEDLESS:
            continue
        reason = known.pop((outcome.name, mutant), None)
        unexpected += reason is None
        print(f"equivalent: {reason}" if reason else "NOT EXPECTED")
        diff = difflib.unified_diff(whole.splitlines(True), join(text).splitlines(True), n=2)
        print("".join(list(diff)[2:]), end="")
    return unexpected


def report(outcome, whole, known, expected):
    """Prints what a schedule's mutants came to; how many are not as expected."""
    print(f"{outcome.name:16}" + "".join(f"{v:>13}" for v in VERDICTS) + f"{'total':>10}")
    for kind, count in [*outcome.count.items(), ("all", outcome.total())]:
        print(f"  {kind:14}" + "".join(f"{count[v]:13}" for v in VERDICTS) + f"{sum(count.values()):10}")
    for what, count in [*outcome.details.most_common(), ("no program", outcome.no_program)]:
        print(f"{count:6}  {what}")
    for order, count in sum(outcome.classes.values(), collections.Counter()).items():
        print(f"{count:6}  survivors: {order}")
    for (code, became), count in sorted(outcome.witnesses.items()):
        print(f"{count:6}  run, {code} {became}")
    wrong = [("FALSE ALARM", outcome.alarms), ("not proved", [(mutant, "survived") for mutant in outcome.open]),
             ("PROVED, AND A RUN FAILS", outcome.holes),
             ("ONLY MORE ORDER, AND A RACE", outcome.contradictions)]
    for what, found in wrong:
        for mutant, said in found:
            print(f"\n{what}: {mutant}: {said}")
    unexpected = sum(len(found) for _, found in wrong) + report_survivors(outcome, whole, known)
    for name, mutant in known:
        if name == outcome.name:
            print(f"\n{expected}: no longer survives with less order: {mutant}")
            unexpected += 1
    print(flush=True)
    return unexpected


HEAD = """# Mutants of the schedules

One wait, release or acquire of a schedule is left out, moved, or swapped with another of its role. `one role`, `all roles`:
rejected by `schedc check`, for what a role does by itself, or for what roles do to each other. The others are run.
`interpreter`: it notices. `model only`: neither check nor the interpreter does, but the emitted text fails on the model of a GPU.
`survived`: nothing is wrong with them, and what a machine has checked of them stands below.

`{command}`, {date}: {seconds:.0f} seconds (the sum over all mutants) at low priority on a
machine of two Intel Xeon cores that others used as well. No GPU was used.

"""
SURVIVORS = """
## Why the survivors do what the schedule does

Each is proved by `check` for all trip counts. On the small dimensions of `RUNS` (`tests/judge.py`) its outputs have the bits of
the schedule's own, under {policies} policies in the interpreter, one of which suffices to find a race in any order, and {models} on the model.
Each output has bits to compare, though where several CTAs add up, only in runs in which no two add to one element.
The classes, of which the first that fits counts (`tests/equivalent.py`):

| class | what was checked |
| --- | --- |
| same text | the emitted program is the same, for all params of `RUNS`; comments, lines and the places of declarations apart |
| only more order | statement by statement: whatever had to come before something else in the schedule still has to. So each of its runs is one of the schedule's in which some role is slow, and it has been proved that it neither hangs nor mistakes a phase |
| needs no turn | all order that it lost was a turn's, and the schedule without the turn is proved as well and has the same bits |
| less order | it lost another order. It has the schedule's bits on the model when any one warp, or engine, comes last. This suffices for no proof, so `tests/mutate.expected` has the reason of each |

"""
WITNESSES = """
## What a run shows of those rejected

A rejection for a race or a deadlock says what a run shows. Each has been run by the interpreter: by the command in the report,
or, where there is none, with `--unverified` on the dimensions of `RUNS`. The other rejections are of rules within a role,
without which a program has no meaning: they name no dimensions, and nothing can be run (`says nothing of a run`). Where such
a rule rejects a mutant, too, `--unverified` does not help, and what is said of the race is not shown by a run (`cannot be
run`): such a mutant is rejected whether or not that is true.

"""


def write_list(out, title, found):
    """Mutants of (schedule, mutant, what is said of it)."""
    out.write(f"\n{title}\n\n")
    if not found:
        out.write("None.\n")
        return
    out.write("| schedule | mutant | what it says |\n| --- | --- | --- |\n")
    for name, mutant, said in found:
        cell = mutant.replace("|", "\\|")
        out.write(f"| {name} | `{cell}` | {said} |\n")


def columns(title, kinds):
    return f"| {title} | mutants | " + " | ".join(kinds) + " |\n| --- |" + " --- |" * (len(kinds) + 1) + "\n"


def write_counts(out, title, kinds, rows):
    """A row of counts by kind for each name, and their sum."""
    rows = [*rows, ("all", sum((count for _, count in rows), collections.Counter()))]
    out.write(columns(title, kinds))
    for name, count in rows:
        out.write(f"| {name} | {sum(count.values())} | " + " | ".join(str(count[v]) for v in kinds) + " |\n")


def by_operator(tables):
    """Of a table of counts by operator for each schedule: rows."""
    operators = list(dict.fromkeys(operator for table in tables for operator in table))
    return [(x, sum((table[x] for table in tables), collections.Counter())) for x in operators]


def write_witnesses(out, outcomes):
    count = sum((o.witnesses for o in outcomes), collections.Counter())
    forbidden = sum((o.forbidden for o in outcomes), collections.Counter())
    kinds = [FAILS, OTHERWISE, PASSES, NOT_RUN, UNSEEN]
    out.write(WITNESSES + columns("rejected by", kinds))
    for code in [*sorted({code for code, _ in count}), "all"]:
        row = [sum(n for (c, became), n in count.items() if code in (c, "all") and became == kind) for kind in kinds]
        out.write(f"| {code} | {sum(row)} | " + " | ".join(map(str, row)) + " |\n")
    if forbidden:
        rules = ", ".join(f"{code} ({n})" for code, n in forbidden.most_common())
        out.write(f"\nThe rules that forbid to run a mutant: {rules}.\n")
    write_list(out, "Fail otherwise:", [(o.name, *m) for o in outcomes for m in o.otherwise])


def write_survivors(out, outcomes):
    out.write(SURVIVORS.format(policies=len(POLICIES["cpu"]), models=len(POLICIES["model"])))
    write_counts(out, "schedule", CLASSES, [(o.name, sum(o.classes.values(), collections.Counter())) for o in outcomes])
    out.write("\n")
    write_counts(out, "operator", CLASSES, by_operator([o.classes for o in outcomes]))
    less = [(o.name, title, order) for o in outcomes for title, _, order in o.survivors if order == NEEDLESS]
    write_list(out, "Those with less order:", less)
    out.write(f"\nOf all mutants {sum(o.slower for o in outcomes)} have only more order. A race that was said of, or found in, "
              f"one of them would\ncontradict the rule by which it was told: {sum(len(o.contradictions) for o in outcomes)}.\n")


def write_table(path, outcomes):
    with open(path, "w", encoding="utf-8") as out:
        out.write(HEAD.format(command="tests/mutate.py --all --witnesses --table tests/mutate.md",
                              date=time.strftime("%Y-%m-%d"), seconds=sum(o.seconds for o in outcomes)))
        write_counts(out, "schedule", VERDICTS, [(o.name, o.total()) for o in outcomes])
        out.write("\n")
        write_counts(out, "operator", VERDICTS, by_operator([o.count for o in outcomes]))
        write_list(out, "Noticed by the model alone:", [(o.name, *m) for o in outcomes for m in o.model_only])
        write_list(out, "Noticed by the interpreter, and not by the model:",
                   [(o.name, *m) for o in outcomes for m in o.interpreter_only])
        write_list(out, "Proved, though a run shows a race, a deadlock or a broken rule:",
                   [(o.name, *m) for o in outcomes for m in o.holes])
        write_list(out, "Proved, and no run shows such a thing; what is computed is something else:",
                   [(o.name, *m) for o in outcomes for m in o.values])
        write_list(out, "False alarms:", [(o.name, *m) for o in outcomes for m in o.alarms])
        write_survivors(out, outcomes)
        if any(o.witnesses for o in outcomes):
            write_witnesses(out, outcomes)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedc", default=os.path.join(ROOT, "build", "schedc"))
    parser.add_argument("--file", action="append", help="a schedule (fa3_fwd, if none is named)")
    parser.add_argument("--all", action="store_true", help="all of schedules/")
    parser.add_argument("--on", choices=["cpu", "both"], default="both", help="the interpreter, or the model as well")
    parser.add_argument("--expected", default=os.path.join(HERE, "mutate.expected"))
    parser.add_argument("--witnesses", action="store_true", help="run what is rejected, too")
    parser.add_argument("--results", metavar="FILE", help="verdicts, a line each: those in it stand, new ones are added")
    parser.add_argument("--table")
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("-j", "--jobs", type=int, default=1, help="schedules at a time")
    parser.add_argument("--verbose", action="store_true", help="one line a mutant")
    args = parser.parse_args()
    args.schedc = os.path.abspath(args.schedc)
    files = sorted(glob.glob(os.path.join(ROOT, "schedules", "*.sched"))) if args.all else args.file
    known, results = read_expected(args.expected), Results(args)
    outcomes, unexpected = [], 0
    files = files or [os.path.join(ROOT, "schedules", "fa3_fwd.sched")]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for outcome, whole in pool.map(lambda path: mutate(args, results, folder, path), files):
            outcomes.append(outcome)
            unexpected += report(outcome, whole, known, args.expected)
    if args.table:
        write_table(args.table, outcomes)
    count = sum(sum(o.total().values()) for o in outcomes)
    print(f"{count} mutants, {sum(len(o.survivors) for o in outcomes)} equivalent ones among them\n"
          f"{count - unexpected} passed, {unexpected} failed, 0 skipped")
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
