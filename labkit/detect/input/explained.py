"""More of the questions about how fast data come."""

from __future__ import annotations

from ..explained import Explained

SUBJECT, PLACE = "Input speed", 2

EXPLAINED = {
    "starved-input": Explained(
        "A DataLoader without workers prepares a batch when the loop asks for it, and the device waits until "
        "then. With too few workers it waits for part of that time. Nothing is wrong in the results; the run only takes "
        "longer.",
        """\
- loader = DataLoader(data, batch_size=64, shuffle=True)
+ loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, persistent_workers=True)
""",
        "labkit times how long the loop waits for each batch, and what the rest of the step takes. It judges the run in "
        "stretches: if it waits for more than a tenth of a step in nearly all of them, that is a finding.",
        "Another program on the cores makes a loader slow; labkit measures what else ran and then says inconclusive. A "
        "wait of a few milliseconds accuses nobody. On a GPU, work that is queued may hide a wait.",
    ),
    "cross-process-lock": Explained(
        "A lock that crosses processes (a file lock, a database of one writer) lets one rank fetch at a time. The others "
        "wait for their turn, although cores are idle. More ranks then gain little. A threading.Lock is not such a lock: "
        "each process has its own.",
        """\
  def __getitem__(self, index):
      with self.lock:
          raw = self.read(index)
-         return decode(raw)
+     return decode(raw)
""",
        "labkit times each rank's fetches, and those of one rank alone: with a lock they end one after the other, one "
        "fetch apart.",
        "A store that serves requests in turn looks the same, so the answer is inconclusive if one is read. "
        "Workers fetch ahead, and then waiting says little.",
        needs="a second run on one rank alone",
    ),
    "saturated-store": Explained(
        "A store has a limit that all its readers share. One rank reads fast. Each of W ranks gets a part, and further "
        "ranks gain nothing.",
        """\
  def __getitem__(self, index):
-     return torch.load(self.store / f"{index}.pt")
+     copy = self.cache / f"{index}.pt"
+     if not copy.exists():
+         part = copy.with_suffix(f".{os.getpid()}")
+         shutil.copyfile(self.store / f"{index}.pt", part)
+         part.replace(copy)
+     return torch.load(copy)
""",
        "labkit counts the bytes that are read from the store, over the time in which ranks fetch, and compares with "
        "one rank that reads alone. The program has to count them (`store_bytes`).",
        "A cache below the store makes the second reading faster than the first. Workers read ahead, and then the time of "
        "a fetch is not the time of reading.",
        needs="counts of the bytes that were read, and a run on one rank alone",
    ),
    "needless-workers": Explained(
        "Workers prepare a batch in another process and pass it on, which takes time too. If the data are ready in "
        "memory there is nothing to prepare, and workers only pass batches on.",
        """\
- loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4)
+ loader = DataLoader(data, batch_size=64, shuffle=True)
""",
        "labkit compares the time of a step with that of the same run without workers.",
        "Noise of the machine. If the times of steps overlap, the answer is inconclusive.",
        needs="a second run without workers",
    ),
    "worker-restarts": Explained(
        "A DataLoader without persistent workers ends them after each pass and starts new ones for the next. Each sets up "
        "again what it needs: it opens files, it builds an index. Within an epoch you do not see that.",
        """\
- loader = DataLoader(data, batch_size=64, num_workers=4)
+ loader = DataLoader(data, batch_size=64, num_workers=4, persistent_workers=True)
  for epoch in range(epochs):
      for inputs, labels in loader:
          step(inputs, labels)
""",
        "labkit times each start of a loader's workers, until their first batch is there.",
        "On a busy machine a start takes longer; labkit measures what else ran and then says inconclusive, "
        "unless a start takes several seconds.",
    ),
}
