# A worker of a dataset with __getitem__: each example with its own random numbers. A part of one script, which begins in messages.py.


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
        self.copies = Copies()
        # Whether the generators are seeded before each example. As long as no example took a random
        # number, any seed gives the same, and `untouched` has the states that nobody changed.
        self.is_random = False
        self.untouched = None

    def get(self, index):
        self.count += 1
        self.status[0], self.status[1] = index, self.count
        try:
            return self.dataset[index]
        finally:
            if os.getpid() != self.copies.pid:
                self.copies.end("example %d" % index)

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
                columns = self.reader.read(indices, seeds)
                self.reader.copies.end("collate_fn")
                self.send(columns)
            except Exception as error:
                self.reader.copies.end("collate_fn")
                # Other errors than Refused come from the example that was read last.
                last = self.status[0]
                index = error.index if isinstance(error, Refused) and len(indices) > 1 else last
                send_message(self.connection, error_message(error, index))
            self.growth.count()

    def send(self, columns):
        tensors, texts, size = [], [], 0
        for column in columns:
            name_bytes(column.name)
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
