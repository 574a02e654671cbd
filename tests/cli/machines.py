#!/usr/bin/env python3
"""Runs one command on several machines that this machine makes up.

    machines.py [--delay MS] [--loss SHARE] [--cut FILE] [--machines N] COMMAND

Each machine has a network of its own (Linux's network namespaces) with the address 10.9.0.<rank + 1>,
and the name node<rank>; the folder is the same. Their packets go through this program, which
delivers each after MS milliseconds, loses some, and loses all while FILE exists. COMMAND, a line of
bash, finds torchrun's variables: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT. What it prints lies in
the files out.<rank> and err.<rank>.

Ends with the largest of the commands' exit statuses; prints each with the seconds that it took. Ends
with 77 where this is not allowed: it takes root, or CAP_NET_ADMIN and CAP_SYS_ADMIN.
"""
import argparse
import ctypes
import fcntl
import heapq
import os
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import time

NEW_NETWORK, NEW_NAMES = 0x40000000, 0x04000000  # CLONE_NEWNET, CLONE_NEWUTS
SET_INTERFACE, TUN, NO_HEADER = 0x400454CA, 0x0001, 0x1000  # TUNSETIFF, IFF_TUN, IFF_NO_PI
END_WITH_PARENT = 1  # PR_SET_PDEATHSIG
PORT = 29500
NOT_ALLOWED = 77


def address(rank):
    return f"10.9.0.{rank + 1}"


def open_interface(rank):
    """In a network of its own: the packets that this process, and its children, send."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(NEW_NETWORK | NEW_NAMES) != 0:
        raise PermissionError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    socket.sethostname(f"node{rank}")
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, SET_INTERFACE, struct.pack("16sH", b"eth0", TUN | NO_HEADER))
    for words in ("link set lo up", f"addr add {address(rank)}/24 dev eth0", "link set eth0 up"):
        subprocess.run(["ip", *words.split()], check=True)
    return tun


def start(rank, options, ours):
    """Returns the process of a machine, whose packets arrive at the other end of `ours`."""
    theirs, ours[rank] = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    process = os.fork()
    if process:
        theirs.close()
        return process
    try:
        ctypes.CDLL(None).prctl(END_WITH_PARENT, signal.SIGKILL)
        tun = open_interface(rank)
        socket.send_fds(theirs, [b"x"], [tun])
        os.close(tun)
        theirs.recv(1)  # all are there
        for number, name in ((1, f"out.{rank}"), (2, f"err.{rank}")):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), number)
        variables = {
            "RANK": rank, "WORLD_SIZE": options.machines, "LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": 1,
            "MASTER_ADDR": address(0), "MASTER_PORT": PORT,
        }
        os.environ.update({key: str(value) for key, value in variables.items()})
        os.execvp("bash", ["bash", "-c", options.command])
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"machines.py: {error}", file=sys.stderr)
        os._exit(NOT_ALLOWED)


class Wire:
    """Delivers packets."""

    def __init__(self, tuns, options):
        self.tuns = tuns
        self.rank_at = {socket.inet_aton(address(rank)): rank for rank in range(len(tuns))}
        self.options = options
        self.on_the_way = []  # (when it is due, its number, where to, the packet)
        self.sent = 0
        self.random = random.Random(1)
        self.poll = select.poll()
        for tun in tuns:
            self.poll.register(tun, select.POLLIN)

    def take(self, tun):
        try:
            packet = os.read(tun, 65536)
        except BlockingIOError:
            return
        to = self.rank_at.get(packet[16:20]) if packet[0] >> 4 == 4 else None
        if to is None or self.random.random() < self.options.loss:
            return
        self.sent += 1
        due = time.monotonic() + self.options.delay / 1000
        heapq.heappush(self.on_the_way, (due, self.sent, to, packet))

    def go_on(self, seconds):
        """Works for so long."""
        until = time.monotonic() + seconds
        while (now := time.monotonic()) < until:
            is_cut = self.options.cut is not None and os.path.exists(self.options.cut)
            while self.on_the_way and self.on_the_way[0][0] <= now:
                _, _, to, packet = heapq.heappop(self.on_the_way)
                if is_cut:
                    continue
                try:
                    os.write(self.tuns[to], packet)
                except OSError:  # it is full, or its machine is over: lost as well
                    pass
            next_due = self.on_the_way[0][0] if self.on_the_way else until
            for tun, _ in self.poll.poll(max(0, min(next_due, until) - now) * 1000):
                self.take(tun)


def run(options):
    ours = {}
    processes = [start(rank, options, ours) for rank in range(options.machines)]
    tuns = [socket.recv_fds(ours[rank], 1, 1)[1] for rank in range(options.machines)]
    if not all(tuns):
        for process in processes:
            os.kill(process, signal.SIGKILL)
        return NOT_ALLOWED
    wire = Wire([tun[0] for tun in tuns], options)
    begin = time.monotonic()
    for rank in ours:
        ours[rank].send(b"x")
    status = {}
    while len(status) < len(processes):
        wire.go_on(0.05)
        for rank, process in enumerate(processes):
            if rank in status:
                continue
            ended, how = os.waitpid(process, os.WNOHANG)
            if ended == 0:
                continue
            status[rank] = os.waitstatus_to_exitcode(how)
            print(f"node{rank} ended with {status[rank]} after {time.monotonic() - begin:.1f} s",
                  flush=True)
    return max(code if code >= 0 else 128 - code for code in status.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--delay", type=float, default=0, metavar="MS")
    parser.add_argument("--loss", type=float, default=0, metavar="SHARE")
    parser.add_argument("--cut", metavar="FILE", help="lose all packets while FILE exists")
    parser.add_argument("--machines", type=int, default=2)
    parser.add_argument("command")
    sys.exit(run(parser.parse_args()))


if __name__ == "__main__":
    main()
