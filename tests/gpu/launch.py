#!/usr/bin/env python3
"""What a caller may do with the public API on a GPU: any strides, lengths and sizes, streams, graphs, threads, contexts;
what is refused, what C headers do, and what a launch costs. Through ctypes, on PyTorch's tensors, compared with PyTorch
in float64.

  tests/gpu/launch.py [--out FILE] [--only REGEX] [--library libschedc.so]

Each check stands alone: one that fails is told, and the others run. Exit code: 0 all right, 1 something failed, 3 no GPU
or no PyTorch. About a minute.
"""
import argparse
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path += [os.path.join(ROOT, "bench"), os.path.join(ROOT, "tests")]
from pytorch import environment, find  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", metavar="FILE", help="write JSON")
    parser.add_argument("--only", metavar="REGEX", help="checks whose name matches")
    parser.add_argument("--library", help="libschedc.so (default: build/release's)")
    args = parser.parse_args()
    if args.library:
        os.environ["SCHEDC_LIBRARY"] = os.path.abspath(args.library)
    out = args.out and os.path.abspath(args.out)
    os.chdir(ROOT)
    torch = find("launch.py")
    if not torch:
        return 3
    import cost
    import headers
    import kit
    import shapes
    import streams
    torch.manual_seed(0)
    library = kit.Library()
    checks, kernels = kit.Checks(out, environment(torch, library.version), args.only), kit.Kernels(library)
    for part in (shapes, streams, headers, cost):
        part.run(checks, kernels)
    figures = [c for c in checks.document["checks"] if "driver_us" in c]
    for c in figures:
        print(f"{c['name']}: {c['known_us']:.2f} us, with other addresses {c['moved_us']:.2f}, with new shapes "
              f"{c['new_us']:.2f}; the driver's own {c['driver_us']:.2f}")
    return checks.tell()


if __name__ == "__main__":
    sys.exit(main())
