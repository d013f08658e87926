"""The mutants of a schedule. In: its text. Out: its statements, and lists of statements that differ in one wait, release or
acquire: without it, without one name of its list, moved, or swapped with another of its role.

Each mutant has an operator and a name, which do not change with line numbers.
"""
import collections
import re

SYNC = re.compile(r"(wait|release|acquire)\b")
SHORT_BLOCK = re.compile(r"([^{}]*\{|\} else \{)([^{}]*\b(?:wait|release|acquire)\b[^{}]*)\}$")


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
