# Names for the parts of an example. A part of one script, which begins in messages.py.


# --- Names for what an example consists of


NUMBERS = (bool, int, float, numpy.number, numpy.bool_)


def describe(value, depth=0):
    """What a value is, in a few words: `float32 [3, 32, 32]`."""
    if depth > 4:
        return "..."
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return "%s %s" % (str(value.dtype).replace("torch.", ""), list(value.shape))
    if isinstance(value, dict):
        return "{%s}" % ", ".join("%s: %s" % (key, describe(each, depth + 1)) for key, each in list(value.items())[:8])
    if isinstance(value, (tuple, list)):
        try:
            if is_numbers(value):
                return "%s of %d numbers" % (type(value).__name__, len(value))
        except TooDeep:
            return "%s in itself" % type(value).__name__
        inside = ", ".join(describe(each, depth + 1) for each in value[:8])
        return ("(%s)" if isinstance(value, tuple) else "[%s]") % inside
    if is_image(value):
        return "image %s %d x %d" % (value.mode, value.width, value.height)
    return type(value).__name__


def is_image(value):
    image = sys.modules.get("PIL.Image")
    return image is not None and isinstance(value, image.Image)


class TooDeep(Refused):
    """Values in values have no end, or are deeper than any array."""

    def __init__(self, place="an example"):
        super().__init__("%s: values are nested more than %d deep: does a list or a map hold itself?" % (place, MOST_DEPTH))


def is_numbers(value, depth=0):
    """Whether a list or tuple holds numbers alone, in any nesting: it is an array then."""
    if depth > MOST_DEPTH:
        raise TooDeep
    if len(value) == 0:
        return isinstance(value, list)
    kinds = set(map(type, value))
    if all(issubclass(kind, NUMBERS) for kind in kinds):
        return True
    return (all(issubclass(kind, (list, tuple)) for kind in kinds)
            and all(is_numbers(each, depth + 1) for each in value))


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


def leaves(name, value, found, count=None, depth=0):
    """Adds the values inside of `value` to `found`; `count` is the number of examples of a batch."""
    try:
        if depth > MOST_DEPTH:
            raise TooDeep
        parts = None if count and is_texts(value, count) else children(value)
    except TooDeep:
        key = "/".join(name.split("/")[:4])
        raise TooDeep('"%s%s"' % (key, "" if key == name else "/...") if name else "an example") from None
    if parts is None:
        if name in found:
            raise Refused('two values have the name "%s"' % name)
        found[name] = value
        return
    for part, each in parts:
        leaves(name + "/" + part if name else part, each, found, count, depth + 1)


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
