# Builds the dataset that the config names. A part of one script, which begins in messages.py.


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
    """`my_data.py:Train`, `torchvision.datasets:MNIST` or `torchvision.datasets.MNIST`, as stepop/objects.py of the
    package reads it, which the user's Python may lack."""
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


def listed_names(classes):
    """The names in the order of their numbers, of a list, an array, {name: number} or {number: name}; else None."""
    if isinstance(classes, dict):
        numbers = list(range(len(classes)))
        if all(number in classes for number in numbers):
            return [classes[number] for number in numbers]
        values = list(classes.values())
        if any(type(value) is not int for value in values) or sorted(values) != numbers:
            return None
        return sorted(classes, key=classes.get)
    if hasattr(classes, "tolist"):
        classes = classes.tolist()
    return list(classes) if isinstance(classes, (list, tuple)) else None


def classes_of(dataset, keys):
    """The names of classes by the keys of an example: those of a ClassLabel of Hugging Face's datasets, or `classes`
    of a dataset like torchvision's, whose examples are an input and a class; of several that are one after the other,
    as in a ConcatDataset, where all have the same ones."""
    for _ in range(10):
        if hasattr(dataset, "features") or hasattr(dataset, "classes") or not hasattr(dataset, "dataset"):
            break
        dataset = dataset.dataset  # such as a Subset's
    features, names = getattr(dataset, "features", None), listed_names(getattr(dataset, "classes", None))
    parts = getattr(dataset, "datasets", None)
    if features is None and names is None and isinstance(parts, (list, tuple)) and parts:
        found = [classes_of(part, keys) for part in parts]
        return found[0] if all(one == found[0] for one in found) else {}
    own = {}
    if isinstance(features, dict):
        for key, feature in features.items():
            names_here = getattr(getattr(feature, "feature", feature), "names", None)
            if isinstance(names_here, (list, tuple)):
                own[key] = names_here
        if isinstance(keys, dict):
            own = {key: own[place] for key, place in keys.items() if place in own}
        elif keys is not None:
            own = {key: own[key] for key in keys if key in own}
    elif names is not None and isinstance(keys, list) and len(keys) == 2 and keys[1]:
        own = {keys[1]: names}
    return {key: list(names) for key, names in own.items()
            if names and all(isinstance(name, str) for name in names) and len(set(names)) == len(names)}


def about(dataset, setup):
    kind = type(dataset).__name__
    versions = ["Python %d.%d.%d" % sys.version_info[:3]]
    for name in ("torch", "torchvision", "datasets"):
        version = getattr(sys.modules.get(name), "__version__", None)
        if version:
            versions.append("%s %s" % (name, version))
    facts = {"kind": kind, "versions": ", ".join(versions), "iterable": is_iterable(dataset),
             "classes": classes_of(dataset, setup["keys"])}
    if facts["iterable"]:
        if hasattr(dataset, "__next__"):
            raise Refused("object: a %s can be read only once: give an object whose __iter__ begins anew" % kind)
        if setup["collate_fn"]:
            raise Refused("collate_fn: a %s is iterable, and its examples are put into batches by the training; change "
                          "them in __iter__, or pad them by Padded" % kind)
        if getattr(dataset, "collate_fn", None) is not None:
            print("the collate_fn of an iterable dataset is not used: its examples are put into batches by the training",
                  file=sys.stderr, flush=True)
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
