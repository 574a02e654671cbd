# The process that builds the dataset and forks the workers. A part of one script, which begins in messages.py.


# --- The process that forks the workers

WORKERS_END_SECONDS = 1.5  # of those that have nothing more to do


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
    processes = sys.modules.get("multiprocessing.process")
    if processes is not None:
        processes._children = set()  # they are not this process's, but its parent's
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
    end_multiprocessing()


def end_multiprocessing():
    """Ends the processes of the dataset's multiprocessing, which would leave their semaphores behind: this process ends
    by os._exit, which skips that."""
    util = sys.modules.get("multiprocessing.util")
    try:
        if util is not None:
            util._exit_function()
    except Exception:
        traceback.print_exc()


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

    def wait(self):
        """Waits for workers that end now."""
        until = time.monotonic() + WORKERS_END_SECONDS
        while time.monotonic() < until:
            self.collect()
            if not self.running:
                break
            time.sleep(0.002)


def serve(control, dataset, setup, collate):
    libc = ctypes.CDLL(None)
    parent = os.getpid()
    children = Children()
    is_first = True
    while True:
        # The programs that a dataset starts do not get the sockets.
        message, files, _, _ = socket.recv_fds(control, 1, 2, socket.MSG_CMSG_CLOEXEC)
        if not message:
            children.wait()
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
    copies = Copies()
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
        answer = {"error": "the dataset ended Python: SystemExit: %s" % said_by(error)}
    copies.end("the making of the dataset")
    os.write(over[1], b"1")
    watcher.join()
    # Names of files that are not UTF-8 have characters that stand alone for a byte, which JSON's readers refuse.
    send_message(control, json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace"))
    if "error" not in answer:
        serve(control, dataset, setup, collate)
    end_multiprocessing()
    sys.stdout.flush()
    os._exit(0)


main()
