#!/usr/bin/env python3
"""schedc tune as the processes of a launcher, on the model of a GPU: four ranks find what one finds; a rank that is killed loses
only what it had not answered; strangers, other schedules, and a missing rank 0 are told apart.

  ranks.py [--schedc build/release/schedc] [--only REGEX]
"""
import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from tally import Folder, expect, skip, tell

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# 24 programs that differ by how many rounds they have. Of the default no line says "measured".
OTHERS = 23
SPREAD = """kernel spread {
  param A = 1 in { 1 .. 25 }
  in  X : f32[M, 32]
  out Y : f32[M, 32]
  spec { Y[i,j] = 2 * X[i,j] }
  case small { M = 256 }
  grid (x : cdiv(M, 64))
  ring r : f32[64, 32] * 2
  role load : 1 warp, 40 regs { for t in 0 .. 8 + (A * 7) % 24 { r <- X[x*64..] } }
  role math : 1 warpgroup, 128 regs {
    for t in 0 .. 8 + (A * 7) % 24 { wait r;  Y[x*64 + i, j] = 2 * r[i,j];  release r }
  }
}
"""


class Setting(Folder):
    def __init__(self, schedc, folder):
        super().__init__(schedc, folder, SCHEDC_RANKS_SECONDS="20")
        self.file = self.write("spread.sched", SPREAD)

    def words(self, out, *more, file=None):
        return [self.schedc, "tune", file or self.file, "--on", "model", "--out", self.path(out), "--strategy", "exhaustive",
                "--top", "2", "--jobs", "1", "--format", "json", *more]

    def start(self, rank, size, out, *more, file=None, **env):
        launcher = {"OMPI_COMM_WORLD_SIZE": str(size), "OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_LOCAL_RANK": str(rank),
                    "OMPI_COMM_WORLD_LOCAL_SIZE": str(size)} if size > 1 else {}
        return subprocess.Popen(self.words(out, *more, file=file), stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                                env={**self.env, **launcher, **env})

    def ranks(self, size, out, *more, **how):
        """The others first: rank 0 does not wait for them."""
        others = [self.start(r, size, out, *more, **how) for r in range(1, size)]
        return [self.start(0, size, out, *more, **how), *others]

    def measured(self, out):
        with open(self.path(out), encoding="utf-8") as file:
            return {json.loads(line)["tuning"]["A"] for line in file if json.loads(line)["status"] == "measured"}


def ended(process, seconds=100):
    out, err = process.communicate(timeout=seconds)
    return process.returncode, out, err


def is_alone(s, out):
    """What one process finds."""
    code, said, err = ended(s.start(0, 1, out))
    expect("one process", code == 0 and "elsewhere" not in json.loads(said)[0], code, said, err)
    return s.measured(out)


def four_are_as_one(s):
    alone = is_alone(s, "one")
    first, *others = [ended(p) for p in s.ranks(4, "four")]
    said = json.loads(first[1])[0]
    expect("rank 0", first[0] == 0 and said["chosen"], first)
    expect("the others say nothing", all(o == (0, "", "") for o in others), others)
    expect("they have measured", len(said["elsewhere"]) == 3 and sum(said["elsewhere"]) > 0, said["elsewhere"])
    expect("the same set", s.measured("four") == alone and len(alone) == OTHERS, s.measured("four") ^ alone)
    expect("nothing is left beside the store", not [n for n in os.listdir(s.folder) if n.startswith("four.")], os.listdir(s.folder))


def under_mpirun(s):
    """The launcher itself, where there is one."""
    mpirun = shutil.which("mpirun")
    if not mpirun:
        skip("mpirun", "it is not installed")
        return
    done = subprocess.run([mpirun, "--allow-run-as-root", "--oversubscribe", "-n", "4", *s.words("mpi")], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8", env=s.env, timeout=100)
    expect("mpirun", done.returncode == 0, done)
    if done.returncode:
        return
    elsewhere = json.loads(done.stdout)[0].get("elsewhere", [])
    expect("others have measured", len(elsewhere) == 3 and sum(elsewhere) > 0, elsewhere)
    expect("the same set under mpirun", s.measured("mpi") == is_alone(s, "one"), s.measured("mpi"))


def rendezvous(s, out, first):
    """What rank 0 tells the others by a file, once it has."""
    path = s.path(out + ".ranks")
    while not os.path.exists(path) and first.poll() is None:
        time.sleep(0.02)
    with open(path, encoding="utf-8") as file:
        return file.read().split()


def one_is_killed(s):
    first, *others = s.ranks(3, "killed")
    rendezvous(s, "killed", first)
    time.sleep(0.7)
    others[1].kill()
    ends = [ended(p) for p in (first, *others)]
    expect("the others go on", ends[0][0] == 0 and ends[1][0] == 0, ends)
    expect("nothing is lost", len(s.measured("killed")) == OTHERS, s.measured("killed"))
    if ends[0][2]:
        expect("it is told", re.search(r"rank 2 is lost; what it had \(\d+\)", ends[0][2]), ends[0][2])


def one_leaves_at_the_door(s):
    """A rank that is gone before it is let in is lost: it spoke no other language."""
    first = s.start(0, 2, "door")
    _, _, _, port, token = rendezvous(s, "door", first)

    def hello(common):
        link = socket.create_connection(("127.0.0.1", int(port)), timeout=30)
        link.sendall(f"hello {token} 1 4 {common}\n".encode())
        return link

    with hello("0.0.0 of another schedule") as link:
        common = link.recv(1000).decode().removeprefix("refused ").removesuffix("\n")
    first.send_signal(signal.SIGSTOP)
    hello(common).close()
    first.send_signal(signal.SIGCONT)
    code, _, err = ended(first)
    expect("rank 0 goes on without it", code == 0 and len(s.measured("door")) == OTHERS, code, err)
    expect("what is told of it", "rank 1 is lost; what it had (" in err and "language" not in err, err)


def shapes(s):
    """Several in turn; who comes when some are over does the rest."""
    listed = s.write("listed", "M=64\nM=128\nM=192\nM=256\n")
    first, other = s.start(0, 3, "shapes", "--shapes", listed), s.start(1, 3, "shapes", "--shapes", listed)
    time.sleep(1.5)
    late = s.start(2, 3, "shapes", "--shapes", listed) if first.poll() is None else None
    code, out, err = ended(first)
    said = json.loads(out)
    expect("all shapes", code == 0 and [g["dims"]["M"] for g in said] == [64, 128, 192, 256], code, err)
    expect("the other measured in all", all(g["elsewhere"][0] for g in said[1:]), [g["elsewhere"] for g in said])
    expect("it ended well", ended(other) == (0, "", ""))
    if late:
        expect("and so did the late one", ended(late)[0] in (0, 3))


def strangers(s):
    """Who has no token, or speaks otherwise, is not let in, and disturbs nobody."""
    first = s.start(0, 2, "strange")
    word, version, _, port, token = rendezvous(s, "strange", first)
    expect("the file", (word, version, len(token)) == ("schedc-ranks", "1", 32), token)
    expect("only its owner reads it", os.stat(s.path("strange.ranks")).st_mode & 0o777 == 0o600)
    answers = []
    for line in ("hello " + "0" * 32 + " 1 4 x\n", "GET / HTTP/1.1\r\n\r\n", "x" * 100000, f"hello {token} 7 4 x\n",
                 f"hello {token} 1 4 0.0.0 of another schedule\n"):
        with socket.create_connection(("127.0.0.1", int(port))) as link:
            link.settimeout(30)
            try:
                link.sendall(line.encode())
                answers.append(link.recv(200).decode())
            except ConnectionError:
                answers.append("")
    code, out, err = ended(first)
    expect("no answer", answers[:4] == [""] * 4, answers)
    expect("a schedule of its own", answers[4].startswith("refused ") and "rank 1 is left out: it has '0.0.0 of another" in err, answers, err)
    expect("the search is as it was", code == 0 and len(s.measured("strange")) == OTHERS, code, err)


def nobody_there(s):
    begun = time.monotonic()
    code, out, err = ended(s.start(1, 2, "alone", SCHEDC_RANKS_SECONDS="1"))
    expect("no rank 0", code == 3 and not out and "finds no rank 0 by" in err and time.monotonic() - begun < 15, code, out, err)
    s.write("old.ranks", "schedc-ranks 1 localhost 1 " + "0" * 32 + "\n")
    code, out, err = ended(s.start(1, 2, "old", SCHEDC_RANKS_SECONDS="1"))
    expect("an old file", code == 3 and "finds no rank 0 by" in err, code, out, err)
    first, other = s.ranks(2, "old")
    expect("rank 0 takes its place", ended(first)[0] == 0 and ended(other)[0] == 0)
    words = [s.schedc, "tune", s.file, "--on", "model"]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                          env={**s.env, "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "0"})
    expect("no --out", done.returncode == 2 and "give --out" in done.stderr, done)


def another_schedule(s):
    other = s.write("other.sched", SPREAD.replace("A * 7", "A * 5"))
    late = s.start(1, 2, "unlike", file=other)
    first = s.start(0, 2, "unlike")
    (code, out, err), (late_code, late_out, late_err) = ended(first), ended(late)
    expect("rank 0 goes on", code == 0 and "rank 1 is left out" in err, code, err)
    expect("rank 1 is told", late_code == 3 and not late_out and "rank 1 is refused" in late_err, late_code, late_err)


def other_inputs(s):
    """Times on other kinds of inputs are not mixed: a rank that measures on others is told which."""
    for more, told in ((["--inputs", "ramp,normal"], "1 measured of ramp normal'"), (["--measured", "2"], "2 measured of normal outliers ramp'"),
                       (["--seed", "1"], "seed 1, 1 measured of normal outliers ramp'")):
        late = s.start(1, 2, "kinds", *more)
        first = s.start(0, 2, "kinds")
        (code, _, err), (late_code, _, late_err) = ended(first), ended(late)
        expect(f"rank 0 goes on without {more}", code == 0 and "rank 1 is left out" in err, code, err)
        expect(f"{more}: rank 1 is told", late_code == 3 and "rank 1 is refused" in late_err and told in late_err, late_code, late_err)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedc", default=os.path.join(ROOT, "build", "release", "schedc"))
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    for test in (four_are_as_one, under_mpirun, one_is_killed, one_leaves_at_the_door, shapes, strangers, nobody_there, another_schedule,
                 other_inputs):
        if re.search(args.only, test.__name__):
            with tempfile.TemporaryDirectory() as folder:
                test(Setting(args.schedc, folder))
    return tell()


if __name__ == "__main__":
    sys.exit(main())
