"""Tensors of attention that schedc_launch refuses, and what its message says: for tests/device.py (the model of a GPU) and
tests/gpu/shapes.py."""
from checks import Wrong, expect
from libschedc import Failed


def changed(tensors, i, **members):
    """The descriptions, one of them with other members: of lists, (dimension, value)."""
    for name, value in members.items():
        if isinstance(value, tuple):
            getattr(tensors[i], name)[value[0]] = value[1]
        else:
            setattr(tensors[i], name, value)
    return tensors


REFUSED = [  # what, tensor, members, a word of the message
    ("an address", "Q", lambda t: {"data": t.data + 2}, "16 bytes"),
    ("an address", "K", lambda t: {"data": t.data + 8}, "16 bytes"),
    ("an address", "O", lambda t: {"data": t.data + 4}, "16 bytes"),
    ("an address", "L", lambda t: {"data": t.data + 2}, "4 bytes"),
    ("no address", "V", lambda t: {"data": None}, "NULL"),
    ("rows of odd length", "K", lambda t: {"strides": (1, 132)}, "16 bytes"),
    ("heads of odd length", "Q", lambda t: {"strides": (2, 129)}, "16 bytes"),
    ("a last dimension with gaps", "V", lambda t: {"strides": (3, 2)}, "contiguous"),
    ("a negative stride", "Q", lambda t: {"strides": (0, -8)}, "negative"),
    ("a stride of 2^40 bytes", "K", lambda t: {"strides": (0, 1 << 39)}, "2^40"),
    ("an output that overlaps", "O", lambda t: {"strides": (0, 0)}, "overlap"),
    ("an extent", "V", lambda t: {"shape": (1, 99)}, "extent"),
    ("a head dimension", "K", lambda t: {"shape": (3, 64)}, "128"),
    ("a type", "V", lambda t: {"type": 2}, "bf16"),
    ("a rank", "L", lambda t: {"rank": 2}, "dimension"),
]


def refuse_all(kernel, describe, stream):
    """Each by a message that names the tensor. describe: what they are, all right."""
    names = [t[0] for t in kernel.tensors]
    for what, name, members, word in REFUSED:
        i = names.index(name)
        tensors = describe()
        try:
            kernel.launch(stream, changed(tensors, i, **members(tensors[i])))
        except Failed as error:
            expect(f"'{name}'" in str(error) and word in str(error), f"{what} of '{name}': {error}")
        else:
            raise Wrong(f"{what} of '{name}' is not refused")
