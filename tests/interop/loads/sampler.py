"""The memory counters of another process, sampled from outside."""

import threading
import time

FIELDS = ("anonymous", "file", "device")
_KEYS = (b"RssAnon:", b"RssFile:", b"RssShmem:")


def counters(pid):
    """Resident bytes by kind. Shared memory stands for a device."""
    with open(f"/proc/{pid}/status", "rb") as status:
        text = status.read()
    values = []
    for key in _KEYS:
        at = text.index(key) + len(key)
        values.append(int(text[at : text.index(b"kB", at)]) * 1024)
    return dict(zip(FIELDS, values))


class Sampler:
    """Keeps the highest value of each counter above the one at the start, at about 1 kHz."""

    def __init__(self, pid, period=0.001):
        self.pid = pid
        self.period = period
        self.base = counters(pid)
        self.peak = dict.fromkeys(FIELDS, 0)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _look(self):
        now = counters(self.pid)
        for field in FIELDS:
            self.peak[field] = max(self.peak[field], now[field] - self.base[field])
        return now

    def _run(self):
        while not self._stop.is_set():
            try:
                self._look()
            except (OSError, ValueError):  # the process has ended
                return
            time.sleep(self.period)

    def end(self):
        self._stop.set()
        self._thread.join()

    def stop(self):
        """The peaks, and what is resident now, both above the base."""
        self.end()
        now = self._look()
        return self.peak, {field: now[field] - self.base[field] for field in FIELDS}
