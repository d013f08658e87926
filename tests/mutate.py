#!/usr/bin/env python3
"""A mutation test: is every wait, release and acquire of a schedule needed, and does schedc notice?

Each mutant deletes one of them, drops one name of its list, moves it (by one statement up or down, or next
to the synchronising statement before or after it), or swaps two of them. A mutant is killed when `schedc
check` rejects it, or when a run reports a race, a deadlock or a wrong result. What survives must be in
the list of known equivalent mutants, with the reason why nothing is wrong with it.

  mutate.py --schedc build/schedc [--file schedules/fa3_fwd.sched] [--expected tests/mutate.expected]
  exit status: 0 every survivor is expected, 1 some is not, 2 the test itself could not be run
"""
import argparse
import collections
import difflib
import os
import re
import subprocess
import sys
import tempfile

SYNC = re.compile(r"(wait|release|acquire)\b")
POLICIES = [("early", 0), ("late", 0), ("random", 1), ("random", 2)]


class Statement:
    """A statement, a block's opening line or a closing brace, of a role."""

    def __init__(self, text, role):
        self.text, self.role = text, role
        self.sync = role is not None and SYNC.match(text) is not None


def split(source):
    """The file as statements, one a line: comments dropped, `a;  b` taken apart, one-line blocks kept whole."""
    out, role, depth = [], None, 0
    for line in source.splitlines():
        line = re.sub(r"//.*", "", line).strip()
        if depth == 1:
            header = re.match(r"role (\w+)", line)
            role = header.group(1) if header else None
        parts = line.split(";") if role and "{" not in line else [line]
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
            if at > 0:
                yield "before", f"{label[n]} | {label[sync[at - 1]]}", moved(n, sync[at - 1])
            if at + 1 < len(sync):
                yield "after", f"{label[n]} | {label[sync[at + 1]]}", moved(n, sync[at + 1])
            for m in sync[at + 1:]:
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


def classify(schedc, path, sizes, timeout):
    """(class, detail): rejected, fault, wrong, hung or survived."""
    status, text = run([schedc, "check", path], timeout)
    code = re.search(r"error\[([\w.-]+)\]", text)
    if status is None:
        return "hung", "check"
    if status != 0:
        return "rejected", code.group(1) if code else "?"
    for policy, seed in POLICIES:
        for size in sizes:
            status, text = run([schedc, "run", path, "--policy", policy, "--seed", str(seed)] + size, timeout)
            code = re.search(r"error\[([\w.-]+)\]", text)
            if status is None:
                return "hung", policy
            if code:
                return "fault", code.group(1)
            if status != 0:
                return "wrong", "FAIL" if "FAIL" in text else f"exit status {status}"
    return "survived", ""


def read_expected(path):
    """{mutant: reason} of lines `operator  name  # reason`."""
    known = {}
    if os.path.exists(path):
        for line in open(path, encoding="utf-8"):
            if line.strip() and not line.startswith("#"):
                mutant, _, reason = line.partition("  # ")
                if not reason.strip():
                    sys.exit(f"{path}: a mutant without a reason: {line.strip()}")
                known[mutant.strip()] = reason.strip()
    return known


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    root = os.path.dirname(here)
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--schedc", default=os.path.join(root, "build", "schedc"))
    parser.add_argument("--file", default=os.path.join(root, "schedules", "fa3_fwd.sched"))
    parser.add_argument("--expected", default=os.path.join(here, "mutate.expected"))
    parser.add_argument("--timeout", type=float, default=30)
    parser.add_argument("--verbose", action="store_true", help="one line a mutant")
    args = parser.parse_args()

    # Several key tiles and several query tiles a CTA, a ragged end each way; and one without any keys.
    sizes = [
        ["--set", "B=1", "--set", "H=2", "--set", "G=1", "--set", "M=300", "--set", "N=500", "-p", "D=64"],
        ["--set", "B=1", "--set", "H=1", "--set", "G=1", "--set", "M=200", "--set", "N=130", "-p", "D=64",
         "-p", "causal=true"],
    ]
    statements = split(open(args.file, encoding="utf-8").read())
    known = read_expected(args.expected)
    table = collections.defaultdict(collections.Counter)
    details, survivors = collections.Counter(), []

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "mutant.sched")

        def judge(mutant):
            with open(path, "w", encoding="utf-8") as f:
                f.write(join(mutant))
            return classify(args.schedc, path, sizes, args.timeout)

        verdict = judge(statements)
        if verdict[0] != "survived":
            print(f"the schedule itself does not pass: {verdict[0]} {verdict[1]}", file=sys.stderr)
            return 2
        for operator, name, mutant in mutants(statements):
            verdict, detail = judge(mutant)
            kind = operator.split()[0]
            table[kind][verdict] += 1
            if verdict == "survived":
                survivors.append((operator, name, mutant))
            else:
                details[f"{verdict} {detail}"] += 1
            if args.verbose:
                print(f"{verdict:9} {detail:16} {operator}  {name}", flush=True)

    verdicts = ["rejected", "fault", "wrong", "hung", "survived"]
    print(f"{'mutants':10}" + "".join(f"{v:>10}" for v in verdicts) + f"{'total':>10}")
    for kind, count in table.items():
        print(f"{kind:10}" + "".join(f"{count[v]:10}" for v in verdicts) + f"{sum(count.values()):10}")
    total = sum(table.values(), collections.Counter())
    print(f"{'all':10}" + "".join(f"{total[v]:10}" for v in verdicts) + f"{sum(total.values()):10}\n")
    for what, count in details.most_common():
        print(f"{count:6}  {what}")

    unexpected = 0
    for operator, name, mutant in survivors:
        key = f"{operator}  {name}"
        reason = known.pop(key, None)
        print(f"\nsurvivor: {key}\n" + (f"equivalent: {reason}" if reason else "NOT EXPECTED"))
        unexpected += reason is None
        diff = difflib.unified_diff(join(statements).splitlines(True), join(mutant).splitlines(True), n=2)
        print("".join(list(diff)[2:]), end="")
    for key in known:
        print(f"\n{args.expected}: no longer survives: {key}")
        unexpected += 1
    count = sum(total.values())
    print(f"\n{count} mutants, {len(survivors)} equivalent ones among them\n"
          f"{count - unexpected} passed, {unexpected} failed, 0 skipped")
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
