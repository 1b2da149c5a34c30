"""More of the questions about the machine."""

from __future__ import annotations

from ..explained import Explained

SUBJECT, PLACE = "The machine", 10

EXPLAINED = {
    "cores": Explained(
        "Ranks that share a core take turns. Each collective then waits for the scheduler and not for the network, and "
        "times show the order of events, not the speed of a cluster. Too many threads hinder each other in the same way.",
        """\
+ torch.set_num_threads(max(1, os.cpu_count() // local_world_size))
  model = Net()
""",
        "labkit compares the ranks and their threads with the cores that they may use.",
        "A container may allow less than the cores that it shows.",
    ),
    "link-fit": Explained(
        "Latency and bandwidth give a line: the time of an all-reduce by its size. It fits one algorithm on one kind of "
        "link. Libraries change the algorithm by size, and then a line says too much or too little.",
        """\
- seconds = latency + size / bandwidth
+ seconds = numpy.interp(size, measured_sizes, measured_seconds)
""",
        "labkit measures all-reduces of several sizes and compares the fit with each of them.",
        "A busy machine shifts single sizes; what the repeats' own scatter explains is no finding.",
        needs="a measured link: labkit run start-here",
    ),
    "page-cache": Explained(
        "A file that was just written lies in memory. Reading it back measures memory, and the disk looks far faster than "
        "it is.",
        """\
  with open(path, "rb") as file:
+     os.fsync(file.fileno())
+     os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
      data = file.read()
""",
        "labkit drops the file's pages, asks the kernel which are left, and compares the rate with that of memory.",
        "A cache below the operating system (of a virtual machine's host, of a disk) is not seen, except by its speed.",
        needs="measured storage: labkit run start-here",
    ),
}
