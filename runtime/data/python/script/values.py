# Values side by side in shared memory. A part of one script, which begins in messages.py.


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
            if image.mode == "La":  # Pillow converts it to LA alone
                image = image.convert("LA")
            has_alpha = image.mode in ("LA", "PA", "RGBa") or image.mode == "P" and "transparency" in image.info
            image = image.convert("RGBA" if has_alpha else "L" if image.mode == "1" else "RGB")
        pixels = numpy.asarray(image).astype(numpy.float32)
        if pixels.ndim == 2:
            pixels = pixels[:, :, None]
    return (pixels.transpose(2, 0, 1) - numpy.float32(127.5)) * (numpy.float32(1) / numpy.float32(127.5))


def whole_array(value):
    """A list of numbers as an array."""
    try:
        made = numpy.asarray(value)
    except ValueError:
        made = None
    # NumPy before 1.24 makes an array of rows that differ.
    if made is None or made.dtype == object and any(isinstance(each, (list, tuple)) for each in made.flat):
        raise Refused("a list whose rows have different lengths cannot be one tensor")
    if made.dtype == object:
        raise Refused("a whole number does not fit into an int64")
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


def of_one_kind(values):
    """Arrays and tensors as arrays, where some are of NumPy and others of PyTorch."""
    if len({isinstance(value, numpy.ndarray) for value in values}) < 2:
        return values
    return [value.resolve_conj().resolve_neg().numpy()
            if not isinstance(value, (numpy.ndarray, str)) and str(value.dtype)[len("torch."):] in NUMPY_TYPES else value
            for value in values]


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
        values = of_one_kind([named_array(name, value, index) for index, value in zip(indices, values)])
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


def name_bytes(name):
    """A key in UTF-8, in which a connection has it."""
    try:
        return name.encode()
    except UnicodeEncodeError:
        raise Refused('"%s": the name of a value is not valid Unicode: give it another one by keys' % (
            name.encode("ascii", "backslashreplace").decode())) from None


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
