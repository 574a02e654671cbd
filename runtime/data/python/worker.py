"""Serves the examples of a Python dataset to stepop.

    python -c SCRIPT

Standard input is a socket to stepop. This process builds the dataset and then forks one worker for
each socket that it gets; a worker shares the memory of the dataset with it, as a worker of PyTorch's
DataLoader does. The messages are described in `python_server.h` and `python_worker.h`.
"""

import sys

if sys.version_info < (3, 9):
    sys.exit("Python %d.%d is too old: datasets take Python 3.9 or newer" % sys.version_info[:2])
# Files of the user such as `random.py` stand in the current folder; this script means Python's.
sys.path[:] = [folder for folder in sys.path if folder]

import array
import ctypes
import difflib
import faulthandler
import importlib
import importlib.util
import json
import mmap
import operator
import os
import random
import select
import signal
import socket
import struct
import threading
import time
import traceback
import warnings

try:
    import numpy
except ImportError:
    sys.exit("numpy is missing: " + sys.executable + " -m pip install numpy")

ALIGNMENT = 64  # bytes, of each tensor in a buffer
QUICK_EXAMPLE = 200e-6  # seconds; see Reader.read
COLD_EXAMPLE = 20e-3  # seconds; what takes less may be quick when it is read once more
MEMORY_CHECKED_EVERY = 64  # batches
MUCH_MEMORY = 1 << 30  # bytes that a worker may grow by beside doubling


class Refused(Exception):
    """What the user gave cannot be used; the text says why and what would help.

    `index` is the example in which it was found, or -1 for what concerns a whole batch.
    """

    def __init__(self, text, index=-1):
        super().__init__(text)
        self.index = index


# --- The socket


def receive(connection, size):
    """Exactly `size` bytes, or None when the other side has closed the socket."""
    parts = []
    while size > 0:
        part = connection.recv(size)
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def receive_message(connection):
    head = receive(connection, 4)
    return None if head is None else receive(connection, struct.unpack("<I", head)[0])


def send_message(connection, message, files=()):
    head = struct.pack("<I", len(message))
    if files:
        rights = array.array("i", files)
        connection.sendmsg([head], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        connection.sendall(message)
    else:
        connection.sendall(head + message)


def text_of(error):
    """The exception in one line, then Python's traceback without the frames of this script."""
    if isinstance(error, Refused):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames
           if frame.filename != "<string>" and not frame.filename.startswith("<frozen ")]
    name = type(error).__name__
    said = str(error) or "(without a message)"
    place = "%s:%s: " % (own[-1].filename, own[-1].lineno) if own else ""
    if isinstance(error, SyntaxError) and error.filename:
        place, said = "%s:%s: " % (error.filename, error.lineno), error.msg
    lines = ["%s%s: %s" % (place, name, said)]
    if own:
        lines.append("Traceback of Python (most recent call last):")
        lines += "".join(traceback.format_list(own)).rstrip("\n").split("\n")
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None:
        lines.append("caused by " + text_of(cause).replace("\n", "\n  "))
    return "\n".join(lines)


# --- The dataset


def module_of_file(path):
    """Runs a file as a module, once. A file of a package is run as the package's module."""
    path = os.path.realpath(path)
    if path in MODULES_OF_FILES:
        return MODULES_OF_FILES[path]
    folder, name = os.path.dirname(path), os.path.splitext(os.path.basename(path))[0]
    add_to_path(folder)
    while os.path.isfile(os.path.join(folder, "__init__.py")) and os.path.basename(folder).isidentifier():
        folder, package = os.path.split(folder)
        name = package + "." + name
    if "." in name:
        add_to_path(folder)
        module = importlib.import_module(name)
    else:
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    MODULES_OF_FILES[path] = module
    return module


def add_to_path(folder):
    FOLDERS.append(folder)
    if folder not in sys.path:
        sys.path.insert(0, folder)


MODULES_OF_FILES = {}
FOLDERS = []  # of the user's own files


def find_object(place, key):
    """`my_data.py:Train`, `torchvision.datasets:MNIST` or `torchvision.datasets.MNIST`."""
    source, colon, name = place.rpartition(":")
    if not colon:
        source, _, name = place.rpartition(".")
    if not source or not name:
        raise Refused('%s: expected "my_data.py:Train" or "package.module:Name", found "%s"' % (key, place))
    if source.endswith(".py"):
        if not os.path.isfile(source):
            raise Refused("%s: no such file: %s" % (key, source))
        module = module_of_file(source)
    else:
        try:
            module = importlib.import_module(source)
        except ModuleNotFoundError as error:
            if error.name is None or not (source + ".").startswith(error.name + "."):
                raise
            if error.name != source.split(".")[0]:
                raise Refused("%s: Python has no module %s" % (key, error.name)) from None
            raise Refused("%s: %s has no module %s: %s -m pip install %s" % (
                key, sys.executable, source, sys.executable, error.name)) from None
    found = module
    for part in name.split("."):
        if not hasattr(found, part):
            names = [each for each, value in vars(module).items()
                     if not each.startswith("_") and not isinstance(value, type(sys))]
            near = difflib.get_close_matches(name, names, 1)
            raise Refused("%s: %s has no %s%s" % (
                key, source, name, "; did you mean %s?" % near[0] if near else
                "; it has: %s" % (", ".join(names[:30]) or "nothing")))
        found = getattr(found, part)
    return found


def build(setup):
    made = find_object(setup["object"], "object")
    kwargs = setup["kwargs"]
    is_ready = not isinstance(made, type) and (
        hasattr(made, "__getitem__") or hasattr(made, "__iter__") and not callable(made))
    if is_ready and kwargs:
        raise Refused("kwargs: %s is an object that exists already, not a class or a function" % setup["object"])
    if not is_ready:
        if not callable(made):
            raise Refused("object: expected a dataset, a class or a function, found %s" % type(made).__name__)
        try:
            made = made(**kwargs)
        except TypeError as error:
            if error.__traceback__.tb_next is not None:  # in the user's code
                raise
            raise Refused("kwargs: %s" % error) from None
    kind = type(made).__name__
    if isinstance(made, dict) and not hasattr(made, "features"):
        raise Refused("object: found a dictionary with %s; take one of them, such as by kwargs: {split: %s}" % (
            ", ".join(map(str, made)), next(iter(made), "train")))
    if kind == "DataLoader" and hasattr(made, "dataset"):
        raise Refused("object: found a DataLoader; give the dataset inside of it: batches are made here")
    return made


def is_iterable(dataset):
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(dataset, torch.utils.data.IterableDataset):
        return True
    return not hasattr(dataset, "__getitem__") and hasattr(dataset, "__iter__")


def about(dataset, setup):
    kind = type(dataset).__name__
    versions = ["Python %d.%d.%d" % sys.version_info[:3]]
    for name in ("torch", "torchvision", "datasets"):
        version = getattr(sys.modules.get(name), "__version__", None)
        if version:
            versions.append("%s %s" % (name, version))
    facts = {"kind": kind, "versions": ", ".join(versions), "iterable": is_iterable(dataset)}
    if facts["iterable"]:
        if hasattr(dataset, "__next__"):
            raise Refused("object: a %s can be read only once: give an object whose __iter__ begins anew" % kind)
        facts["size"] = len(dataset) if hasattr(type(dataset), "__len__") else -1
        has_state = hasattr(dataset, "state_dict") and hasattr(dataset, "load_state_dict")
        if setup["resume"] != "skip" and not has_state:
            raise Refused(
                "a %s is iterable and has no state_dict and load_state_dict, so a resume cannot return to its place: "
                "make it a dataset with __getitem__ and __len__, give it both, or accept by resume: skip that a resume "
                "reads all earlier examples of the epoch again" % kind)
        return facts
    if not hasattr(dataset, "__getitem__"):
        raise Refused("object: found %s, which has neither __getitem__ nor __iter__" % kind)
    if not hasattr(dataset, "__len__"):
        raise Refused("object: a %s has no __len__: how many examples are there?" % kind)
    facts["size"] = len(dataset)
    return facts


# --- Names for what an example consists of


def describe(value):
    """What a value is, in a few words: `float32 [3, 32, 32]`."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return "%s %s" % (str(value.dtype).replace("torch.", ""), list(value.shape))
    if isinstance(value, dict):
        return "{%s}" % ", ".join("%s: %s" % (key, describe(each)) for key, each in value.items())
    if isinstance(value, (tuple, list)) and not is_numbers(value):
        inside = ", ".join(describe(each) for each in value[:8])
        return ("(%s)" if isinstance(value, tuple) else "[%s]") % inside
    if is_image(value):
        return "image %s %d x %d" % (value.mode, value.width, value.height)
    return type(value).__name__


def is_image(value):
    image = sys.modules.get("PIL.Image")
    return image is not None and isinstance(value, image.Image)


def is_numbers(value):
    """Whether a list or tuple holds numbers alone, in any nesting: it is an array then."""
    while isinstance(value, (list, tuple)) and len(value) > 0:
        value = value[0]
    return isinstance(value, (bool, int, float, numpy.number, numpy.bool_)) or isinstance(value, list) and not value


def children(value):
    """The named parts of a value, or None for what is one tensor or one text."""
    if isinstance(value, dict):
        return [(str(key), each) for key, each in value.items()]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return list(zip(value._fields, value))
    if isinstance(value, (list, tuple)):
        return None if is_numbers(value) else [(str(i), each) for i, each in enumerate(value)]
    if hasattr(value, "__dataclass_fields__"):
        return [(name, getattr(value, name)) for name in value.__dataclass_fields__]
    if hasattr(value, "items") and hasattr(value, "keys"):  # such as transformers' BatchEncoding
        return [(str(key), each) for key, each in value.items()]
    return None


def is_texts(value, count):
    """Whether a part of a batch of `count` examples is their texts."""
    return isinstance(value, (list, tuple)) and len(value) == count and all(isinstance(each, str) for each in value)


def leaves(name, value, found, count=None):
    """Adds the values inside of `value` to `found`; `count` is the number of examples of a batch."""
    parts = None if count and is_texts(value, count) else children(value)
    if parts is None:
        if name in found:
            raise Refused('two values have the name "%s"' % name)
        found[name] = value
        return
    for part, each in parts:
        leaves(name + "/" + part if name else part, each, found, count)


PLAIN = (int, float, str)
NUMBER_TYPES = {bool: numpy.bool_, int: numpy.int64, float: numpy.float64}


class Names:
    """Gives the parts of an example their names: `keys` of the config, or their own."""

    def __init__(self, keys):
        self.list = keys if isinstance(keys, list) else None
        self.map = keys if isinstance(keys, dict) else None

    def of(self, example, count=None):
        """The values of an example, or of a batch of `count` examples, by their names."""
        if self.list is not None:
            return self.by_list(example, count)
        found = {}
        leaves("", example, found, count)
        if self.map is not None:
            return self.by_map(found, example)
        if "" in found or isinstance(example, (tuple, list)) and not hasattr(example, "_fields"):
            count = 1 if "" in found else len(example)
            guess = ["image", "class", "third", "fourth"][:count] if count <= 4 else ["first", "second", "..."]
            raise Refused("an example is %s, which has no names: give them as keys: [%s]" % (
                describe(example), ", ".join(guess)))
        return found

    def by_list(self, example, count):
        if isinstance(example, (tuple, list)) and not hasattr(example, "_fields") and not (
                len(self.list) == 1 and is_numbers(example)):
            if len(example) != len(self.list):
                raise Refused("keys: an example has %d parts, %s, and %d names" % (
                    len(example), describe(example), len(self.list)))
            found = {}
            for name, value in zip(self.list, example):
                if name is None:
                    continue
                if type(value) in PLAIN or hasattr(value, "dtype"):
                    found[name] = value
                else:
                    leaves(name, value, found, count)
            return found
        parts = children(example)
        if parts is None:
            if len(self.list) != 1:
                raise Refused("keys: an example is one value, %s, and there are %d names" % (
                    describe(example), len(self.list)))
            return {self.list[0]: example}
        parts = dict(parts)
        found = {}
        for name in self.list:
            if name not in parts:
                raise Refused('keys: an example has no "%s"; it has: %s' % (name, ", ".join(parts)))
            leaves(name, parts[name], found, count)
        return found

    def by_map(self, found, example):
        named = {}
        for name, place in self.map.items():
            place = str(place)
            inside = {key: value for key, value in found.items() if key == place or key.startswith(place + "/")}
            if not inside:
                raise Refused('keys/%s: an example has no "%s"; it has: %s' % (
                    name, place, ", ".join(found) if "" not in found else describe(example)))
            for key, value in inside.items():
                named[name + key[len(place):]] = value
        return named


# --- Values side by side


def image_array(image):
    """An image as stepop reads images from files: float32 [C, H, W] in [-1, 1]."""
    if image.mode.startswith("I;16"):
        pixels = numpy.asarray(image).astype(numpy.float32)[:, :, None]
        return (pixels.transpose(2, 0, 1) - numpy.float32(32767.5)) * (numpy.float32(1) / numpy.float32(32767.5))
    elif image.mode in ("I", "F"):
        raise Refused("an image of mode %s has no range of values: make it an array or a tensor" % image.mode)
    else:
        if image.mode not in ("L", "RGB", "RGBA"):
            has_alpha = image.mode in ("LA", "PA", "La", "RGBa") or "transparency" in image.info
            image = image.convert("RGBA" if has_alpha else "L" if image.mode == "1" else "RGB")
        pixels = numpy.asarray(image).astype(numpy.float32)
        if pixels.ndim == 2:
            pixels = pixels[:, :, None]
    return (pixels.transpose(2, 0, 1) - numpy.float32(127.5)) * (numpy.float32(1) / numpy.float32(127.5))


def whole_array(value):
    made = numpy.asarray(value)
    if made.dtype == object:
        raise Refused("a list whose rows have different lengths cannot be one tensor")
    return made


def as_array(value):
    """A value as a numpy array, or a tensor of PyTorch, or a text."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        if value.layout != torch.strided or value.is_quantized:
            raise Refused("a %s tensor is not supported: make it dense" % value.layout)
        value = value.detach()
        if type(value) is not torch.Tensor:
            value = value.as_subclass(torch.Tensor)
        return value.cpu() if value.device.type != "cpu" else value
    if isinstance(value, numpy.ndarray):
        return value
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        raise Refused("a whole number does not fit into an int64")
    if isinstance(value, (bool, int, float, numpy.generic)):
        return numpy.asarray(value)
    if is_image(value):
        return image_array(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (list, tuple)):
        return whole_array(value)
    if value is None:
        raise Refused("None is neither a tensor nor a text: leave it out with keys, or give a number for it")
    if isinstance(value, bytes):
        raise Refused("bytes are neither a tensor nor a text: decode them, or numpy.frombuffer(value, numpy.uint8)")
    raise Refused("%s is neither a tensor, an array, an image, a number nor a text" % type(value).__name__)


def named_array(name, value, index):
    """The same, with the name and the example in the text of a refusal."""
    try:
        return as_array(value)
    except Refused as error:
        raise Refused('"%s": %s' % (name, error), index) from None


NUMPY_TYPES = {
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64",
    "complex64", "complex128", "uint16", "uint32", "uint64"}


def type_name(value):
    if isinstance(value, numpy.ndarray):
        if value.dtype.name not in NUMPY_TYPES:
            hint = ": decode it to str" if value.dtype.kind in "SU" else ""
            raise Refused("an array of %s cannot be a tensor%s" % (value.dtype, hint))
        return value.dtype.name
    name = str(value.dtype)[len("torch."):]
    if name not in SCALAR_TYPES:
        raise Refused("a tensor of %s is not supported: convert it" % name)
    return name


class Column:
    """The values of one key, of all examples of a batch."""

    def __init__(self, name, values, indices, is_batch=False):
        self.name = name
        first = values[0]
        kind = type(first)
        if kind is str:
            self.is_text = all(type(value) is str for value in values)
            if self.is_text:
                self.values = values
                return
        elif kind in (int, float, bool) and all(type(value) is kind for value in values):
            self.is_text = False
            try:
                self.values = numpy.array(values, dtype=NUMBER_TYPES[kind])
            except OverflowError:
                raise Refused('"%s": a whole number does not fit into an int64' % name) from None
            self.type, self.shape = self.values.dtype.name, list(self.values.shape)
            self.is_stacked = True
            return
        values = [named_array(name, value, index) for index, value in zip(indices, values)]
        first = values[0]
        self.values = values
        self.is_text = isinstance(first, str)
        self.is_stacked = is_batch
        for index, value in zip(indices, values):
            same = (isinstance(value, str) == self.is_text) and (
                self.is_text or isinstance(value, numpy.ndarray) == isinstance(first, numpy.ndarray) and value.shape == first.shape and value.dtype == first.dtype)
            if not same:
                raise Refused(
                    'cannot put examples %d and %d into one batch: "%s" is %s in the first and %s in the second; '
                    "the dataset may have a collate_fn, Padded may pad it, or a transform may give one size" % (
                        indices[0], index, name, describe(first), describe(value)))
        if self.is_text:
            return
        try:
            self.type = type_name(first)
        except Refused as error:
            raise Refused('"%s": %s' % (name, error), indices[0]) from None
        self.shape = list(first.shape) if is_batch else [len(values)] + list(first.shape)
        if is_batch:
            self.values = first

    def bytes(self):
        item = 2 if self.type == "bfloat16" else numpy.dtype(self.type).itemsize
        for length in self.shape:
            item *= length
        return item

    def write(self, memory, offset):
        count = 1
        for length in self.shape:
            count *= length
        if count == 0:
            return
        first = self.values if self.is_stacked else self.values[0]
        if isinstance(first, numpy.ndarray):
            target = numpy.frombuffer(memory, self.type, count, offset).reshape(self.shape)
            if self.is_stacked:
                target[...] = self.values
            else:
                stack_arrays(self.values, target)
        else:
            torch = sys.modules["torch"]
            target = torch.frombuffer(memory, dtype=first.dtype, count=count, offset=offset).view(self.shape)
            with torch.no_grad():
                if self.is_stacked:
                    target.copy_(self.values)
                else:
                    torch.stack(self.values, out=target)


def stack_arrays(values, target):
    """The same as numpy.stack, which looks at each array several times."""
    if target.ndim == 1:
        target[...] = values
    else:
        numpy.concatenate(values, out=target.reshape((-1,) + target.shape[2:]))


class QuickColumn(Column):
    """A column of values of one kind, or `is_quick` is false."""

    def __init__(self, name, values):
        self.is_quick = False
        self.is_text = self.is_stacked = False
        kinds = set(map(type, values))
        kind = kinds.pop()
        if kinds:
            return
        torch = sys.modules.get("torch")
        self.name, self.values = name, values
        if kind is numpy.ndarray:
            about = set(map(ABOUT_ARRAY, values))
            dtype, shape = about.pop()
            self.type = dtype.name
            self.is_quick = not about and self.type in NUMPY_TYPES
        elif torch is not None and kind is torch.Tensor:
            about = set(map(ABOUT_TENSOR, values))
            dtype, shape, layout, is_cpu, is_quantized = about.pop()
            self.type = str(dtype)[len("torch."):]
            self.is_quick = (not about and layout is torch.strided and is_cpu and not is_quantized
                             and self.type in SCALAR_TYPES)
        elif kind in NUMBER_TYPES:
            try:
                self.values = numpy.array(values, dtype=NUMBER_TYPES[kind])
            except OverflowError:
                return
            self.type, shape = self.values.dtype.name, ()
            self.is_quick = self.is_stacked = True
        if self.is_quick:
            self.shape = [len(values), *shape]


def columns_of(examples, indices):
    first = examples[0]
    for index, example in zip(indices, examples):
        if example.keys() != first.keys():
            raise Refused("cannot put examples %d and %d into one batch: the first has %s, the second %s" % (
                indices[0], index, ", ".join(first), ", ".join(example)))
    return [Column(name, [example[name] for example in examples], indices) for name in first]


def quick_columns(examples, names):
    """The columns of examples that are tuples or maps of tensors, arrays and numbers; else None.

    They are those that `columns_of` makes of any examples, in less time.
    """
    first = examples[0]
    if set(map(type, examples)) == {tuple}:
        if names.list is None or set(map(len, examples)) != {len(names.list)}:
            return None
        parts = zip(names.list, zip(*examples))
    elif type(first) is dict and names.list is None and names.map is None:
        if not all(type(example) is dict and example.keys() == first.keys() for example in examples):
            return None
        parts = [(name, [example[name] for example in examples]) for name in first]
    else:
        return None
    columns = {}
    for name, values in parts:
        if name is None:
            continue
        column = QuickColumn(name, values)
        if not column.is_quick or type(name) is not str or name in columns:
            return None
        columns[name] = column
    return list(columns.values())


ABOUT_ARRAY = operator.attrgetter("dtype", "shape")
ABOUT_TENSOR = operator.attrgetter("dtype", "shape", "layout", "is_cpu", "is_quantized")


def columns_of_batch(named, indices):
    """The columns of what a collate_fn returned: tensors [B, ...], and lists of B texts."""
    count = len(indices)
    columns = []
    for name, value in named.items():
        if is_texts(value, count):
            columns.append(Column(name, list(value), indices))
            continue
        column = Column(name, [value], indices[:1], is_batch=True)
        if column.is_text or not column.shape or column.shape[0] != count:
            raise Refused('"%s": collate_fn gave %s for %d examples; its first dimension must be %d' % (
                name, describe(value), count, count))
        columns.append(column)
    return columns


# --- Memory that stepop sees too


class Memory:
    """A file that stepop maps too. Python's `mmap` keeps the file open, and so many are not allowed."""

    def __init__(self, file, size):
        self.address = LIBC.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, file, 0)
        if self.address == ctypes.c_void_p(-1).value:
            raise OSError(ctypes.get_errno(), "cannot map the memory of a batch of %d bytes" % size)
        self.size = size
        self.bytes = (ctypes.c_char * size).from_address(self.address)

    def __del__(self):
        if getattr(self, "bytes", None) is not None:
            LIBC.munmap(self.address, self.size)


LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


class Buffers:
    """Blocks of shared memory. A batch has a block for as long as stepop uses its tensors."""

    def __init__(self):
        self.blocks = {}
        self.free = []
        self.next = 0

    def release(self, numbers):
        self.free += [number for number in numbers if number in self.blocks]

    def take(self, size):
        """(number, memory, file or None, the numbers of blocks that are no more)"""
        dropped = []
        for number in self.free:
            if self.blocks[number].size >= size:
                self.free.remove(number)
                return number, self.blocks[number], None, dropped
        for number in self.free:  # too small: a larger one takes its place
            del self.blocks[number]
            dropped.append(number)
        self.free = []
        size = max(4096, (size * 9 // 8 + 4095) // 4096 * 4096)
        file = os.memfd_create("stepop batch", os.MFD_CLOEXEC)
        try:
            os.posix_fallocate(file, 0, size)
            memory = Memory(file, size)
        except BaseException:
            os.close(file)
            raise
        number = self.next
        self.next += 1
        self.blocks[number] = memory
        return number, memory, file, dropped


# --- The worker


def seed_all(seed):
    random.seed(seed)
    numpy.random.seed(seed & 0xFFFFFFFF)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.default_generator.manual_seed(seed)


class Watched:
    """Notes when a dataset looks at the state of a generator: it may draw numbers and put it back."""

    FUNCTIONS = (("random", "getstate"), ("numpy.random", "get_state"), ("torch", "initial_seed"),
                 ("torch", "get_rng_state"), ("torch", "seed"), ("torch.random", "initial_seed"),
                 ("torch.random", "get_rng_state"), ("torch.random", "seed"))

    def __init__(self):
        self.is_used = False
        self.originals = {}  # by the module's and the function's name
        self.changed = {}  # from a function's id to what notes its calls

    def watch(self):
        """Replaces the functions in their modules, and in the user's own files."""
        for place in self.FUNCTIONS:
            module = sys.modules.get(place[0])
            if module is None or place in self.originals:
                continue
            self.originals[place] = original = getattr(module, place[1])
            self.changed[id(original)] = self.noted(original)
            setattr(module, place[1], self.changed[id(original)])
        for module in list(sys.modules.values()):
            path = getattr(module, "__file__", None) or ""
            if not path.startswith(tuple(FOLDERS)) or "-packages" in path:
                continue
            for name, value in list(vars(module).items()):
                if id(value) in self.changed:
                    setattr(module, name, self.changed[id(value)])

    def noted(self, original):
        def call(*args, **kwargs):
            self.is_used = True
            return original(*args, **kwargs)
        return call


WATCHED = Watched()
PYTHON_STATE = random.getstate
NUMPY_STATE = numpy.random.get_state


def states():
    """The states of the three generators, for a comparison."""
    torch = sys.modules.get("torch")
    return (PYTHON_STATE(), numpy_state(),
            torch.default_generator.get_state().numpy().tobytes() if torch is not None else None)


def numpy_state():
    """The state of numpy.random. NumPy's own function takes longer than many an example."""
    generator = numpy.random.mtrand._rand._bit_generator
    if type(generator) is numpy.random.MT19937:
        # A saved half of a pair of normal numbers is drawn after the whole pair, which changes the state.
        return ctypes.string_at(generator.ctypes.state_address, 625 * 4)
    numbers = NUMPY_STATE(legacy=False)
    return repr(numbers["state"]), numbers["has_gauss"]


def differing(first, second):
    """The names whose values differ between two readings of an example."""
    if first.keys() != second.keys():
        return sorted(first.keys() ^ second.keys())
    names = []
    for name in first:
        a, b = as_array(first[name]), as_array(second[name])
        if isinstance(a, str) or isinstance(b, str):
            same = a == b
        else:
            a, b = (value if isinstance(value, numpy.ndarray) else value.contiguous().view(-1).view(
                sys.modules["torch"].uint8).numpy() for value in (a, b))
            same = a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()
        if not same:
            names.append(name)
    return names


class Reader:
    """Reads examples, each with its own random numbers."""

    def __init__(self, dataset, setup, collate, status, is_first):
        self.dataset = dataset
        self.names = Names(setup["keys"])
        self.collate = collate
        self.status = status
        self.is_first = is_first
        self.is_new = True
        self.count = 0
        # Whether the generators are seeded before each example. As long as no example took a random
        # number, any seed gives the same, and `untouched` has the states that nobody changed.
        self.is_random = False
        self.untouched = None

    def get(self, index):
        self.count += 1
        self.status[0], self.status[1] = index, self.count
        return self.dataset[index]

    def named(self, example, index):
        try:
            return self.names.of(example)
        except Refused as error:
            error.index = index
            raise

    def read(self, indices, seeds):
        """The columns of a batch."""
        examples = []
        if self.is_new:
            self.is_new = False
            examples = self.try_first(indices[0], seeds[0])
        if not self.is_random:
            examples = self.read_unseeded(indices, seeds) or []
            self.is_random = not examples
        for index, seed in zip(indices[len(examples):], seeds[len(examples):]):
            seed_all(seed)
            examples.append(self.get(index))
        self.count += 1
        self.status[1] = self.count
        if self.collate is None:
            quick = quick_columns(examples, self.names)
            if quick is not None:
                return quick
            return columns_of([self.named(example, index) for example, index in zip(examples, indices)], indices)
        self.untouched = None
        seed_all(seeds[0] ^ 0x5DEECE66D)
        return columns_of_batch(self.names.of(self.collate(examples), len(indices)), indices)

    def read_unseeded(self, indices, seeds):
        """The examples, or None when one of them took or looked at a random number, or failed."""
        if self.untouched is None:
            seed_all(seeds[0])
            self.untouched = states()
        WATCHED.is_used = False
        try:
            examples = [self.get(index) for index in indices]
        except Exception:
            return None  # with the seeds of its own it may be another example
        return None if WATCHED.is_used or states() != self.untouched else examples

    def timed(self, index, seed):
        seed_all(seed)
        begin = time.perf_counter()
        example = self.get(index)
        return example, time.perf_counter() - begin

    def try_first(self, index, seed):
        """Reads the first example by itself: is it slow, and is it the same when it is read twice?

        Returns a list of the example if it is slow, so that it is not read again.
        """
        example, seconds = self.timed(index, seed)
        is_compared = self.is_first and self.collate is None
        if is_compared:
            first = {name: named_array(name, value, index) for name, value in self.named(example, index).items()}
            first = {name: value if isinstance(value, str) else value.copy() if isinstance(value, numpy.ndarray)
                     else value.clone() for name, value in first.items()}
        if is_compared or QUICK_EXAMPLE < seconds < COLD_EXAMPLE:
            example, seconds = self.timed(index, seed)
        if seconds > QUICK_EXAMPLE:
            self.is_random = True  # seeds cost nothing beside it
        if not is_compared:
            return [example] if self.is_random else []
        names = differing(first, self.named(example, index))
        if names:
            print("example %d was read twice with the same seeds and differs in %s: its random numbers do not come "
                  "from random, numpy.random or torch. Resumes and other numbers of workers give other examples. "
                  "Seed its generator in __getitem__, such as numpy.random.default_rng(numpy.random.randint(2**31))."
                  % (index, ", ".join(names)), file=sys.stderr, flush=True)
        return [example] if self.is_random else []


def memory_in_use():
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * mmap.PAGESIZE


class Growth:
    """Says once that the process takes much more memory than at its beginning."""

    def __init__(self):
        self.batches = 0
        self.at_first = None

    def count(self):
        self.batches += 1
        if self.batches % MEMORY_CHECKED_EVERY != 0:
            return
        now = memory_in_use()
        if self.at_first is None:
            self.at_first = now
        elif now > 2 * self.at_first + MUCH_MEMORY and self.at_first > 0:
            print("process %d grew from %.1f to %.1f GB in %d batches: does the dataset keep what it has read?" % (
                os.getpid(), self.at_first / 1e9, now / 1e9, self.batches), file=sys.stderr, flush=True)
            self.at_first = 1 << 62


def error_message(error, index):
    text = text_of(error)
    return b"X" + struct.pack("<q", index) + text.encode("utf-8", "replace")


class Worker:
    def __init__(self, connection, dataset, setup, collate, status, is_first):
        self.connection = connection
        self.status = status
        self.reader = Reader(dataset, setup, collate, status, is_first)
        self.has_collate = collate is not None
        self.buffers = Buffers()
        self.parts = None
        self.growth = Growth()

    def serve(self):
        while True:
            message = receive_message(self.connection)
            if message is None:
                return
            count, released = struct.unpack_from("<II", message, 0)
            indices = struct.unpack_from("<%dq" % count, message, 8)
            seeds = struct.unpack_from("<%dQ" % count, message, 8 + 8 * count)
            self.buffers.release(struct.unpack_from("<%dI" % released, message, 8 + 16 * count))
            try:
                self.send(self.reader.read(indices, seeds))
            except Exception as error:
                # What is no Refused happened in the example that was read last.
                last = self.status[0]
                index = error.index if isinstance(error, Refused) and len(indices) > 1 else last
                send_message(self.connection, error_message(error, index))
            self.growth.count()

    def send(self, columns):
        tensors, texts, size = [], [], 0
        for column in columns:
            if column.is_text:
                texts.append(column)
                continue
            tensors.append((column, size))
            size += aligned(column.bytes())
        number, memory, file, dropped = self.buffers.take(size)
        for column, offset in tensors:
            column.write(memory.bytes, offset)
        parts = [(column.name, column.type, column.shape, offset) for column, offset in tensors]
        parts += [column.name for column in texts]
        is_known = parts == self.parts
        layout = b"" if is_known else json.dumps({
            "tensors": parts[:len(tensors)], "texts": parts[len(tensors):]}).encode()
        self.parts = parts
        answer = [b"B", struct.pack("<IQI%dII" % len(dropped), number, memory.size, len(dropped), *dropped,
                                   len(layout)), layout]
        for column in texts:
            for text in column.values:
                encoded = text.encode("utf-8", "replace")
                answer += (struct.pack("<I", len(encoded)), encoded)
        send_message(self.connection, b"".join(answer), () if file is None else (file,))
        if file is not None:
            os.close(file)


# --- The worker of an iterable dataset

CHUNK = 32  # examples at most in an answer
CHUNK_SECONDS = 0.05
CHUNK_BYTES = 64 << 20
SCALAR_TYPES = {  # c10::ScalarType
    "uint8": 0, "int8": 1, "int16": 2, "int32": 3, "int64": 4, "float16": 5, "float32": 6, "float64": 7,
    "complex64": 9, "complex128": 10, "bool": 11, "bfloat16": 15, "uint16": 27, "uint32": 28, "uint64": 29}


def aligned(size):
    return (size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


def example_bytes(named, number):
    """An example in the layout of `example_bytes.h`."""
    columns = [Column(name, [value], [number]) for name, value in named.items()]
    tensors = [column for column in columns if not column.is_text]
    texts = [(column.name.encode(), column.values[0].encode("utf-8", "replace")) for column in columns if column.is_text]
    head = 8 + sum(24 - 4 + len(column.name.encode()) + 8 * (len(column.shape) - 1) for column in tensors)
    head += sum(12 + len(name) + len(text) for name, text in texts)
    parts = [struct.pack("<II", len(tensors), len(texts))]
    end = head
    for column in tensors:
        name, shape = column.name.encode(), column.shape[1:]
        parts.append(struct.pack("<I%dsII%dqQ" % (len(name), len(shape)), len(name), name, SCALAR_TYPES[column.type],
                                 len(shape), *shape, aligned(end)))
        column.offset = aligned(end)
        end = column.offset + column.bytes()
    for name, text in texts:
        parts.append(struct.pack("<I%dsQ" % len(name), len(name), name, len(text)) + text)
    memory = bytearray(end)
    memory[:head] = b"".join(parts)
    for column in tensors:
        column.write(memory, column.offset)
    return memory


class StreamWorker:
    """Serves the examples of an iterable dataset in their order, with its state before each answer."""

    def __init__(self, connection, dataset, setup, status):
        self.connection = connection
        self.dataset = dataset
        self.names = Names(setup["keys"])
        self.status = status
        self.has_state = setup["resume"] != "skip"
        self.growth = Growth()

    def begin(self, request):
        """Begins a pass, or returns to a place in it."""
        self.seed = request["seed"]
        self.number = 0
        place = request.get("place")
        if hasattr(self.dataset, "set_epoch"):
            self.dataset.set_epoch(request["pass"])
        if place and self.has_state:
            if place["state"] is None:
                raise Refused("the checkpoint has no state of the dataset: it was written with resume: skip")
            self.dataset.load_state_dict(place["state"])
            self.number = place["number"]
        seed_all(self.seed)
        self.iterator = iter(self.dataset)
        for _ in range(place["after"] if place and self.has_state else place["number"] + place["after"] if place else 0):
            if self.next() is None:
                raise Refused("the dataset has changed: it ends after %d examples, and more were read before" % self.number)

    def next(self):
        """The next example in a list, or None."""
        self.status[0] = self.number
        seed_all((self.seed + (self.number + 1) * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF)
        try:
            example = next(self.iterator)
        except StopIteration:
            return None
        self.number += 1
        return [example]

    def state(self):
        if not self.has_state:
            return b"null"
        state = self.dataset.state_dict()
        try:
            text = json.dumps(state)
            if json.loads(text) == state:
                return text.encode()
        except (TypeError, ValueError):
            pass
        raise Refused("the state of the dataset is not made of numbers, texts, lists and maps with texts as keys alone, "
                      "so it cannot be in a checkpoint; resume: skip reads all examples again instead: %r" % (state,))

    def chunk(self):
        number, state = self.number, self.state()
        records, is_end = [], False
        until = time.monotonic() + CHUNK_SECONDS
        size = 0
        while len(records) < CHUNK and size < CHUNK_BYTES and not (records and time.monotonic() > until):
            example = self.next()
            if example is None:
                is_end = True
                break
            records.append(example_bytes(self.names.of(example[0]), self.number - 1))
            size += len(records[-1])
        parts = [b"R", struct.pack("<qI", number, len(state)), state, struct.pack("<II", is_end, len(records))]
        for record in records:
            parts += (struct.pack("<I", len(record)), record)
        return b"".join(parts)

    def serve(self):
        while True:
            message = receive_message(self.connection)
            if message is None:
                return
            try:
                request = json.loads(message)
                if "pass" in request:
                    self.begin(request)
                answer = self.chunk()
            except Exception as error:
                answer = error_message(error, self.status[0])
            self.status[1] += 1
            send_message(self.connection, answer)
            self.growth.count()


# --- The process that forks the workers


def end_with_parent(libc, parent):
    libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(1)


def watch(connection, over):
    """Ends this process when stepop ends while the dataset is built; a byte in the pipe `over` ends the watch."""
    poll = select.poll()
    poll.register(connection, 0)
    poll.register(over, select.POLLIN)
    if poll.poll()[0][0] != over:
        os._exit(1)


def keep_freed_memory(libc):
    """The examples of a batch are freed at once; glibc would return their memory and ask for it again."""
    if hasattr(libc, "mallopt"):
        libc.mallopt(-3, 32 << 20)  # M_MMAP_THRESHOLD
        libc.mallopt(-1, 256 << 20)  # M_TRIM_THRESHOLD


def run_worker(connection, status_file, dataset, setup, collate, is_first, libc, parent):
    end_with_parent(libc, parent)
    keep_freed_memory(libc)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    status = memoryview(mmap.mmap(status_file, 4096)).cast("q")
    os.close(status_file)
    if is_iterable(dataset):
        StreamWorker(connection, dataset, setup, status).serve()
    else:
        Worker(connection, dataset, setup, collate, status, is_first).serve()


class Children:
    """The workers that were forked, and the statuses of those that have ended."""

    def __init__(self):
        self.running = set()
        self.ended = {}

    def collect(self):
        for pid in list(self.running):
            try:
                ended, status = os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:  # the dataset's own code has waited for all
                ended, status = pid, -1
            if ended == pid:
                self.running.remove(pid)
                self.ended[pid] = status

    def status(self, pid):
        """The status of a worker that ends now, or -1 when it does not."""
        for _ in range(100):
            self.collect()
            if pid not in self.running:
                break
            time.sleep(0.01)
        return self.ended.get(pid, -1)


def serve(control, dataset, setup, collate):
    libc = ctypes.CDLL(None)
    parent = os.getpid()
    children = Children()
    is_first = True
    while True:
        # The programs that a dataset starts do not get the sockets.
        message, files, _, _ = socket.recv_fds(control, 1, 2, socket.MSG_CMSG_CLOEXEC)
        if not message:
            return
        if message == b"E":
            pid = struct.unpack("<i", receive(control, 4))[0]
            control.sendall(struct.pack("<i", children.status(pid)))
            continue
        children.collect()
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pid = os.fork()
        if pid == 0:
            code = 1
            try:
                control.close()
                run_worker(socket.socket(fileno=files[0]), files[1], dataset, setup, collate, is_first, libc, parent)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        is_first = False
        children.running.add(pid)
        for file in files:
            os.close(file)
        control.sendall(struct.pack("<i", pid))


def main():
    control = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.stdout.reconfigure(line_buffering=True)
    faulthandler.enable()
    setup = json.loads(receive_message(control))
    over = os.pipe()
    watcher = threading.Thread(target=watch, args=(control, over[0]), daemon=True)
    watcher.start()
    dataset = collate = None
    try:
        os.chdir(setup["folder"])
        add_to_path(os.getcwd())
        dataset = build(setup)
        answer = about(dataset, setup)
        if setup["collate_fn"]:
            collate = find_object(setup["collate_fn"], "collate_fn")
        else:
            collate = getattr(dataset, "collate_fn", None)
        if collate is not None and not callable(collate):
            raise Refused("collate_fn: expected a function, found %s" % type(collate).__name__)
        WATCHED.watch()
    except Exception as error:
        answer = {"error": text_of(error)}
    except SystemExit as error:
        answer = {"error": "the dataset ended Python: SystemExit: %s" % error}
    os.write(over[1], b"1")
    watcher.join()
    send_message(control, json.dumps(answer).encode())
    if "error" not in answer:
        serve(control, dataset, setup, collate)
    sys.stdout.flush()
    os._exit(0)


main()
