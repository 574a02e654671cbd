# The worker of an iterable dataset. A part of one script, which begins in messages.py.


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
    for column in columns:
        column.encoded = name_bytes(column.name)
    tensors = [column for column in columns if not column.is_text]
    texts = [(column.encoded, column.values[0].encode("utf-8", "replace")) for column in columns if column.is_text]
    head = 8 + sum(24 - 4 + len(column.encoded) + 8 * (len(column.shape) - 1) for column in tensors)
    head += sum(12 + len(name) + len(text) for name, text in texts)
    parts = [struct.pack("<II", len(tensors), len(texts))]
    end = head
    for column in tensors:
        name, shape = column.encoded, column.shape[1:]
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
    """Serves the examples of an iterable dataset in their order, with its state before each answer.

    The state is asked for only when `__iter__` has begun to run: before its first example many a dataset is still at the
    end of the pass before, or has no state. So the first state stands after the first example."""

    def __init__(self, connection, dataset, setup, status):
        self.connection = connection
        self.dataset = dataset
        self.names = Names(setup["keys"])
        self.status = status
        self.has_state = setup["resume"] != "skip"
        self.growth = Growth()
        self.copies = Copies()

    def begin(self, request):
        """Begins a pass, or returns to a place in it."""
        self.seed = request["seed"]
        self.number = 0
        self.is_running = False  # whether the iterator has given an example
        place = request.get("place")
        if hasattr(self.dataset, "set_epoch"):
            self.dataset.set_epoch(request["pass"])
        count = place["number"] + place["after"] if place else 0
        if place and self.has_state and place["state"] is not None:
            self.dataset.load_state_dict(place["state"])
            self.number = place["number"]
        elif self.has_state and place and place["number"] > 0:
            raise Refused("the checkpoint has no state of the dataset: it was written with resume: skip")
        seed_all(self.seed)
        self.iterator = iter(self.dataset)
        while self.number < count:
            if self.next() is not None:
                continue
            if self.number == 0 and place["state"] is not None:
                # An earlier version has taken the state of the pass before for that of the beginning.
                place["state"] = None
                self.iterator = iter(self.dataset)
                continue
            raise Refused("the dataset has changed, or its load_state_dict goes elsewhere than state_dict said: it ends "
                          "after %d examples, and %d were read before; `-c` resumes from an earlier checkpoint" % (
                              self.number, count))

    def next(self):
        """The next example in a list, or None."""
        self.status[0] = self.number
        seed_all((self.seed + (self.number + 1) * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF)
        try:
            example = next(self.iterator)
        except StopIteration:
            return None
        finally:
            if os.getpid() != self.copies.pid:
                self.copies.end("example %d" % self.number)
        self.is_running = True
        self.number += 1
        return [example]

    def state(self):
        if not self.has_state:
            return b"null"
        state = self.dataset.state_dict()
        self.copies.end("state_dict")
        try:
            text = json.dumps(state, ensure_ascii=False, allow_nan=False)
            if json.loads(text) == state:
                return text.encode()
        except (TypeError, ValueError):
            pass
        raise Refused("the state of the dataset is not made of numbers, texts, lists and maps with texts as keys alone, "
                      "so it cannot be in a checkpoint; resume: skip reads all examples again instead: %s"
                      % shortened(repr(state), MOST_SAID))

    def chunk(self):
        is_early = self.has_state and not self.is_running
        number, state = self.number, b"null" if is_early else self.state()
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
            if is_early and len(records) == 1:
                number, state = self.number, self.state()
        parts = [b"R", struct.pack("<qII", number, is_early, len(state)), state, struct.pack("<II", is_end, len(records))]
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
            self.copies.end("the dataset")
            self.status[1] += 1
            send_message(self.connection, answer)
            self.growth.count()
