#!/usr/bin/env python3
"""Seeds for fuzz_npy: files that NumPy writes, of its versions, types, ranks and orders.

  npy_seeds.py FOLDER
"""
import os
import sys

import numpy


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    for version in ((1, 0), (2, 0), (3, 0)):
        for kind in ("f2", "f4", "f8", "i1", "u2", "i8"):
            for shape in ((), (3,), (2, 0), (2, 3, 1), (1, 2, 1, 2, 1, 2)):
                for order in "CF":
                    name = f"{version[0]}-{kind}-{len(shape)}-{order}.npy"
                    with open(os.path.join(folder, name), "wb") as file:
                        numpy.lib.format.write_array(file, numpy.ones(shape, kind, order), version)


if __name__ == "__main__":
    main()
