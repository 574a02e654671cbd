"""What the machine did while something was timed."""

import os
import time


class Others:
    """How busy other programs kept the machine since this was made. The work of this program and of its children
    that have ended is not theirs."""

    def __init__(self):
        self.start = self._now()

    @staticmethod
    def _now():
        with open("/proc/stat") as file:
            user, nice, system, _, _, irq, softirq, *_ = map(int, file.readline().split()[1:])
        all_ = (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")
        return time.monotonic(), all_ - sum(os.times()[:4])

    def are_busy(self):
        """Whether they took more than a fifth of one core."""
        (begin, before), (end, after) = self.start, self._now()
        return after - before > 0.2 * (end - begin)
