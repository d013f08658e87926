"""What of the order of a schedule has its mutant lost? In: the statements of both. Out: the pairs of statements whose order it
lost, or that this cannot be told.

The idea: a wait or acquire (what comes in) holds back what its role does after it; a release or commit (what goes out) tells
others of what its role did before it. So order stands between what comes in and any statement after it that does something
or goes out, and between any statement that does something or comes in and what goes out after it. A mutant that has all of
this order, and perhaps more, does what the schedule does when some of its roles are slow: each of its runs is one of the
schedule's, if only it neither hangs nor mistakes a phase.
"""
import re

IN, OUT, DOES = "in", "out", "does"


def items(s):
    """The names that a synchronising statement lists."""
    return {re.match(r"\w+", item).group() for item in s.text.split(None, 1)[1].split(", ")}


def definitions(statements):
    """{name of a definition: its text}."""
    out = {}
    for n, s in enumerate(statements):
        header = re.match(r"def (\w+)", s.text)
        if header:
            depth, end = 0, n
            while True:
                depth += statements[end].text.count("{") - statements[end].text.count("}")
                end += 1
                if depth == 0:
                    break
            out[header.group(1)] = " ".join(t.text for t in statements[n:end])
    return out


def unfolded(text, defs):
    """The text, with that of all definitions that it uses."""
    seen, todo = {}, [text]
    while todo:
        for word in re.findall(r"\w+", todo.pop()):
            if word in defs and word not in seen:
                seen[word] = defs[word]
                todo.append(defs[word])
    return " ".join([text, *seen.values()])


def kinds(s, text):
    """What a statement is, of IN, OUT and DOES. Text: its own, unfolded."""
    verb = text.split()[0]
    if s.sync:
        return {OUT} if verb == "release" else {IN}
    if verb == "commit":
        return {OUT}
    if verb in ("reg", "def") and "=" not in text:  # declares
        return set()
    comes = {IN} if re.search(r"<-|\b(wait|acquire)\b", text) else set()
    goes = {OUT} if re.search(r"<-|\b(release|commit)\b", text) else set()
    return {DOES} | comes | goes


def balanced(statements):
    """Are these no blocks, or whole ones?"""
    depth = 0
    for letter in re.findall(r"[{}]", " ".join(s.text for s in statements)):
        depth += 1 if letter == "{" else -1
        if depth < 0:
            return False
    return depth == 0


def loses(s, t, later, defs):
    """Synchronising statement s is now behind t, or (not later) before it, and was not: does that lose order? None: it cannot
    be told, as t uses what s waits for or gives away."""
    text = unfolded(t.text, defs)
    if not t.sync and items(s) & set(re.findall(r"(?<![\w.])\w+", text)):
        return None
    of = kinds(t, text)
    if kinds(s, s.text) == {IN}:
        return later and bool(of & {DOES, OUT})
    return not later and bool(of & {DOES, IN})


def changed(own, mutant):
    """Both without the statements at the beginning and the end that are the same ones."""
    first = next((n for n, (s, t) in enumerate(zip(own, mutant)) if s is not t), min(len(own), len(mutant)))
    own, mutant = own[first:], mutant[first:]
    last = next((n for n, (s, t) in enumerate(zip(own[::-1], mutant[::-1])) if s is not t), min(len(own), len(mutant)))
    return own[:len(own) - last], mutant[:len(mutant) - last]


def left_out(s, own, mutant):
    """What is lost with a statement that the mutant has not, or with fewer names."""
    kept = set().union(*(items(t) for t in mutant if t not in own))
    return [[items(s) - kept]] if kinds(s, s.text) == {IN} else None


def moved(s, own, place, defs):
    """What is lost with a statement that has another place."""
    n, out = own.index(s), []
    passed = [t for m, t in enumerate(own) if id(t) in place and (m < n) != (place[id(t)] < place[id(s)])]
    if not balanced(passed):
        return None
    for t in passed:
        lose = loses(s, t, own.index(t) > n, defs)
        if lose is None:
            return None
        if lose:
            out.append([items(s)] + ([items(t)] if t.sync else []))
    return out


def lost(own, mutant):
    """The order that the mutant lost, as a list of lists of sets of names: of the synchronising statements at either end.
    None: it cannot be told."""
    defs, out = definitions(own), []
    own, mutant = changed(own, mutant)
    place = {id(s): n for n, s in enumerate(mutant)}
    if [id(s) for s in own if not s.sync] != [id(s) for s in mutant if not s.sync]:
        return None
    for s in own:
        if s.sync:
            found = moved(s, own, place, defs) if id(s) in place else left_out(s, own, mutant)
            if found is None:
                return None
            out += found
    return out


def turns(statements):
    """The names of a schedule's turns that go over instances."""
    return {m.group(1) for m in (re.match(r"turn (\w+) *:", s.text) for s in statements) if m}


def turn_alone(own, mutant):
    """Is what the mutant lost only order that a turn made?"""
    missing = lost(own, mutant)
    return missing is not None and all(any(names <= turns(own) for names in ends) for ends in missing)


def without_turns(text):
    """A schedule in which what takes and passes turns over instances is dropped."""
    return re.sub(r"^( *turn \w+ *: *[\w, ]*?)( if .*)?$", r"\1 if false", text, flags=re.M)
