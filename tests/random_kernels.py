"""Kernels drawn from a seed, each with its specification: `draw(seed)` gives the text of a schedule and the dimensions to
run it with. Four families, of which each has its own choices:

  stream   products over tiles that come through rings, with what may stand beside and behind them
  weigh    two products in a row (attention: a softmax between them, or less)
  relay    element by element, from role to role through rings
  hand     memory that threads and engines of several roles use by turns

The specification is written beside the kernel from the same choices, and never derived from its text.
"""
import random
from types import SimpleNamespace

BYTES = {"f32": 4, "f16": 2, "bf16": 2, "e4m3": 1, "e5m2": 1}
CTA_REGS = 65536


def placed(template, row, column, value):
    """An expression of ENDS or STEPS: I and J are where the element is in the tensor."""
    at = template.replace("c[J]", f"c[{column}]").replace("I", f"({row})").replace("J", f"({column})")
    return at.format(value)


class Kernel:
    """The parts of a kernel, in the order in which they are written."""

    def __init__(self, pick):
        self.pick = pick
        self.tensors, self.requires, self.spec, self.dims, self.extra = [], [], [], {}, []
        self.empty = []  # dimensions that may be 0
        self.grid, self.mode, self.rings, self.turns, self.lets, self.roles = [], "", [], [], [], []

    def tensor(self, way, name, kind, *shape):
        self.tensors.append(f"{way} {name} : {kind}" + (f"[{', '.join(map(str, shape))}]" if shape else ""))

    def scalar(self, name, kind, value):
        self.tensors.append(f"in {name} : {kind} = {value}")

    def ring(self, name, parts, stages):
        body = ", ".join(f"{part} : {tile}" if part else tile for part, tile in parts)
        return f"ring {name} : " + (f"{{ {body} }}" if parts[0][0] else body) + (f" * {stages}" if stages > 1 else "")

    def role(self, name, threads, body):
        """threads: "1 warp" or "2 warpgroups", with what follows them; registers are given out at the end."""
        self.roles.append((name, threads, body))

    def registers(self):
        """One share for roles of warps, which are packed, and one for those of warpgroups; or none is said."""
        groups = sum(int(t.split()[0]) for _, t, _ in self.roles if "warpgroup" in t)
        warps = sum(int(t.split()[0]) for _, t, _ in self.roles if "warpgroup" not in t)
        packed = -(-warps // 4)
        few = 40 if groups < 3 else 32
        if not groups or (groups + packed < 4 and self.pick.random() < 0.2):
            return "", ""
        each = CTA_REGS // (128 * (groups + packed)) // 8 * 8  # what a thread starts with
        many = min(240, (each * (groups + packed) - few * packed) // groups // 8 * 8)
        return f", {few} regs", f", {many} regs"

    def text(self):
        few, many = self.registers()
        lines = ["kernel k {"] + self.tensors + [f"require {r}" for r in self.requires]
        lines += ["spec {"] + self.spec + ["}"]
        lines.append("case small { %s }" % ", ".join(f"{n} = {v}" for n, v in self.dims.items()))
        if self.grid:
            lines.append(f"grid ({', '.join(self.grid)}){self.mode}")
        lines += self.rings + self.turns + self.lets
        for name, threads, body in self.roles:
            lines += [f"role {name} : {threads}{many if 'warpgroup' in threads else few} {{"] + body + ["}"]
        return "\n".join(lines + ["}", ""])


def chance(pick, share):
    return pick.random() < share


def block(head, body):
    return [head + " {"] + body + ["}"]


def sizes(pick, tile, tiles, grain=1):
    """A length of about so many tiles, mostly ragged, in whole grains."""
    full = tile * pick.randint(1, tiles)
    n = full if chance(pick, 0.3) else full - pick.randrange(tile)
    return max(grain, n // grain * grain)


def grid_mode(k, pick, loader):
    k.mode = pick.choice(["", "", " persistent", " persistent"] + [" dynamic"] * loader)


# ---- stream

SKIPS = [("t % 3 != 1", "k / BK % 3 != 1"), ("t > 0", "k >= BK"), ("flag > 0", "flag > 0"),
         ("t < flag + 1", "k < (flag + 1) * BK"), ("use[x % 4] > 0", "use[i / BM % 4] > 0"),
         ("use[where(x % 4 > 2, 1, x % 4)] > 0", "use[where(i / BM % 4 > 2, 1, i / BM % 4)] > 0")]
CHANGES = ["0.5 * {}", "max({}, 0)", "abs({})", "{0} * {0}", "min({}, 1.5)", "where({0} < 0.25, {0}, 0.25)"]  # 0 stays 0
ENDS = ["{}", "0.25 * {} + c[J]", "max({} + c[J], 0)", "{} * alpha", "tanh(0.1 * {})", "where(J <= I + 5, {}, 0)",
        "where(I % 3 == J % 2, {}, 1)", "{} * c[J] + alpha", "where(J < alpha * 20, {}, -1)"]


def stream(pick):
    k, p = Kernel(pick), stream_plan(pick)
    stream_tensors(k, p)
    k.spec += stream_spec(p)
    k.dims = stream_dims(pick, p)
    k.extra = [stream_lengths(pick, p) for _ in range(3)]
    stream_grid(k, p)
    stream_roles(k, p)
    return k


def stream_plan(pick):
    p = SimpleNamespace()
    p.eight = chance(pick, 0.15)
    p.ta = pick.choice(["e4m3", "e5m2"]) if p.eight else pick.choice(["f16", "f16", "bf16"])
    p.tb = pick.choice(["e4m3", "e5m2"]) if p.eight else p.ta
    p.W = pick.choice([1, 1, 2, 2, 3])
    p.R = 128 if p.W == 1 and chance(pick, 0.15) else 64
    p.BK = pick.choice([32, 64, 96, 128] if p.eight else [16, 32, 48, 64, 64, 80, 128])
    p.loader = pick.choice(["one", "one", "one", "two", "self"])
    p.dealt = p.W == 2 and p.loader != "self" and chance(pick, 0.5)
    p.BM = p.R if p.dealt else p.R * p.W
    p.a_form = "k" if p.eight else pick.choice(["k", "k", "k", "m", "m", "regs", "inplace"])
    p.b_form = "k" if p.eight else pick.choice(["k", "n"])
    p.BN = pick.choice([16, 32, 48, 64, 64, 96, 128] if p.b_form == "n" else [8, 16, 24, 32, 40, 64, 64, 72, 96, 128])
    p.form = pick.choice(["plain"] * 5 + ["keep", "keep", "two", "late", "held"])
    if p.form in ("keep", "held") and p.a_form in ("regs", "inplace"):
        p.a_form = "k"
    p.joint = p.loader != "two" and chance(pick, 0.5)
    least = 2 if p.form in ("keep", "held") else 1
    p.stages_a, p.stages_b = pick.randint(least, 4), pick.randint(least, 4)
    stream_plan_rest(pick, p)
    while (p.BM * p.BK * p.stages_a + p.BN * p.BK * p.stages_b * (2 if p.form == "two" else 1)) * BYTES[p.ta] > 150_000:
        p.stages_a, p.stages_b = max(least, p.stages_a - 1), max(least, p.stages_b - 1)
        p.BK = max(32, p.BK // 2 // 32 * 32)
    if p.resident:
        p.K -= p.K % p.BK
    return p


def stream_plan_rest(pick, p):
    """What stands round the products: conditions, bounds, statistics, turns, the way out."""
    p.partner = p.W == 1 and p.R == 64 and p.form == "plain" and p.loader != "self" and p.a_form in "km" and chance(pick, 0.6)
    p.skip = pick.choice(SKIPS) if p.form in ("plain", "late") and not p.partner and chance(pick, 0.6) else None
    p.bound = pick.choice(["all", "all", "all", "rows", "len", "where"]) if p.form in ("plain", "late", "two") else "all"
    p.down = p.form in ("plain", "two", "late") and chance(pick, 0.2)
    p.multicast = p.loader == "one" and p.bound not in ("rows", "where") and not p.dealt and chance(pick, 0.35)
    p.stat = pick.choice(["sum", "max", "squares"]) if p.a_form == "k" and not p.eight and chance(pick, 0.75) else None
    if p.form in ("keep", "held") or p.partner:
        p.stat = None
    p.stat_role = bool(p.stat) and p.loader != "self" and not p.dealt and p.W < 3 and chance(pick, 0.7)
    p.turn = p.W > 1 and not p.dealt and chance(pick, 0.35)
    p.batch = chance(pick, 0.25)
    p.change, p.end = pick.choice(CHANGES), pick.choice(ENDS)
    if p.eight and "tanh" in p.end:  # its largest value says nothing of what its sums, of about 14 bits, may be off
        p.end = "{}"
    p.out = pick.choice(["f32", "f32", "bf16" if p.eight else p.ta])
    p.store = pick.choice(["direct", "direct", "private", "shared", "add", "copyadd"])
    if p.store in ("add", "copyadd") or p.stat and not p.stat_role:
        p.out = "f32"
    p.reversed, p.section = chance(pick, 0.2), pick.choice([0, 0, 0, 2])
    p.names = ["B", "C"] if p.form == "two" else ["B"]
    p.gap = bool(p.skip) and p.loader != "self" and not (p.multicast and "use" in p.skip[0]) and chance(pick, 0.4)
    whole_panels = p.b_form == "n" or p.BK * BYTES[p.tb] % 128 == 0
    p.resident = p.loader != "self" and p.names == ["B"] and not p.gap and not p.joint and whole_panels and chance(pick, 0.3)
    p.K = p.BK * pick.randint(1, 4) if p.resident else "K"
    p.peel = bool(p.skip) and not p.gap and not p.stat and p.bound == "all" and not p.down and chance(pick, 0.5)
    p.up = p.stat_role and chance(pick, 0.5)  # the vector goes to the role of the products, and not to S
    p.chosen = chance(pick, 0.25)  # places are choices


def stream_tensors(k, p):
    z = ["Z"] if p.batch else []
    k.tensor("in", "A", p.ta, *z, *((p.K, "M") if p.a_form == "m" else ("M", p.K)))
    for name in p.names:
        k.tensor("in", name, p.tb, *z, *((p.K, "N") if p.b_form == "n" else ("N", p.K)))
    if "c[J]" in p.end:
        k.tensor("in", "c", "f32", "N")
    if "alpha" in p.end:
        k.scalar("alpha", "f32", 0.75)
    if p.skip and "flag" in p.skip[0]:
        k.scalar("flag", "i32", 1)
    if p.skip and "use" in p.skip[0]:
        k.tensor("in", "use", "i32", 4)
    if p.bound == "len":
        k.tensor("in", "len", "i32", 3)
    k.tensor("inout" if p.store in ("add", "copyadd") else "out", "Y", p.out, *z, "M", "N")
    if p.stat and not p.up:
        k.tensor("out", "S", "f32", *z, "M")
    if (p.form in ("keep", "held") or p.peel) and not p.resident:
        k.requires.append("K > 0")
    elif not p.resident:
        k.empty.append("K")
    if p.stat and not p.up:
        k.requires.append("N > 0")  # what writes S is a tile of the first columns


def stream_spec(p):
    z = "z," if p.batch else ""
    whole = "0 <= k"
    if p.bound == "rows":
        whole = f"k < (i / {p.BM} + 1) * {p.BK}"
    if p.bound == "where":
        whole = f"k < where(i / {p.BM} % 2 == 0, cdiv({p.K}, {p.BK}), 1) * {p.BK}"
    if p.bound == "len":
        whole = f"k < len[i / {p.BM} % 3] * {p.BK}"
    some = f"{whole} and {p.skip[1].replace('BK', str(p.BK)).replace('BM', str(p.BM))}" if p.skip else whole
    if p.peel:
        some = f"({some}) or k / {p.BK} == cdiv({p.K}, {p.BK}) - 1"
    a = f"A[{z}k,i]" if p.a_form == "m" else f"A[{z}i,k]"
    lines = []
    if p.a_form in ("regs", "inplace"):
        lines.append(f"P[{z}i,k] = {p.change.format(a)}")
        a = f"P[{z}i,k]"
    terms = [f"{a} * {name}[{z}{'k,j' if p.b_form == 'n' else 'j,k'}]" for name in p.names]
    lines.append(f"D : f32[{z}i,j] = sum(k) where({some}, {' - '.join(terms)}, 0)")
    end = placed(p.end, "i", "j", f"D[{z}i,j]")
    if p.chosen:
        end = end.replace("c[j]", f"where(j / {p.BN} % 2 == 0, c[j], 0)")
    old = f"Y[{z}i,j] + " if p.store in ("add", "copyadd") else ""
    if p.stat:
        name, seen, s = "U : f32" if p.up else "S", some if p.gap else whole, f"A[{z}i,k]"
        lines.append({"sum": f"{name}[{z}i] = sum(k) where({seen}, {s}, 0)",
                      "squares": f"{name}[{z}i] = sum(k) where({seen}, {s} * {s}, 0)",
                      "max": f"{name}[{z}i] = max(-100, max(k) where({seen}, {s}, -inf))"}[p.stat])
    lines.append(f"Y[{z}i,j] = {old}({end})" + (f" + U[{z}i]" if p.up else ""))
    return lines


def stream_lengths(pick, p):
    grain = 16 // BYTES[p.ta]
    wide = max(1, 16 // BYTES[p.out])
    dims = {"M": sizes(pick, p.BM, 3 if p.W < 3 else 2, grain if p.a_form == "m" else 1),
            "N": sizes(pick, p.BN, 2, max(wide, grain if p.b_form == "n" else 1)),
            "K": sizes(pick, p.BK, min(256 // p.BK if p.eight else 20, 2 * max(p.stages_a, p.stages_b) + 3), grain)}
    if p.resident:
        del dims["K"]
    if p.batch:
        dims["Z"] = pick.randint(1, 2)
    return dims


def stream_dims(pick, p):
    dims = stream_lengths(pick, p)
    if p.skip and "flag" in p.skip[0]:
        dims["flag"] = pick.randint(0, 2)
    if p.skip and "use" in p.skip[0]:
        dims["use"] = str([pick.randint(0, 1) for _ in range(4)])
    if p.bound == "len":
        dims["len"] = str([pick.randint(0, 5) for _ in range(3)])
    return dims


def stream_grid(k, p):
    cluster = k.pick.choice(["x", "y"]) if p.multicast and p.bound == "all" else "x"
    p.cast_a, p.cast_b = (" multicast" if p.multicast and cluster == c else "" for c in "yx")
    head = "reversed " if p.reversed else ""
    k.grid = [f"{head}x : cdiv(M, {p.BM})" + (f" by {p.section}" if p.section else ""), f"y : cdiv(N, {p.BN})"]
    if p.batch:
        k.grid.append("z : Z")
    grid_mode(k, k.pick, p.loader == "one")
    if p.dealt and not k.mode:
        k.mode = " persistent"
    if p.multicast:
        k.mode += f" cluster ({cluster} : 2)"
        if p.bound == "len":  # the CTAs of a cluster take as many stages each
            p.cast_a = p.cast_b = ""
    steps = f"cdiv({p.K}, {p.BK})"
    k.lets.append("let n = " + {"all": steps, "rows": f"min(x + 1, {steps})", "len": f"min(len[x % 3], {steps})",
                                 "where": f"where(x % 2 == 0, {steps}, min(1, {steps}))"}[p.bound])


def stream_roles(k, p):
    tile_a = f"{p.ta}[{p.BK}, {{}}]" if p.a_form == "m" else f"{p.ta}[{{}}, {p.BK}]"
    tile_a = tile_a.format(p.R if p.loader == "self" else p.BM)
    depth = p.K if p.resident else p.BK
    tile_b = f"{p.tb}[{depth}, {p.BN}]" if p.b_form == "n" else f"{p.tb}[{p.BN}, {depth}]"
    parts = [("a", tile_a)] + [(name.lower() + "s", tile_b) for name in p.names]
    if p.joint:
        rings, p.held, p.at = [k.ring("r", parts, p.stages_a)], "r", "r."
    else:
        rings = [k.ring(n, [("", t)], p.stages_a if n == "a" else 1 if p.resident else p.stages_b) for n, t in parts]
        p.held, p.at = "a" if p.resident else ", ".join(n for n, _ in parts), ""
    if p.turn or p.dealt:
        k.turns.append("turn go : math")
    stream_loaders(k, p)
    if p.loader != "self":
        k.rings += rings
    body = stream_math(k, p, rings if p.loader == "self" else [])
    k.role("math[w]" if p.W > 1 else "math", f"{p.W} warpgroup{'s' * (p.W > 1)}" + (", one tile each" if p.dealt else ""), body)
    if p.partner:
        stream_partner(k, p)
    if p.stat_role:
        stream_stat_role(k, p)
    if p.store == "shared":
        at = f"{'z, ' if p.batch else ''}x*{p.BM}.., y*{p.BN}.."
        k.role("store", "1 warp", ["wait tile", f"Y[{at}] <- tile", "wait Y read", "release tile"])
    k.pick.shuffle(k.roles)


def stream_loop(p):
    return "for t in reversed 0 .. n" if p.down else "for t in 0 .. n"


def stream_copies(p, t):
    z = "z, " if p.batch else ""
    t = f"where({t} < n, {t}, 0)" if p.chosen else t
    rows = row_of(p).removesuffix(" + ") if p.loader == "self" else f"x*{p.BM}"
    slice_a = f"A[{z}{t}*{p.BK}.., {rows}..]" if p.a_form == "m" else f"A[{z}{rows}.., {t}*{p.BK}..]"
    copies = [f"{p.at}a <- {slice_a}{p.cast_a}"]
    for name in p.names:
        at = f"{t}*{p.BK}.., y*{p.BN}.." if p.b_form == "n" else f"y*{p.BN}.., {t}*{p.BK}.."
        copies.append(f"{p.at}{name.lower()}s <- {name}[{z}{at}]{p.cast_b}")
    return copies


def stream_fill(p, t):
    copies = stream_copies(p, t)
    return ["acquire r"] + copies + ["commit r"] if p.joint else copies


def rounds(p, body):
    """The loop over the stages that pass: with gaps, where the condition holds."""
    return block(stream_loop(p), block(f"if {p.skip[0]}", body) if p.gap else body)


def stream_loaders(k, p):
    fill = stream_fill(p, "t") if p.loader != "self" else []
    if p.resident:
        first = stream_copies(p, "0")[1]
        if p.loader == "one":
            k.role("load", "1 warp", [first] + rounds(p, fill[:1]))
        else:
            k.role("load0", "1 warp", rounds(p, fill[:1]))
            k.role("load1", "1 warp", [first])
    elif p.loader == "one":
        k.role("load", "1 warp", rounds(p, fill))
    elif p.loader == "two":
        for number, copy in enumerate(fill):
            k.role(f"load{number}", "1 warp", rounds(p, [copy]))


def row_of(p, of_cta="x"):
    """Where an instance's rows begin: in a stage, or in the tensor."""
    parts = [f"x*{p.BM}"] if of_cta else []
    return " + ".join(parts + ([f"{p.R}*w"] if p.W > 1 and not p.dealt else []) + [""])


def stream_left(p):
    row = "" if p.loader == "self" else row_of(p, "")
    if p.a_form == "regs":
        return "p[i,k]"
    return f"{p.at}a[k, {row}i]" if p.a_form == "m" else f"{p.at}a[{row}i, k]"


def stream_issue(p, sign, t="t"):
    """The products of a step."""
    out = []
    inner = f"{t}*{p.BK} + k" if p.resident else "k"
    for name in p.names:
        right = f"{p.at}{name.lower()}s[{f'{inner}, j' if p.b_form == 'n' else f'j, {inner}'}]"
        out.append(f"async {'acc' if name == 'B' else 'neg'}[i,j] {sign} {stream_left(p)} @ {right}")
    return (["acquire go"] + out + ["release go"]) if p.turn else out


def stream_stat(p, left):
    """A statement that adds up, or the largest of, the elements of A."""
    if p.stat == "max":
        return [f"m[i] = max(m[i], max(k) where(t*{p.BK} + k < {p.K}, {left}, -inf))"]
    return [f"m[i] = m[i] + sum(k) {left}" + (f" * {left}" if p.stat == "squares" else "")]


def stream_step(p, t="t"):
    """One round of the loop that waits for its products; or, with another `t`, after it and in any case."""
    accs = "acc" if len(p.names) == 1 else "acc, neg"
    row = "" if p.loader == "self" else row_of(p, "")
    a = f"{p.at}a[{row}i, k]"
    stat = stream_stat(p, a) if p.stat and not p.stat_role else []
    out = [f"wait {p.held}"]
    if p.a_form == "regs":
        out.append(f"p[i,k] = {p.change.format(a)}")
    if p.a_form == "inplace":
        out += [f"p[i,k] = {a}", f"{a} = {p.change.format('p[i,k]')}"]
    issue = stream_issue(p, "+=", t)
    between = stat if p.form == "late" and not p.skip else []  # a sum beside the product, not only where there is one
    product = issue + between + [f"wait {accs}"]
    if p.form == "late":
        out += stat if p.skip else []
        stat = []
    if t != "t":
        return out + issue + [f"wait {accs}", f"release {p.held}"]
    when = "t % 2 == 0" if p.partner else p.skip[0] if p.skip and not p.gap else None
    out += block(f"if {when}", product) if when else product
    return out + stat + [f"release {p.held}"]


def stream_loops(p):
    mine = (lambda t: stream_fill(p, t)) if p.loader == "self" else (lambda t: [])
    if p.form == "keep":
        first = mine("0") + [f"wait {p.held}"] + stream_issue(p, "=", "0")
        body = mine("t") + [f"wait {p.held}"] + stream_issue(p, "+=") + ["wait acc keep 1", f"release {p.held}"]
        return first + block("for t in 1 .. n", body) + ["wait acc", f"release {p.held}"]
    if p.form == "held":  # the product of a round is waited for in the next
        first = mine("0") + [f"wait {p.held}"] + stream_issue(p, "=", "0")
        body = mine("t") + ["wait acc", f"release {p.held}", f"wait {p.held}"] + stream_issue(p, "+=")
        return first + block("for t in 1 .. n", body) + ["wait acc", f"release {p.held}"]
    if p.peel:
        return block("for t in 0 .. n - 1", mine("t") + stream_step(p)) + mine("(n - 1)") + stream_step(p, "(n - 1)")
    return rounds(p, mine("t") + stream_step(p))


def stream_math(k, p, rings):
    zero = "" if p.form in ("keep", "held") else " = 0"
    regs = [f"acc : f32[{p.R}, {p.BN}]{zero}"]
    if len(p.names) > 1:
        regs.append(f"neg : f32[{p.R}, {p.BN}] = 0")
    if p.a_form in ("regs", "inplace"):
        regs.append(f"p : {p.ta}[{p.R}, {p.BK}]")
    if p.stat and not p.stat_role:
        partial = " partial" if p.stat != "max" and chance(k.pick, 0.5) else ""
        regs.append(f"m : f32[{p.R}] = {'-100' if p.stat == 'max' else '0'}{partial}")
    loops = stream_loops(p)
    if p.resident:
        loops = ["wait bs"] + loops + ["release bs"]
    if p.dealt:  # neither instance may be a round of the ring ahead of the other
        loops = ["acquire go"] + loops + ["release go"]
    if p.up:
        regs.append(f"u : f32[{p.R}]")
    body = rings + [f"reg {', '.join(regs)}"] + loops
    if len(p.names) > 1:
        body.append("acc[i,j] = acc[i,j] - neg[i,j]")
    if p.partner:
        body += ["wait part", "acc[i,j] = acc[i,j] + part[i,j]", "release part"]
    if p.up:
        body += ["wait up", f"u[i] = up[{row_of(p, '')}i]", "release up"]
    z = "z, " if p.batch else ""
    if p.stat and not p.stat_role:
        body.append(f"S[{z}{row_of(p)}i] = m[i] if y == 0")
    return body + stream_way_out(k, p, z)


def stream_way_out(k, p, z):
    end = placed(p.end, f"{row_of(p)}i", f"y*{p.BN} + j", "acc[i,j]") + (" + u[i]" if p.up else "")
    if p.chosen:  # before the tensor, where it is 0
        end = end.replace(f"c[y*{p.BN} + j]", f"c[where(y % 2 == 0, y*{p.BN}, y*{p.BN} - 4096) + j]")
    at = f"Y[{z}{row_of(p)}i, y*{p.BN} + j]"
    if p.store == "direct":
        return [f"{at} = {end}"]
    if p.store == "add":
        return [f"acc[i,j] = {end}", f"{at} += acc[i,j]"]
    if p.store == "shared":
        k.rings.append(k.ring("tile", [("", f"{p.out}[{p.BM}, {p.BN}]")], 2 if p.dealt else k.pick.choice([1, 2])))
        return ["acquire tile", f"tile[{row_of(p, '')}i, j] = {end}", "commit tile"]
    slice_ = f"Y[{z}{row_of(p).removesuffix(' + ')}.., y*{p.BN}..]"
    return [f"ring tile : {p.out}[{p.R}, {p.BN}]", "acquire tile", f"tile[i,j] = {end}", "commit tile", "wait tile",
            f"{slice_} {'+=' if p.store == 'copyadd' else '<-'} tile", "wait Y read", "release tile"]


def stream_stat_role(k, p):
    """Another role that drains the ring, by warpgroups or by warps of 16 rows."""
    rows, count = (16, p.BM // 16) if chance(k.pick, 0.4) and p.BM == 64 else (64, p.BM // 64)
    a = f"{p.at}a[{rows}*v + i, k]" if count > 1 else f"{p.at}a[i,k]"
    held = "r" if p.joint else "a"
    at = f"S[{'z, ' if p.batch else ''}x*{p.BM} + {f'{rows}*v + ' if count > 1 else ''}i]"
    body = [f"reg m : f32[{rows}] = {'-100' if p.stat == 'max' else '0'}"]
    body += rounds(p, [f"wait {held}"] + stream_stat(p, a) + [f"release {held}"])
    threads = f"{count} warp{'' if rows == 16 else 'group'}{'s' * (count > 1)}"
    end = [f"{at} = m[i] if y == 0"]
    if p.up:
        k.rings.append(k.ring("up", [("", f"f32[{p.BM}]")], k.pick.choice([1, 2])))
        end = ["acquire up", f"up[{f'{rows}*v + ' if count > 1 else ''}i] = m[i]", "commit up"]
    k.role("stat[v]" if count > 1 else "stat", threads, body + end)


def stream_partner(k, p):
    """A role that takes every other product, and hands its sum over."""
    k.rings.append(k.ring("part", [("", f"f32[64, {p.BN}]")], 1))
    left = f"{p.at}a[k,i]" if p.a_form == "m" else f"{p.at}a[i,k]"
    inner = f"t*{p.BK} + k" if p.resident else "k"
    right = f"{p.at}bs[{f'{inner}, j' if p.b_form == 'n' else f'j, {inner}'}]"
    product = block("if t % 2 == 1", [f"async acc[i,j] += {left} @ {right}", "wait acc"])
    loop = rounds(p, [f"wait {p.held}"] + product + [f"release {p.held}"])
    if p.resident:
        loop = ["wait bs"] + loop + ["release bs"]
    body = [f"reg acc : f32[64, {p.BN}] = 0"] + loop + ["acquire part", "part[i,j] = acc[i,j]", "commit part"]
    k.role("partner", "1 warpgroup", body)


# ---- weigh

def weigh(pick):
    k, p = Kernel(pick), weigh_plan(pick)
    weigh_tensors(k, p)
    k.spec += weigh_spec(p)
    k.dims = weigh_lengths(pick, p)
    k.extra = [weigh_lengths(pick, p) for _ in range(3)]
    cluster = " cluster (x : 2)" if p.cast else ""
    k.grid = [f"{'reversed ' * p.reversed}x : cdiv(M, {p.BM})", "h : H"]
    grid_mode(k, pick, True)
    k.mode += cluster
    weigh_roles(k, p)
    return k


def weigh_plan(pick):
    p = SimpleNamespace()
    p.T = pick.choice(["f16", "bf16"])
    p.W = pick.choice([1, 1, 2, 2, 3])
    p.R, p.BM, p.dealt = 64, 64 * p.W, False
    p.D, p.BN = pick.choice([16, 32, 48, 64, 64, 80, 128]), pick.choice([16, 32, 48, 64, 64, 80, 96])
    p.soft = pick.choice(["online", "online", "relu", "fixed"])
    p.form = pick.choice(["plain", "plain", "next", "split"])
    p.v_form = pick.choice(["n", "n", "k"])
    p.p_form = pick.choice(["regs", "regs", "stage"]) if p.form == "plain" else "regs"
    p.q_form = pick.choice(["stage", "stage", "regs"])
    p.causal = chance(pick, 0.35)
    p.down = chance(pick, 0.4)
    p.cast = " multicast" if not p.causal and chance(pick, 0.25) else ""
    p.joint = p.form == "plain" and chance(pick, 0.3)
    p.stages_k, p.stages_v = pick.randint(1, 3), pick.randint(1, 3)
    p.turn = p.W > 1 and chance(pick, 0.4)
    p.out = pick.choice([p.T, "f32"])
    p.store = pick.choice(["direct", "private"])
    p.reversed = chance(pick, 0.2)
    p.log = p.soft == "online" and chance(pick, 0.4)
    p.two_loaders = not p.joint and chance(pick, 0.25)
    return p


def weigh_tensors(k, p):
    k.tensor("in", "Q", p.T, "H", "M", p.D)
    k.tensor("in", "K", p.T, "H", "N", p.D)
    k.tensor("in", "V", p.T, "H", *((p.D, "N") if p.v_form == "k" else ("N", p.D)))
    k.scalar("scale", "f32", f"1 / sqrt({p.D})")
    k.tensor("out", "O", p.out, "H", "M", p.D)
    if p.log:
        k.tensor("out", "L", "f32", "H", "M")
    k.requires.append("scale > 0")
    k.empty += ["M", "N"]


def weigh_spec(p):
    seen = "j <= i" if p.causal else "0 <= j"
    q, v = ("R[h,i,d]", "V[h,d,j]" if p.v_form == "k" else "V[h,j,d]")
    lines = [] if p.q_form == "stage" else ["R[h,i,d] = 0.5 * Q[h,i,d]"]
    q = q if lines else "Q[h,i,d]"
    score = f"scale * sum(d) {q} * K[h,j,d]"
    if p.soft == "relu":
        return lines + [f"P[h,i,j] = where({seen}, max({score}, 0), 0)", f"O[h,i,d] = sum(j) P[h,i,j] * {v}"]
    if p.soft == "fixed":
        return lines + [f"P[h,i,j] = where({seen}, exp({score} - 3), 0)", f"O[h,i,d] = sum(j) P[h,i,j] * {v}"]
    lines += [f"S : f32[h,i,j] = where({seen}, {score}, -inf)", "X : f32[h,i] = max(j) S[h,i,j]",
              "P[h,i,j] = where(S[h,i,j] == -inf, 0, exp(S[h,i,j] - X[h,i]))",
              "Z : f32[h,i] = sum(j) where(S[h,i,j] == -inf, 0, exp(S[h,i,j] - X[h,i]))",
              f"O[h,i,d] = where(Z[h,i] == 0, 0, 1 / Z[h,i] * sum(j) P[h,i,j] * {v})"]
    return lines + (["L[h,i] = where(Z[h,i] == 0, -inf, X[h,i] + log(Z[h,i]))"] if p.log else [])


def weigh_lengths(pick, p):
    n = sizes(pick, p.BN, 2 * max(p.stages_k, p.stages_v) + 2, 8 if p.v_form == "k" else 1)
    return {"M": sizes(pick, p.BM, 3 if p.W == 1 else 2), "N": n, "H": pick.randint(1, 2)}


def weigh_roles(k, p):
    tile_k, tile_v = f"{p.T}[{p.BN}, {p.D}]", f"{p.T}[{p.D}, {p.BN}]" if p.v_form == "k" else f"{p.T}[{p.BN}, {p.D}]"
    k.rings.append(k.ring("q", [("", f"{p.T}[{p.BM}, {p.D}]")], k.pick.choice([1, 1, 2])))
    if p.joint:
        k.rings.append(k.ring("kv", [("k", tile_k), ("v", tile_v)], p.stages_k))
    else:
        k.rings += [k.ring("k", [("", tile_k)], p.stages_k), k.ring("v", [("", tile_v)], p.stages_v)]
    p.k, p.v = ("kv.k", "kv.v") if p.joint else ("k", "v")
    if p.turn:
        k.turns.append("turn go : math")
    n = f"cdiv(min(N, (x+1)*{p.BM}), {p.BN})" if p.causal else f"cdiv(N, {p.BN})"
    k.lets += [f"let n = {n}", "let c = scale * log2e"]
    weigh_loaders(k, p)
    k.role("math[w]" if p.W > 1 else "math", f"{p.W} warpgroup{'s' * (p.W > 1)}", weigh_math(p))
    k.pick.shuffle(k.roles)


def weigh_order(p, body, first="0", last="n"):
    return block(f"for t in {'reversed ' * p.down}{first} .. {last}", body)


def weigh_loaders(k, p):
    v_at = f"h, 0.., t*{p.BN}.." if p.v_form == "k" else f"h, t*{p.BN}.."
    load_k, load_v = f"{p.k} <- K[h, t*{p.BN}..]{p.cast}", f"{p.v} <- V[{v_at}]{p.cast}"
    load_q = [f"q <- Q[h, x*{p.BM}..]"]
    if p.two_loaders:
        k.role("left", "1 warp", block("if n > 0", load_q + weigh_order(p, [load_k])))
        k.role("right", "1 warp", weigh_order(p, [load_v]))
        return
    both = ["acquire kv", load_k, load_v, "commit kv"] if p.joint else [load_k, load_v]
    k.role("load", "1 warp", block("if n > 0", load_q + weigh_order(p, both)))


def in_turn(p, statements):
    return ["acquire go"] + statements + ["release go"] if p.turn else statements


def weigh_mask(p):
    row = row_of(p)
    tail = f"t*{p.BN} + j < N"
    outside = "-inf" if p.soft == "online" else "0"
    where = f"{tail} and t*{p.BN} + j <= {row}i" if p.causal else tail
    if p.soft == "relu":
        return [f"s[i,j] = where({where}, max(s[i,j] * scale, 0), 0)"]
    if p.soft == "fixed":
        return [f"s[i,j] = where({where}, exp2(s[i,j] * c - 3 * log2e), 0)"]
    late = f"t*{p.BN} + {p.BN} > " + (f"min(N, {row.removesuffix(' + ')} + 1)" if p.causal else "N")
    return block(f"if {late}", [f"s[i,j] = where({where}, s[i,j], {outside})"])


def weigh_soft(p):
    """From the scores to weights; what is due to `o` is in `a`, to be applied when no product writes it."""
    if p.soft != "online":
        return weigh_mask(p)
    return weigh_mask(p) + ["let old[i] = m[i]", "m[i] = max(m[i], max(j) s[i,j])", "let z[i] = where(m[i] == -inf, 0, m[i])",
                            "a[i] = exp2((old[i] - z[i]) * c)", "s[i,j] = exp2(s[i,j] * c - z[i] * c)",
                            "l[i] = l[i] * a[i] + sum(j) s[i,j]"]


def weigh_math(p):
    regs = [f"s : f32[64, {p.BN}]", f"o : f32[64, {p.D}] = 0"]
    body = []
    if p.p_form == "regs":
        regs.append(f"p : {p.T}[64, {p.BN}]")
    else:
        body.append(f"ring ps : {p.T}[64, {p.BN}]")
    if p.q_form == "regs":
        regs.append(f"r : {p.T}[64, {p.D}]")
    if p.soft == "online":
        regs.append("m : f32[64] = -inf, a : f32[64], l : f32[64] = 0 partial")
    q = f"q[{row_of(p, '')}i, d]"
    begin = ["wait q"] + ([f"r[i,d] = 0.5 * {q}", "release q"] if p.q_form == "regs" else [])
    end = [] if p.q_form == "regs" else ["release q"]
    first = f"async s[i,j] = {'r[i,d]' if p.q_form == 'regs' else q} @ {p.k}[j,d]"
    v = f"{p.v}[d,j]" if p.v_form == "k" else f"{p.v}[j,d]"
    second = f"async o[i,d] += {'p[i,j]' if p.p_form == 'regs' else 'ps[i,j]'} @ {v}"
    loop = {"plain": weigh_plain, "split": weigh_split, "next": weigh_next}[p.form](p, first, second)
    body += [f"reg {', '.join(regs)}"] + block("if n > 0", begin + loop + end)
    return body + weigh_way_out(p)


def weigh_hand(p):
    scaled = ["o[i,d] = o[i,d] * a[i]"] if p.soft == "online" else []
    if p.p_form == "regs":
        return scaled + ["p[i,j] = s[i,j]"]
    return scaled + ["acquire ps", "ps[i,j] = s[i,j]", "commit ps", "wait ps"]


def weigh_plain(p, first, second):
    if p.joint:
        body = ["wait kv"] + in_turn(p, [first]) + ["wait s"] + weigh_soft(p) + weigh_hand(p) + [second, "wait o"]
        body += ["release kv"]
    else:
        body = ["wait k"] + in_turn(p, [first]) + ["wait s", "release k"] + weigh_soft(p) + weigh_hand(p)
        body += ["wait v"] + in_turn(p, [second]) + ["wait o", "release v"]
    return weigh_order(p, body + (["release ps"] if p.p_form == "stage" else []))


def weigh_split(p, first, second):
    """Both stages are waited for at once; that of K is given back while the second product is in flight."""
    body = ["wait k, v"] + in_turn(p, [first]) + ["wait s"] + weigh_soft(p) + weigh_hand(p)
    return weigh_order(p, body + [second, "release k", "wait o", "release v"])


def weigh_next(p, first, second):
    """Scores of this tile and the product of the one before, in flight at once."""
    start = "n - 1" if p.down else "0"
    soft = lambda t: [f"let at = {t}"] + [line.replace("t*", "at*") for line in weigh_soft(p)]
    prologue = ["wait k"] + in_turn(p, [first]) + ["wait s", "release k"] + soft(start) + weigh_hand(p)
    body = ["wait k"] + in_turn(p, [first, "wait v", second]) + ["wait s", "release k"] + weigh_soft(p)
    body += ["wait o", "release v"] + weigh_hand(p)
    loop = weigh_order(p, body, "0", "n - 1") if p.down else weigh_order(p, body, "1", "n")
    return prologue + loop + ["wait v", second, "wait o", "release v"]


def weigh_way_out(p):
    value = "where(l[i] == 0, 0, o[i,d] / l[i])" if p.soft == "online" else "o[i,d]"
    at = f"h, {row_of(p)}"
    out = [f"L[{at}i] = where(l[i] == 0, -inf, m[i] * scale + log(l[i]))"] if p.log else []
    if p.store == "direct":
        return out + [f"O[{at}i, d] = {value}"]
    return out + [f"ring tile : {p.out}[64, {p.D}]", "acquire tile", f"tile[i,d] = {value}", "commit tile", "wait tile",
                  f"O[{at.removesuffix(' + ')}.., 0..] <- tile", "wait O read", "release tile"]


# ---- relay

RELAY_STEPS = ["0.5 * {}", "max({}, 0)", "abs({})", "{} + c[J]", "{} * c[J]", "min({}, 1.0)", "tanh({})", "1 - {}", "exp(-abs({}))",
               "where(J % 4 == I % 3, {}, 2)", "where(I < J + 9, {}, -1)"]


def relay(pick):
    k, p = Kernel(pick), relay_plan(pick)
    relay_tensors(k, p)
    k.spec += relay_spec(p)
    k.dims = relay_lengths(pick, p)
    k.extra = [relay_lengths(pick, p) for _ in range(3)]
    k.grid = [f"x : cdiv(M, {p.BM})" + pick.choice(["", "", " by 2"])]
    grid_mode(k, pick, p.fill != "threads")
    if p.fill == "copy" and chance(pick, 0.2):
        k.mode += " cluster (x : 2)"
    relay_roles(k, p)
    return k


def relay_plan(pick):
    p = SimpleNamespace()
    p.W = pick.choice([1, 1, 2])
    p.R = pick.choice([64, 64, 128]) if p.W == 1 else 64
    p.BM, p.BN, p.dealt = p.R * p.W, pick.choice([8, 16, 32, 32, 64]), False
    p.types = [pick.choice(["f32", "f32", "f16", "bf16"]) for _ in range(pick.randint(1, 3) + 1)]  # of the rings; the last is Y's
    p.steps = [pick.choice(RELAY_STEPS) for _ in p.types[1:]]
    p.stages = [pick.randint(1, 4) for _ in p.types]
    p.fill = pick.choice(["copy", "copy", "copy", "threads", "edge"])
    p.second = p.fill == "copy" and chance(pick, 0.4)  # a second tensor in the first ring, or in one of its own
    p.joint = chance(pick, 0.5)
    p.flip = chance(pick, 0.3)  # the first step transposes, through a private ring
    p.total = pick.choice([None, "sum", "max"])
    p.total_role = p.total and chance(pick, 0.5)
    p.vote = chance(pick, 0.25)
    p.store = pick.choice(["direct", "copy", "role"])
    p.back = chance(pick, 0.2)
    p.hold = p.store == "role" and p.stages[-1] > 1 and chance(pick, 0.5)
    return p


def relay_tensors(k, p):
    k.tensor("in", "X", p.types[0], "M", "N")
    if p.second:
        k.tensor("in", "U", p.types[0], "M", "N")
    if any("c[J]" in s for s in p.steps):
        k.tensor("in", "c", "f32", "N")
    k.tensor("out", "Y", p.types[-1], "M", "N")
    if p.total:
        k.tensor("out", "S", "f32", "M")


def relay_spec(p):
    value, lines = "X[i,j]" + (" * U[i,j]" if p.second else ""), []
    if p.total:
        plain = "sum(j) X[i,j]" if p.total == "sum" else "max(-50, max(j) X[i,j])"
        lines.append(f"S[i] = {plain}")
    if p.vote:
        lines.append(f"E : f32[i,j] = {relay_clip(value)}")
        value = "E[i,j]"
    for number, (step, kind) in enumerate(zip(p.steps, p.types[1:])):
        value = placed(step, "i", "j", f"({value})")
        name = "Y" if number == len(p.steps) - 1 else f"E{number}"
        lines.append(f"{name}{'' if name == 'Y' else ' : ' + kind}[i,j] = {value}")
        value = f"{name}[i,j]"
    return lines


def relay_clip(value):
    return f"where(abs({value}) > 1.5, 0.5 * ({value}), {value})"


def relay_lengths(pick, p):
    grain = max(16 // BYTES[p.types[0]], 16 // BYTES[p.types[-1]])
    return {"M": sizes(pick, p.BM, 3), "N": sizes(pick, p.BN, 2 * max(p.stages) + 2, grain)}


def relay_loop(p, body):
    return block(f"for t in {'reversed ' * p.back}0 .. n", body)


def relay_roles(k, p):
    k.lets.append(f"let n = cdiv(N, {p.BN})")
    tile = lambda kind: f"{kind}[{p.BM}, {p.BN}]"
    p.held = "a"
    if p.second and p.joint:
        k.rings.append(k.ring("r", [("a", tile(p.types[0])), ("u", tile(p.types[0]))], p.stages[0]))
        p.held, p.a, p.u = "r", "r.a", "r.u"
    else:
        k.rings.append(k.ring("a", [("", tile(p.types[0]))], p.stages[0]))
        p.a, p.u = "a", "u"
        if p.second:
            k.rings.append(k.ring("u", [("", tile(p.types[0]))], p.stages[-1]))
            p.held = "a, u"
    for number, kind in enumerate(p.types[1:]):
        if number < len(p.steps) - 1 or p.store == "role":
            k.rings.append(k.ring(f"b{number}", [("", tile(kind))], p.stages[number + 1]))
    k.role("load", "1 warp", relay_loop(p, relay_load(p)))
    for number in range(len(p.steps)):
        name = f"step{number}" + ("[w]" if p.W > 1 else "")
        k.role(name, f"{p.W} warpgroup{'s' * (p.W > 1)}", relay_step(k, p, number))
    if p.total_role:
        relay_total(k, p)
    if p.store == "role":
        k.role("store", "1 warp", relay_store(p))
    k.pick.shuffle(k.roles)


def relay_load(p):
    at = f"x*{p.BM}.., t*{p.BN}.."
    if p.second and p.joint:
        return ["acquire r", f"r.a <- X[{at}]", f"r.u <- U[{at}]", "commit r"]
    by_threads = ["acquire a", f"a[i,j] = X[x*{p.BM} + i, t*{p.BN} + j]", "commit a"]
    copy = [f"a <- X[{at}]"] + ([f"u <- U[{at}]"] if p.second else [])
    if p.fill == "edge":
        return block(f"if (t+1)*{p.BN} > N", by_threads)[:-1] + ["} else {"] + copy + ["}"]
    return by_threads if p.fill == "threads" else copy


def relay_step(k, p, number):
    row, stage = row_of(p), row_of(p, "")
    first, last = number == 0, number == len(p.steps) - 1
    come = p.held if first else f"b{number - 1}"
    value = f"{p.a if first else come}[{stage}i, j]" + (f" * {p.u}[{stage}i, j]" if first and p.second else "")
    regs, body, rings = [f"s : f32[{p.R}, {p.BN}]"], [f"wait {come}", f"s[i,j] = {value}"], []
    if first and p.total and not p.total_role:
        regs.append(f"m : f32[{p.R}] = {'0' if p.total == 'sum' else '-50'}" + (" partial" if p.total == "sum" and p.back else ""))
        body += relay_stat(p, f"{p.a}[{stage}i, j]")
    body.append(f"release {come}")
    if first and p.vote:
        regs.append(f"v : f32[{p.R}]")
        body += ["v[i] = max(j) abs(s[i,j])"] + block("vote any(v[i] > 1.5)", [f"s[i,j] = {relay_clip('s[i,j]')}"])
    if first and p.flip:
        rings.append(f"ring f : f32[{p.BN}, {p.R}]")
        body += ["acquire f", "f[j,i] = s[i,j]", "commit f", "wait f", "s[i,j] = f[j,i]", "release f"]
    value = placed(p.steps[number], f"{row}i", f"t*{p.BN} + j", "s[i,j]")
    body += relay_hand(p, number, value, rings) if not last or p.store != "direct" else [f"Y[{row}i, t*{p.BN} + j] = {value}"]
    out = rings + [f"reg {', '.join(regs)}"] + relay_loop(p, body)
    return out + ([f"S[{row}i] = m[i]"] if first and p.total and not p.total_role else [])


def relay_hand(p, number, value, rings):
    """To the next role through a ring, or out by the copy engine through a private one."""
    if number < len(p.steps) - 1 or p.store == "role":
        to = f"b{number}"
        return [f"acquire {to}", f"{to}[{row_of(p, '')}i, j] = {value}", f"commit {to}"]
    rings.append(f"ring g : {p.types[-1]}[{p.R}, {p.BN}]")
    return ["acquire g", f"g[i,j] = {value}", "commit g", "wait g", f"Y[{row_of(p).removesuffix(' + ')}.., t*{p.BN}..] <- g",
            "wait Y read", "release g"]


def relay_stat(p, value):
    if p.total == "sum":
        return [f"m[i] = m[i] + sum(j) {value}"]
    return [f"m[i] = max(m[i], max(j) where(t*{p.BN} + j < N, {value}, -inf))"]


def relay_total(k, p):
    """A second consumer of the first ring: warps of 16 rows, or warpgroups."""
    rows = k.pick.choice([16, 64]) if p.BM == 64 else 64
    count = p.BM // rows
    row = f"{rows}*v + " if count > 1 else ""
    body = [f"reg m : f32[{rows}] = {'0' if p.total == 'sum' else '-50'}"]
    body += relay_loop(p, [f"wait {p.held}"] + relay_stat(p, f"{p.a}[{row}i, j]") + [f"release {p.held}"])
    threads = f"{count} warp{'' if rows == 16 else 'group'}{'s' * (count > 1)}"
    k.role("total[v]" if count > 1 else "total", threads, body + [f"S[x*{p.BM} + {row}i] = m[i]"])


def relay_store(p):
    ring = f"b{len(p.steps) - 1}"
    copy = f"Y[x*{p.BM}.., t*{p.BN}..] <- {ring}"
    if not p.hold:
        return relay_loop(p, [f"wait {ring}", copy, "wait Y read", f"release {ring}"])
    first = copy.replace("t*", f"{'(n - 1)' if p.back else '0'}*")
    body = [f"wait {ring}", copy, "wait Y read keep 1", f"release {ring}"]
    loop = block("for t in reversed 0 .. n - 1" if p.back else "for t in 1 .. n", body)
    return block("if n > 0", [f"wait {ring}", first] + loop + ["wait Y read", f"release {ring}"])


# ---- hand

def hand(pick):
    """Memory that threads and engines of several roles use by turns: a tensor that one writes and another reads, or a stage
    that one changes and another reads, in an order that a ring of vectors or a turn gives."""
    k, p = Kernel(pick), hand_plan(pick)
    shape = ("Z", "M", p.BN) if p.loop else ("M", p.BN)
    k.tensor("in", "X", p.T, *shape)
    k.tensor("in", "W", p.T, p.N, p.BN)
    if p.through != "stage":
        k.tensor("inout", "G", p.T, *shape)
    k.tensor("out", "Y", "f32", *shape[:-1], p.N if p.product else p.BN)
    k.spec += hand_spec(p)
    k.dims = hand_lengths(pick, p)
    k.extra = [hand_lengths(pick, p) for _ in range(3)]
    k.grid = ["x : cdiv(M, 64)"]
    grid_mode(k, pick, True)
    k.lets = ["let n = Z"] if p.loop else []
    hand_roles(k, p)
    return k


def hand_plan(pick):
    p = SimpleNamespace()
    p.T = pick.choice(["f16", "bf16", "f32"])
    p.BN, p.N = pick.choice([32, 64]), pick.choice([16, 64])
    p.loop = chance(pick, 0.6)
    p.through = pick.choice(["stage", "stored", "stored", "copied", "added"])
    p.product = p.T != "f32" and chance(pick, 0.6)
    p.back = "copy" if p.through == "stage" or p.product else pick.choice(["copy", "read"])
    p.order = pick.choice(["ring", "ring", "turn"])
    p.stages, p.told = pick.randint(1, 3), pick.randint(1, 2)
    p.first = pick.choice(CHANGES)
    if p.through in ("copied", "added") and p.T == "bf16":
        p.T = "f16"
    return p


def hand_lengths(pick, p):
    return {"M": sizes(pick, 64, 3)} | ({"Z": pick.randint(1, 5)} if p.loop else {})


def hand_spec(p):
    z = "z," if p.loop else ""
    value = p.first.format(f"X[{z}i,k]")
    if p.through == "stage":
        lines, value = [f"E : {p.T}[{z}i,k] = {value}"], f"E[{z}i,k]"
    elif p.through == "added":  # rounded before it is added, and after
        lines, value = [f"E : {p.T}[{z}i,k] = {value}", f"G[{z}i,k] = G[{z}i,k] + E[{z}i,k]"], f"G[{z}i,k]"
    else:
        lines, value = [f"G[{z}i,k] = {value}"], f"G[{z}i,k]"
    if p.product:
        return lines + [f"Y[{z}i,j] = sum(k) {value} * W[j,k]"]
    return lines + [f"Y[{z}i,k] = 0.5 * {value}"]


def hand_roles(k, p):
    z, tile = "t, " if p.loop else "", f"{p.T}[64, {p.BN}]"
    k.rings.append(k.ring("a", [("", tile)], p.stages))
    loop = (lambda body: block("for t in 0 .. n", body)) if p.loop else (lambda body: body)
    load, first, then = [f"a <- X[{z}x*64..]"], hand_first(p, z), hand_then(p, z)
    if p.order == "turn":
        names = "first, fetch" if p.back == "copy" and p.through != "stage" else "first, then"
        k.turns.append(f"turn go : {names}")
    else:
        k.rings.append(k.ring("told", [("", "f32[64]")], p.told))
    before, after = ("acquire go", "release go") if p.order == "turn" else ("wait told", "release told")
    if p.back == "copy" and p.through != "stage":
        k.rings.append(k.ring("b", [("", tile)], p.stages))
        k.role("fetch", "1 warpgroup" if p.order == "turn" else "1 warp", loop([before, f"b <- G[{z}x*64..]"] + [after]))
        then = ["wait b"] + then + ["release b"]
    else:
        then = [before] + then + [after]
        if p.through == "stage":
            then = ["wait a"] + then + ["release a"]
    k.role("load", "1 warp", (["ws <- W[0..]"] if p.product else []) + loop(load))
    regs = [f"reg s : f32[64, {p.N if p.product else p.BN}]"]
    if p.product:
        k.rings.append(k.ring("ws", [("", f"{p.T}[{p.N}, {p.BN}]")], 1))
        then_all = regs + ["wait ws"] + loop(then) + ["release ws"]
    else:
        then_all = regs + loop(then)
    k.role("then", "1 warpgroup", then_all)
    rings = [f"ring c : {tile}"] if p.through in ("copied", "added") else []
    k.role("first", "1 warpgroup", rings + [f"reg s : f32[64, {p.BN}]"] + loop(first))
    k.pick.shuffle(k.roles)


def hand_first(p, z):
    tell = ["acquire told", "told[i] = 1", "commit told"] if p.order == "ring" else []
    change = p.first.format("s[i,k]")
    if p.through == "stage":
        write = [f"a[i,k] = {change}"]
    elif p.through == "stored":
        write = [f"G[{z}x*64 + i, k] = {change}"]
    else:
        sign = "<-" if p.through == "copied" else "+="
        write = ["acquire c", f"c[i,k] = {change}", "commit c", "wait c", f"G[{z}x*64.., 0..] {sign} c", "wait G", "release c"]
    body = ["wait a", "s[i,k] = a[i,k]"] + (["acquire go"] if p.order == "turn" else []) + write + tell
    return body + (["release go"] if p.order == "turn" else []) + ["release a"]


def hand_then(p, z):
    source = "a" if p.through == "stage" else "b"
    if p.product:
        return [f"async s[i,j] = {source}[i,k] @ ws[j,k]", "wait s", f"Y[{z}x*64 + i, j] = s[i,j]"]
    value = f"G[{z}x*64 + i, k]" if p.back == "read" else f"{source}[i,k]"
    return [f"s[i,k] = {value}", f"Y[{z}x*64 + i, k] = 0.5 * s[i,k]"]


FAMILIES = [stream] * 8 + [weigh] * 5 + [relay] * 4 + [hand] * 2


def draw(seed):
    """The text of a schedule, and other dimensions to run it with."""
    pick = random.Random(seed)
    kernel = pick.choice(FAMILIES)(pick)
    for dims in kernel.extra:
        if kernel.empty and chance(pick, 0.08):
            dims[pick.choice(kernel.empty)] = 0
    return kernel.text(), kernel.extra
