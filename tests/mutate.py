#!/usr/bin/env python3
"""A mutation test: is every wait, release and acquire of a schedule needed, and does schedc notice?

Each mutant deletes one of them, drops one name of its list, moves it (by one statement up or down, or next
to the synchronising statement before or after it in its role), or swaps two of a role. A mutant is rejected by
`schedc check`; or else it is run, by the interpreter and, as emitted, on the model of a GPU: either notices it by
a race, a deadlock, a broken rule, a wrong result, or other bits than the schedule's own. What survives must be in
the list of known equivalent mutants, with the reason why nothing is wrong with it; `check` must prove it for all
trip counts. What only one of the two notices is listed.

With --witnesses each rejection that says what goes wrong in a run is tried: the interpreter must fail in that way,
by the command of the report, or with --unverified; or it was a false alarm. (Other rejections are of rules within
a role, without which a program has no meaning: nothing can be run.)

  mutate.py --schedc build/schedc [--file schedules/fa3_fwd.sched …| --all] [--on cpu] [--witnesses] [-j 2]
            [--table tests/mutate.md]
  exit status: 0 every survivor is expected, 1 some is not, 2 the test itself could not be run
"""
import argparse
import collections
import concurrent.futures
import difflib
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

import witnesses

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
SYNC = re.compile(r"(wait|release|acquire)\b")
SHORT_BLOCK = re.compile(r"([^{}]*\{|\} else \{)([^{}]*\b(?:wait|release|acquire)\b[^{}]*)\}$")
POLICIES = {"cpu": [("early", 0), ("late", 0), ("random", 1), ("random", 2)],
            "model": [("early", 0), ("late", 0), ("random", 1)]}
VERDICTS = ["one role", "all roles", "interpreter", "model only", "survived"]
FAILS, MORE, OTHERWISE, PASSES = ("fails as was said", "cannot be run: another rule is broken, too", "fails otherwise",
                                  "does not fail")
SEVERAL = {"R5.agree", "R6.deadlock", "R6.dealt", "R6.key", "R10.race"}  # what is wrong between roles
# What a run says of them; of others: witnesses.FAULTS.
FAULTS = {"R3.release": witnesses.RACE, "R10.race": witnesses.RACE, "R6.dealt": witnesses.PHASE, "R6.key": witnesses.KEY}

# What is run of a schedule: options, and dimensions, on two multiprocessors. Several rounds of each ring, several tiles a
# CTA, a ragged end each way, a sequence without keys, rings of one stage where it may have them; and what other branches
# and roles need.
RUNS = {
    "copy": [("", "M=320 N=512"), ("-p stages=1", "M=100 N=200")],
    "fa3_alg1": [("-p D=64", "B=1 H=2 G=1 M=300 N=500"), ("-p D=64 -p causal=true -p stages=1", "B=1 H=1 G=1 M=200 N=300")],
    "fa3_alone": [("-p D=64", "B=1 H=2 G=1 M=300 N=500"), ("-p D=64 -p causal=true", "B=1 H=1 G=1 M=200 N=130")],
    "fa3_bwd": [("attention -p D=64", "B=1 H=2 G=1 M=300 N=200"), ("attention -p D=64 -p stages=1", "B=1 H=1 G=1 M=300 N=200"),
                ("attention -p D=256 -p causal=true", "B=1 H=2 G=1 M=200 N=150"),
                ("attention -p D=256 -p stages=1", "B=1 H=1 G=1 M=200 N=150"), ("attention -p D=64", "B=1 H=1 G=1 M=0 N=70")],
    "fa3_fwd": [("-p D=64", "B=1 H=2 G=1 M=300 N=500"), ("-p D=64 -p causal=true", "B=1 H=1 G=1 M=200 N=130"),
                ("-p D=64 -p stages=1", "B=1 H=1 G=1 M=200 N=300")],
    "fa3_stage3": [("-p D=64", "B=1 H=2 G=1 M=300 N=900"), ("-p D=64", "B=1 H=2 G=1 M=200 N=600"),
                   ("-p D=64 -p causal=true", "B=1 H=1 G=1 M=200 N=130")],
    "fa3_stale": [("", "B=1 H=2 G=1 M=300 N=700"),
                  ("-p causal=true -p pair=2 -p BN=80 --inputs ramp", "B=1 H=1 G=1 M=500 N=300"),
                  ("-p causal=true -p pair=2 -p stages=1", "B=1 H=1 G=1 M=300 N=300"),
                  ("-p D=64", "B=1 H=1 G=1 M=200 N=130 scale=4")],
    "fa_varlen": [("--case tiles", ""), ("--case long", ""), ("--case empty", ""), ("--case long -p stages=1", "")],
    "gemm": [("", "M=128 N=256 K=640"), ("", "M=65 N=136 K=0")],
    "gemm_bias_gelu": [("", "M=320 N=704 K=576"), ("-p stages=2", "M=65 N=136 K=200")],
    "gemm_cooperative": [("", "M=300 N=1104 K=448"), ("-p stages=2", "M=65 N=136 K=200")],
    "gemm_pingpong": [("", "M=400 N=704 K=448"), ("-p stages=2", "M=200 N=136 K=200")],
    "gemm_roles": [("", "M=300 N=400 K=704"), ("-p stages=2", "M=65 N=136 K=200")],
    "gqa_fwd_2wg": [("-p D=64", "B=1 H=2 G=1 M=100 N=500"), ("-p D=64 -p causal=true", "B=1 H=2 G=1 M=200 N=130")],
    "mlp": [("", "M=300 F=900"), ("-p BM=64 -p stages=1", "M=65 F=300")],
    "softmax_rows": [("", "M=320 N=1100"), ("-p stages=2", "M=65 N=200")],
}


class Statement:
    """A statement, a block's opening line or a closing brace, of a role or a definition outside of roles."""

    def __init__(self, text, role):
        self.text, self.role = text, role
        self.sync = role is not None and SYNC.match(text) is not None


def spread(line):
    """A block on one line that synchronises, on several."""
    block = SHORT_BLOCK.match(line)
    return [block.group(1).strip(), *block.group(2).split(";"), "}"] if block else [line]


def split(source):
    """The file as statements, one a line: comments dropped, `a;  b` taken apart, other one-line blocks kept whole."""
    out, role, kernel, depth = [], None, "", 0
    kernels = len(re.findall(r"^kernel", source, re.M))
    for line in source.splitlines():
        line = re.sub(r"//.*", "", line).strip()
        if depth == 0 and re.match(r"kernel", line):
            kernel = line.split()[1] + "." if kernels > 1 else ""
        if depth == 1:
            header = re.match(r"(?:role|def) (\w+).*\{", line)
            role = kernel + header.group(1) if header else None
        for text in spread(line) if role else [line]:
            parts = text.split(";") if role and "{" not in text else [text]
            out += [Statement(part.strip(), role) for part in parts if part.strip()]
        depth += line.count("{") - line.count("}")
    return out


def join(statements):
    lines, depth = [], 0
    for s in statements:
        lines.append("  " * (depth - s.text.startswith("}")) + s.text + "\n")
        depth += s.text.count("{") - s.text.count("}")
    return "".join(lines)


def names(statements):
    """A name for each synchronising statement that does not change with line numbers."""
    seen, out = collections.Counter(), {}
    for n, s in enumerate(statements):
        if s.sync:
            seen[s.role, s.text] += 1
            out[n] = f"{s.role}: {s.text} [{seen[s.role, s.text]}]"
    return out


def mutants(statements):
    """Yields (operator, name, statements)."""
    label = names(statements)
    sync = list(label)
    unchanged = join(statements)
    seen = {unchanged}

    def moved(n, to):
        rest = statements[:n] + statements[n + 1:]
        return rest[:to] + [statements[n]] + rest[to:]

    def candidates():
        for at, n in enumerate(sync):
            s = statements[n]
            yield "delete", label[n], statements[:n] + statements[n + 1:]
            verb, rest = s.text.split(None, 1)
            listed = rest.split(", ")
            if len(listed) > 1:
                for item in listed:
                    text = verb + " " + ", ".join(x for x in listed if x != item)
                    yield f"drop {item}", label[n], statements[:n] + [Statement(text, s.role)] + statements[n + 1:]
            yield "up", label[n], moved(n, n - 1)
            yield "down", label[n], moved(n, n + 1)
            if at > 0 and statements[sync[at - 1]].role == s.role:
                yield "before", f"{label[n]} | {label[sync[at - 1]]}", moved(n, sync[at - 1])
            if at + 1 < len(sync) and statements[sync[at + 1]].role == s.role:
                yield "after", f"{label[n]} | {label[sync[at + 1]]}", moved(n, sync[at + 1])
            for m in [m for m in sync[at + 1:] if statements[m].role == s.role]:
                other = statements[:]
                other[n], other[m] = other[m], other[n]
                yield "swap", f"{label[n]} | {label[m]}", other

    for operator, name, mutant in candidates():
        text = join(mutant)
        if text not in seen:  # the same text by another way is tried once
            seen.add(text)
            yield operator, name, mutant


def run(command, timeout):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout,
                              encoding="utf-8", errors="replace")
        return done.returncode, done.stdout
    except subprocess.TimeoutExpired:
        return None, ""


class Verdict:
    """Of a mutant: what noticed it, what check or the interpreter says, what the model says, whether check has proved it,
    and what became of its witness."""

    def __init__(self, kind, said=None, model=None, proved=False, witness=None):
        self.kind, self.said, self.model, self.proved, self.witness = kind, said, model, proved, witness


class Judge:
    """Of a schedule's mutants: what check, the interpreter and the model say."""

    def __init__(self, args, folder, name):
        self.args, self.name, self.runs, self.folder = args, name, RUNS[name], folder
        self.path = os.path.join(folder, name + ".sched")
        self.timeout = args.timeout
        self.bits = {}  # the schedule's own, by run, policy and tensor; filled by its own runs
        self.outputs = {}

    def rejected(self):
        """(The code with which one of the runs' checks rejects it, or None; what is said; is it proved?)"""
        proved = True
        for options in dict.fromkeys(options for options, _ in self.runs):
            status, text = run([self.args.schedc, "check", self.path] + options.split("--inputs")[0].split(), self.timeout)
            code = re.search(r"error\[([\w.-]+)\]", text)
            if status != 0:
                return code.group(1) if code else "hung" if status is None else "?", text, False
            verdicts = [line for line in text.splitlines() if re.match(r"\w+: ", line)]
            proved &= bool(verdicts) and all(line.endswith("proved for all trip counts") for line in verdicts)
        return None, "", proved

    def command(self, on, policy, seed, options, dims):
        sets = [word for dim in dims.split() for word in ("--set", dim)]
        return [self.args.schedc, "run", self.path, *options.split(), *sets, "--on", on, "--sms", "2", "--policy", policy,
                "--seed", str(seed)]

    def tensors(self, of):
        """The outputs of a run."""
        if of not in self.outputs:
            _, text = run(self.command("cpu", "late", 0, *of) + ["--format", "json"], self.timeout)
            self.outputs[of] = [output["tensor"] for output in json.loads(text)["outputs"]]
        return self.outputs[of]

    def same_bits(self, key, files):
        """Are the outputs those of the schedule itself? (Where its own differ from policy to policy, sums have no order.)"""
        on, _, of = key
        same = True
        for name, path in files.items():
            with open(path, "rb") as file:
                now = hash(file.read())
            own = self.bits.setdefault((key, name), now)
            ordered = len({bits for (other, n), bits in self.bits.items() if (other[0], other[2], n) == (on, of, name)}) == 1
            same &= now == own or not ordered
        return same

    def noticed(self, on):
        """What the first run on the interpreter or the model that notices says; None: none does."""
        for policy, seed in POLICIES[on]:
            for of in self.runs:
                files = {name: os.path.join(self.folder, name + ".npy") for name in self.tensors(of)}
                out = [word for name, path in files.items() for word in ("--out", f"{name}={path}")]
                status, text = run(self.command(on, policy, seed, *of) + out, self.timeout)
                code = re.search(r"error\[([\w.-]+)\]", text)
                rule = re.search(r"error\[G\.model\].*\((\w+)\)", text)
                if status is None:
                    return "hung"
                if code:
                    return rule.group(1) if rule else code.group(1)
                if status != 0:
                    return "wrong" if "FAIL" in text else f"exit status {status}"
                if not self.same_bits((on, (policy, seed), of), files):
                    return "other bits"
        return None

    def forced(self, faults):
        """What becomes of it in runs with --unverified."""
        for policy, seed in POLICIES["cpu"]:
            for of in self.runs:
                status, text = run(self.command("cpu", policy, seed, *of) + ["--unverified"], self.timeout)
                found = witnesses.codes(text)
                if found & faults:
                    return FAILS
                if any(not code.startswith("X.") for code in found):
                    return MORE
                if status != 0:
                    return OTHERWISE
        return PASSES

    def replayed(self, code, text):
        """What became of the witness of a rejection."""
        if code not in SEVERAL | set(FAULTS):
            return None
        faults = FAULTS.get(code, witnesses.FAULTS)
        shown = witnesses.replay(self.args.schedc, self.path, text, faults)
        return self.forced(faults) if not shown else FAILS if shown[0] else PASSES

    def judge(self, mutant):
        with open(self.path, "w", encoding="utf-8") as f:
            f.write(join(mutant))
        code, text, proved = self.rejected()
        if code:
            witness = self.replayed(code, text) if self.args.witnesses else None
            return Verdict("all roles" if code in SEVERAL else "one role", code, witness=witness)
        cpu = self.noticed("cpu")
        model = self.noticed("model") if self.args.on == "both" else None
        return Verdict("interpreter" if cpu else "model only" if model else "survived", cpu, model, proved)


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
        self.count = collections.defaultdict(collections.Counter)  # by operator
        self.details = collections.Counter()
        self.model_only, self.interpreter_only, self.survivors = [], [], []
        self.witnesses = collections.Counter()  # by code, and what became of it
        self.open, self.alarms = [], []         # survivors that check does not prove; false alarms

    def add(self, operator, name, v, mutant, both):
        title = f"{operator}  {name}"
        self.count[operator.split()[0]][v.kind] += 1
        if v.kind == "survived":
            self.survivors.append((title, mutant))
            self.open += [] if v.proved else [title]
        else:
            self.details[f"{v.kind} {v.said or v.model}"] += 1
        if v.kind == "model only":
            self.model_only.append((title, v.model))
        if v.kind == "interpreter" and both and not v.model:
            self.interpreter_only.append((title, v.said))
        if v.witness:
            self.witnesses[v.said, v.witness] += 1
            self.alarms += [(title, v.said)] if v.witness == PASSES else []

    def total(self):
        return sum(self.count.values(), collections.Counter())


def mutate(args, folder, path):
    """The outcome of a schedule; exits where it does not pass itself."""
    name = os.path.basename(path).removesuffix(".sched")
    if name not in RUNS:
        sys.exit(f"{name}: RUNS does not say what is to be run of it")
    with open(path, encoding="utf-8") as file:
        statements = split(file.read())
    folder = os.path.join(folder, name)
    os.mkdir(folder)
    judge, outcome = Judge(args, folder, name), Outcome(name)
    own = judge.judge(statements)
    if own.kind != "survived":
        print(f"{name} itself does not pass: {own.kind} {own.said or own.model}", file=sys.stderr)
        sys.exit(2)
    for operator, label, mutant in mutants(statements):
        v = judge.judge(mutant)
        outcome.add(operator, label, v, mutant, args.on == "both")
        if args.verbose:
            said = f"{v.kind:11} {v.said or '-':12} {v.model or '-':12} {v.witness or '-'}"
            print(f"{name} {said}  {operator}  {label}", flush=True)
    return outcome, join(statements)


def report(outcome, whole, known, expected):
    """Prints what a schedule's mutants came to; how many survivors are not expected."""
    print(f"{outcome.name:16}" + "".join(f"{v:>13}" for v in VERDICTS) + f"{'total':>10}")
    for kind, count in [*outcome.count.items(), ("all", outcome.total())]:
        print(f"  {kind:14}" + "".join(f"{count[v]:13}" for v in VERDICTS) + f"{sum(count.values()):10}")
    for what, count in outcome.details.most_common():
        print(f"{count:6}  {what}")
    for (code, became), count in sorted(outcome.witnesses.items()):
        print(f"{count:6}  run, {code} {became}")
    unexpected = len(outcome.alarms) + len(outcome.open)
    for mutant, code in outcome.alarms:
        print(f"\nFALSE ALARM: {code}: {mutant}")
    for mutant in outcome.open:
        print(f"\nnot proved: {mutant}")
    for mutant, text in outcome.survivors:
        reason = known.pop((outcome.name, mutant), None)
        unexpected += reason is None
        print(f"\nsurvivor: {mutant}\n" + (f"equivalent: {reason}" if reason else "NOT EXPECTED"))
        diff = difflib.unified_diff(whole.splitlines(True), join(text).splitlines(True), n=2)
        print("".join(list(diff)[2:]), end="")
    for name, mutant in known:
        if name == outcome.name:
            print(f"\n{expected}: no longer survives: {mutant}")
            unexpected += 1
    print(flush=True)
    return unexpected


HEAD = """# Mutants of the schedules

One wait, release or acquire of a schedule is left out, moved, or swapped with another of its role. `one role`, `all roles`:
rejected by `schedc check`, for what a role does by itself, or for what roles do to each other. The others are run.
`interpreter`: it notices. `model only`: neither check nor the interpreter does, but the emitted text fails on the model of a GPU.
`survived`: nothing is wrong with them. Each has a reason in tests/mutate.expected; `check` has proved it for all trip counts,
and on the small dimensions of `RUNS` its outputs have the bits of the schedule's own, under {policies} policies in the
interpreter and {models} on the model (where sums have no fixed order: within tolerance).
Written by `tests/mutate.py --all --witnesses --table tests/mutate.md`.

"""
WITNESSES = """
A rejection for a race or a deadlock says what a run shows. Each has been run by the interpreter: by the command in the report,
or, where there is none, with `--unverified` on the dimensions of `RUNS`. The other rejections are of rules within a role,
without which a program has no meaning, so that nothing can be run.

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


def write_counts(out, title, rows):
    """A row of counts by verdict for each name, and their sum."""
    rows = [*rows, ("all", sum((count for _, count in rows), collections.Counter()))]
    out.write(columns(title, VERDICTS))
    for name, count in rows:
        out.write(f"| {name} | {sum(count.values())} | " + " | ".join(str(count[v]) for v in VERDICTS) + " |\n")


def write_witnesses(out, outcomes):
    count = sum((o.witnesses for o in outcomes), collections.Counter())
    kinds = [FAILS, MORE, OTHERWISE, PASSES]
    out.write(WITNESSES + columns("rejected by", kinds))
    for code in [*sorted({code for code, _ in count}), "all"]:
        row = [sum(n for (c, became), n in count.items() if code in (c, "all") and became == kind) for kind in kinds]
        out.write(f"| {code} | {sum(row)} | " + " | ".join(map(str, row)) + " |\n")


def write_table(path, outcomes):
    operators = list(dict.fromkeys(operator for o in outcomes for operator in o.count))
    with open(path, "w", encoding="utf-8") as out:
        out.write(HEAD.format(policies=len(POLICIES["cpu"]), models=len(POLICIES["model"])))
        write_counts(out, "schedule", [(o.name, o.total()) for o in outcomes])
        out.write("\n")
        write_counts(out, "operator", [(x, sum((o.count[x] for o in outcomes), collections.Counter())) for x in operators])
        if any(o.witnesses for o in outcomes):
            write_witnesses(out, outcomes)
        write_list(out, "Noticed by the model alone:", [(o.name, *m) for o in outcomes for m in o.model_only])
        write_list(out, "Noticed by the interpreter, and not by the model:",
                   [(o.name, *m) for o in outcomes for m in o.interpreter_only])
        write_list(out, "False alarms:", [(o.name, *m) for o in outcomes for m in o.alarms])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedc", default=os.path.join(ROOT, "build", "schedc"))
    parser.add_argument("--file", action="append", help="a schedule (fa3_fwd, if none is named)")
    parser.add_argument("--all", action="store_true", help="all of schedules/")
    parser.add_argument("--on", choices=["cpu", "both"], default="both", help="the interpreter, or the model as well")
    parser.add_argument("--expected", default=os.path.join(HERE, "mutate.expected"))
    parser.add_argument("--witnesses", action="store_true", help="run what is rejected, too")
    parser.add_argument("--table")
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("-j", "--jobs", type=int, default=1, help="schedules at a time")
    parser.add_argument("--verbose", action="store_true", help="one line a mutant")
    args = parser.parse_args()
    files = sorted(glob.glob(os.path.join(ROOT, "schedules", "*.sched"))) if args.all else args.file
    known = read_expected(args.expected)
    outcomes, unexpected = [], 0
    files = files or [os.path.join(ROOT, "schedules", "fa3_fwd.sched")]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for outcome, whole in pool.map(lambda path: mutate(args, folder, path), files):
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
