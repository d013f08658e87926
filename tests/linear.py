#!/usr/bin/env python3
"""Time and memory of every command grow as the text does: inputs of each kind are made four times as long.

A command may take 2.6 times as much of the processor and of memory for each doubling, over a floor, and never more than
seconds: what is quadratic, or goes down every way through shared operands, fails. Of bytes that are no schedule it keeps
next to nothing.

  linear.py --schedc build/schedc [-k KIND] [-v]
"""
import argparse
import os
import resource
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DOUBLING, SECONDS, MIB = 2.6, 0.02, 12  # the floors: what less than these takes is not compared
LIMIT_SECONDS, LIMIT_MIB = 6, 1024
TRIES = 3  # the least of them counts: others use the machine, too

COMMANDS = {
    "check": ["check", "{in}"],
    "fmt": ["fmt", "{in}", "-o", "{out}"],
    "info": ["info", "{in}"],
    "build": ["build", "{in}", "-o", "{out}.cu"],
    "test": ["test", "--quick", "{in}"],
    "model": ["run", "--on", "model", "{in}"],
}


def repeat(n, line):
    """n lines, with {0} for the number and {1} for the next."""
    return "".join(line.format(i, i + 1) + "\n" for i in range(n))


def kernel(name="k", items="", spec="Y[i,j] = X[i,j]", case="case small { M = 64, N = 64 }\n", load="", math=""):
    return f"""kernel {name} {{
  in X : f32[M, N]
  out Y : f32[M, N]
  {items}
  spec {{ {spec} }}
  {case}
  grid (x : cdiv(M, 64), y : cdiv(N, 64))
  ring r : f32[64, 64], z : f32[64]
  role load : 1 warp, 40 regs {{
    {load}
    r <- X[x*64.., y*64..]
    acquire z; z[i] = 0; commit z
  }}
  role math : 1 warpgroup, 128 regs {{
    reg o : f32[64, 64]
    wait r; o[i,j] = r[i,j]; release r
    wait z; release z
    {math}
    Y[x*64 + i, y*64 + j] = o[i,j]
  }}
}}
"""


def kernels(n):
    return "".join(kernel(f"k{i}") for i in range(n))


def statements(n):
    return kernel(math=repeat(n, "o[i,j] = o[i,j] * 1 + 0 * {0}"))


def conditions(n):
    return kernel(math=repeat(n, "if M > {0} {{ o[i,j] = o[i,j] * 1 }} else {{ o[i,j] = o[i,j] * 1 }}"))


def loops(n):
    return kernel(math=repeat(n, "for t{0} in 0 .. 1 {{ o[i,j] = o[i,j] + t{0} }}"))


def limits(n):
    """Each statement has a value that is computed before its loop, and has a name."""
    return kernel(math=repeat(n, "o[i,j] = where(j + {0} < M + {0}, o[i,j], 0)"))


def nested(n):
    return kernel(math=repeat(n, "for t{0} in 0 .. 1 {{") + "o[i,j] = o[i,j] * 1\n" + "}\n" * n)


def sums(n):
    return kernel(math=repeat(n, "o[i,j] = o[i,j]" + " + 0 * o[i,j]" * 12))


def long_sum(n):
    return kernel(math="o[i,j] = o[i,j]" + " + 0 * o[i,j]" * n + "\n")


def lets(n):
    return kernel(items=repeat(n, "let a{0} = M + {0}"), math=f"if a{n - 1} < 0 {{ o[i,j] = 0 }}\n")


def chained(n):
    return kernel(items="let a0 = M\n" + repeat(n, "let a{1} = a{0} + {0} * N"),
                  math=f"if a{n} < 0 {{ o[i,j] = 0 }}\n")


def doubled(n):
    """Each let has the one before it for both operands: 2^n ways lead to the first."""
    return kernel(items="let a0 = 0.0 * M\n" + repeat(n, "let a{1} = a{0} + a{0}"), math=f"o[i,j] = o[i,j] + a{n}\n")


def defs(n, value):
    """dn(v): n times over, of the value v."""
    return "def d0(v) = v\n" + repeat(n, "def d{1}(v) = d{0}(" + value + ")")


def doubled_elements(n):
    return kernel(items=defs(n, "v + v"), spec=f"Y[i,j] = d{n}(0 * X[i,j]) + X[i,j]",
                  math=f"o[i,j] = d{n}(0 * o[i,j]) + o[i,j]\n")


def doubled_rows(n):
    return kernel(items=defs(n, "v + v"), math=f"""reg m : f32[64] = 0
    m[i] = sum(j) d{n}(0 * o[i,j])
    vote any(d{n}(m[i]) > 0) {{ o[i,j] = 1 }}
    o[i,j] = o[i,j] + d{n}(m[i])
    Y[x*64 + i, y*64 + j] = o[i,j] if d{n}(0 * o[i,j]) >= 0""")


def doubled_columns(n):
    return kernel(items=defs(n, "(v + v) % 7"), math=f"o[i,j] = where(0 <= d{n}(j + M), o[i,j], 0)\n")


def doubled_extents(n):
    """Nobody gave these values a name: those of the grid, of a role, and of a loop in it."""
    return kernel(items=defs(n, "(v + v) % 7"), math=f"for t in 0 .. d{n}(x) {{ if d{n}(t) > 8 {{ o[i,j] = 0 }} }}").replace(
        "y : cdiv(N, 64)", f"y : cdiv(N + d{n}(7 * N), 64)")


def doubled_rounds(n):
    """What is not proved is searched for, by runs with concrete numbers: these roles may disagree."""
    return kernel(items="let a0 = N\n" + repeat(n, "let a{1} = min(a{0}, 1000) * 3 % 977 + a{0}"),
                  load=f"for t in 0 .. a{n} {{ acquire z; z[i] = 0; commit z }}",
                  math=f"for t in 0 .. a{n} + 1 {{ wait z; release z }}")


def doubled_choices(n):
    """The proof takes choices, minima and maxima apart: these roles disagree by a round."""
    return kernel(items="let a0 = cdiv(N, 64)\n" + repeat(n, "let a{1} = a{0} > 7 ? max(a{0} - 1, 5) : min(a{0}, 3)"),
                  load=f"for t in 0 .. a{n} {{ acquire z; z[i] = 0; commit z }}",
                  math=f"for t in 0 .. a{n} {{ wait z; release z }}\nwait z; release z")


def doubled_in_loop(n):
    return kernel(math="for t in 0 .. 3 {\nlet a0 = t\n" + repeat(n, "let a{1} = min(a{0}, 7) * (a{0} % 5)") +
                  f"if a{n} < 0 {{ o[i,j] = 0 }} }}\n")


def let_later(n):
    """Each value's part has a name, too, which is given to it later."""
    return kernel(items=repeat(n, "let a{0} = M / {1} + 1\nlet b{0} = M / {1}"), math=f"if a{n - 1} < 0 {{ o[i,j] = 0 }}\n")


def params(n):
    return kernel(items=repeat(n, "param P{0} = 1 in {{ 1, 2 }}") + repeat(n, "require M < 10000 + {0}"))


def wide_require(n):
    """A sum of n quotients, as a tree."""
    terms = [f"M / {i + 1}" for i in range(n)]
    while len(terms) > 1:
        terms = ["(" + " + ".join(terms[i:i + 2]) + ")" for i in range(0, len(terms), 2)]
    return kernel(items=f"require {terms[0]} < 100000000")


def cases(n):
    return kernel(case=repeat(n, "case c{0} {{ M = 64, N = 64 }}"))


def tensors(n):
    return kernel(items=repeat(n, "in T{0} : f32[M, N]"))


def tiles(n):
    return kernel(math=repeat(n, "reg q{0} : f32[64] = 0\nq{0}[i] = q{0}[i] + 1"))


def dimensions(n):
    """`test` runs each dimension at other lengths: the runs are as many as the dimensions, and each binds all of them."""
    return kernel(items=repeat(n, "in T{0} : f32[M, D{0}]"),
                  case="case small { M = 64, N = 64, " + ", ".join(f"D{i} = 4" for i in range(n)) + " }\n")


def fills(n):
    fill, drain = "acquire z; z[i] = 0; commit z", "wait z; release z"
    return kernel().replace(fill, repeat(n, fill)).replace(drain, repeat(n, drain))


def threads(math, tensors="out Y : f32[M, 64]", last=""):
    """A role that reads a tensor and does more."""
    return f"""kernel k {{
  in X : f32[M, 64]
  {tensors}
  case small {{ M = 64 }}
  grid (x : cdiv(M, 64))
  role a : 1 warpgroup, 128 regs {{
    reg o : f32[64, 64]
    o[i,j] = X[x*64 + i, j]
    {math}
    {last}
  }}
}}
"""


def adds(n):
    return threads(repeat(n, "Y[x*64 + i, j] += o[i,j]"), tensors="inout Y : f32[M, 64]")


def loads(n):
    return threads(repeat(n, "o[i,j] = o[i,j] + X[x*64 + i, j]"), last="Y[x*64 + i, j] = o[i,j]")


def readers(n):
    """Two roles read one stage, again and again."""
    role = f"""role R : 1 warpgroup, 128 regs {{
    reg o : f32[64, 64] = 0
    wait r
    {repeat(n, "o[i,j] = o[i,j] + r[i,j]")}
    release r
    Y_R[x*64 + i, j] = o[i,j]
  }}"""
    return f"""kernel k {{
  in X : f32[M, 64]
  out Y_a, Y_b : f32[M, 64]
  case small {{ M = 64 }}
  grid (x : cdiv(M, 64))
  ring r : f32[64, 64]
  role load : 1 warp, 40 regs {{ r <- X[x*64.., 0..] }}
  {role.replace("R", "a")}
  {role.replace("R", "b")}
}}
"""


def equations(n):
    return kernel(spec="a0[i,j] = X[i,j]\n" + repeat(n, "a{1}[i,j] = a{0}[i,j] + 0") + f"Y[i,j] = a{n}[i,j]")


def unordered(n):
    """Accesses of which no two are shown to be ordered: races are searched for, in runs that must leave nothing behind."""
    inner = "for u{0} in 0 .. N {{ s[d] = s[d] + G[u{0} + {0} * k, d] }}\nG[k + {0}, d] = s[d]"
    return f"""kernel k {{
  in    X : f32[N, 32]
  inout G : f32[K, 32]
  inout Y : f32[T]
  case small {{ N = 4, K = 12, T = 6 }}
  grid (x : T)
  turn o[k : K] : x
  role a : 1 warp, 64 regs {{
    reg s : f32[32] = 0
    for k in x .. K - x {{
      acquire o[K - 1 - k]
      {repeat(n, inner)}
      release o[K - 1 - k]
    }}
  }}
}}
"""


def turn_over_ctas(n):
    """What each CTA knows when it takes the turn is what all before it knew."""
    return f"""kernel k {{
  in    X : f32[M, 64]
  inout Y : f32[64]
  spec {{ Y[j] = Y[j] + sum(i) X[i,j] }}
  case small {{ M = {n} }}
  grid (x : M)
  turn o[t : 1] : x
  role a : 1 warp, 64 regs {{
    reg s : f32[64]
    s[j] = X[x,j]
    acquire o[0]
    s[j] = s[j] + Y[j]
    Y[j] = s[j]
    release o[0]
  }}
}}
"""


def unknown_names(n):
    return kernel(items=repeat(n, "let a{0} = b{0}"))


def same_names(n):
    return kernel() * n


def comments(n):
    return kernel() + "// nothing to see\n" * n


def zeros(n):
    return "\0" * n


def noise(n):
    return "kernel k {" + "\1$ #" * (n // 4)


def brackets(n):
    return "(" * n


# Kind, the smaller length, what is run, what it exits with.
ALL = ("check", "fmt", "info", "build", "test")
FRONT = ("check", "fmt", "info", "build")
INPUTS = [
    (kernels, 500, ("check", "fmt"), 0),
    (statements, 2500, FRONT, 0),
    (statements, 500, ("test",), 0),
    (conditions, 1500, FRONT, 0),
    (loops, 1000, FRONT, 0),
    (limits, 1500, FRONT, 0),
    (nested, 14, ALL, 0),
    (sums, 500, FRONT, 0),
    (sums, 40, ("test",), 0),
    (long_sum, 45, FRONT, 0),
    (lets, 1000, FRONT, 0),
    (chained, 220, ALL, 0),
    (doubled, 15, ALL, 0),
    (doubled_elements, 15, (*ALL, "model"), 0),
    (doubled_rows, 15, (*ALL, "model"), 0),
    (doubled_columns, 15, (*ALL, "model"), 0),
    (doubled_extents, 15, (*ALL, "model"), 0),
    (doubled_rounds, 25, ("check",), 0),
    (doubled_choices, 16, ("check",), 0),
    (doubled_in_loop, 15, (*ALL, "model"), 0),
    (let_later, 15, ("build", "model"), 0),
    (params, 1000, FRONT, 0),
    (wide_require, 1000, ("check",), 0),
    (cases, 1000, FRONT, 0),
    (tensors, 1000, FRONT, 0),
    (tiles, 1000, FRONT, 0),
    (dimensions, 12, ("test",), 0),
    (fills, 4000, FRONT, 0),
    (adds, 3000, FRONT, 0),
    (loads, 3500, FRONT, 0),
    (readers, 2000, FRONT, 0),
    (equations, 900, FRONT, 0),
    (equations, 100, ("test",), 0),
    (unordered, 3, ("check",), 0),
    (turn_over_ctas, 24, ("model",), 0),
    (unknown_names, 1000, ("check",), 1),
    (same_names, 500, ("check",), 1),
    (comments, 20000, ("check", "fmt"), 0),
]
GARBAGE = [zeros, noise, brackets]


class Cost:
    """What one run took: seconds of the processor, MiB at most, exit code."""

    def __init__(self, seconds, mib, code):
        self.seconds, self.mib, self.code = seconds, mib, code


def limit(command):
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_SECONDS, LIMIT_SECONDS))
    if command != "model":  # it reserves addresses, not memory
        resource.setrlimit(resource.RLIMIT_AS, (LIMIT_MIB << 20, LIMIT_MIB << 20))


def run(schedc, command, folder, text):
    source = os.path.join(folder, "in.sched")
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    words = [w.replace("{in}", source).replace("{out}", os.path.join(folder, "out")) for w in COMMANDS[command]]
    child = subprocess.Popen([schedc, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=lambda: limit(command))
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, child.returncode)


def grows(less, more):
    """What is wrong with the growth from one cost to that of a text four times as long; None: nothing."""
    may = DOUBLING ** 2
    if more.seconds > may * max(less.seconds, SECONDS):
        return f"{less.seconds:.2f} s became {more.seconds:.2f} s"
    if more.mib > may * max(less.mib, MIB):
        return f"{less.mib:.0f} MiB became {more.mib:.0f} MiB"
    return None


def wrong(schedc, folder, kind, length, command, code, verbose):
    """Of an input and a command: what is wrong, or None."""
    for _ in range(TRIES):
        less, more = (run(schedc, command, folder, kind(n)) for n in (length, 4 * length))
        if verbose:
            print(f"{kind.__name__:17s} {command:6s} {length:5d}: {less.seconds:.3f} s, {less.mib:4.0f} MiB; "
                  f"{4 * length:5d}: {more.seconds:.3f} s, {more.mib:4.0f} MiB")
        if (less.code, more.code) != (code, code):
            return f"exit codes {less.code} and {more.code} instead of {code}"
        found = grows(less, more)
        if not found:
            return None
    return found


def keeps_garbage(schedc, folder, kind, verbose):
    """Of a megabyte that is no schedule, which only has to be held once or twice."""
    cost = run(schedc, "check", folder, kind(1 << 20))
    if verbose:
        print(f"{kind.__name__:17s} check 1 MiB: {cost.seconds:.3f} s, {cost.mib:4.0f} MiB")
    if cost.code != 1:
        return f"exit code {cost.code} instead of 1"
    return f"{cost.mib:.0f} MiB for 1 MiB of text" if cost.mib > 2 * MIB else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--schedc", default=os.path.join(ROOT, "build", "schedc"))
    parser.add_argument("-k", default="", metavar="KIND", help="only inputs with this in their name")
    parser.add_argument("-v", action="store_true", help="print what everything took")
    args = parser.parse_args()
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        trials = [(kind, command, lambda k=kind, n=length, c=command, e=code: wrong(args.schedc, folder, k, n, c, e, args.v))
                  for kind, length, commands, code in INPUTS for command in commands]
        trials += [(kind, "check", lambda k=kind: keeps_garbage(args.schedc, folder, k, args.v)) for kind in GARBAGE]
        for kind, command, trial in trials:
            if args.k not in kind.__name__:
                continue
            found = trial()
            passed, failed = passed + (not found), failed + bool(found)
            if found:
                print(f"FAIL {command} of {kind.__name__}: {found}", flush=True)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
