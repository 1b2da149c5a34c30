"""More of the questions about data: who reads what."""

from __future__ import annotations

from ..explained import Explained

SUBJECT, PLACE = "Data", 1

EXPLAINED = {
    "rank-duplicates": Explained(
        "A DataLoader knows nothing of ranks. With shuffle=True each rank shuffles all of the data for itself. If all "
        "ranks have one seed, they read the same batch at the same step, and the averaged gradient is that of one rank. "
        "The loss still falls, and an epoch takes as long as on one device.",
        """\
- loader = DataLoader(data, batch_size=32, shuffle=True)
+ sampler = DistributedSampler(data)
+ loader = DataLoader(data, batch_size=32, sampler=sampler)
  for epoch in range(epochs):
+     sampler.set_epoch(epoch)
      for inputs, labels in loader:
          train(inputs, labels)
""",
        "labkit hashes each sample that a rank reads and keeps the indices that a sampler yields. It compares the ranks "
        "step by step, and epoch by epoch.",
        "Equal rows in the data look like one row that is read twice; indices decide where there are any. Ranks that hold "
        "one model together (tensor or pipeline parallelism) read the same on purpose. A list that holds samples several "
        "times, and drawing with replacement, repeat samples too. If these can explain it, the answer is inconclusive.",
    ),
    "worker-duplicates": Explained(
        "Each worker of a DataLoader has a copy of the data set. A map-style data set is told which indices a worker is "
        "to read; an IterableDataset is not. Unless it asks which worker it is in, each worker yields all of it, and an "
        "epoch grows with the number of workers.",
        """\
  class Stream(IterableDataset):
      def __iter__(self):
-         yield from self.items
+         info = torch.utils.data.get_worker_info()
+         worker, workers = (info.id, info.num_workers) if info else (0, 1)
+         share = dist.get_rank() * workers + worker
+         yield from itertools.islice(self.items, share, None, dist.get_world_size() * workers)
""",
        "labkit hashes each sample that a rank reads and counts how often each comes within an epoch.",
        "Sampling with replacement repeats samples, but unevenly. Equal rows in the data look like repeats, and where no "
        "indices are known the answer is inconclusive.",
    ),
    "coverage": Explained(
        "Data that are sharded twice are read in part: the sampler takes a rank's share, and a second wrapper takes a share "
        "of that. An epoch is suspiciously short, and most of the data is never trained on. An iterator that is used up has "
        "the same effect: from the second epoch on nothing is read at all.",
        """\
  loader = DataLoader(data, batch_size=32, sampler=DistributedSampler(data))
- for batch in itertools.islice(loader, dist.get_rank(), None, dist.get_world_size()):
+ for batch in loader:
      train(batch)
""",
        "labkit counts the different samples that all ranks together read in an epoch, by index or by hash, and compares "
        "their number with the length of the data set.",
        "Rows that each rank made for itself look like rows that were cut by rank; labkit says found only where it reads "
        "such a cut in the source. A dropped tail of less than one global batch is no finding. A curriculum or a resumed "
        "epoch reads a part on purpose; where another epoch reads all, that is said. Equal rows make hashes fewer than "
        "the samples.",
    ),
    "order": Explained(
        "DistributedSampler draws each epoch's permutation from its seed and its epoch number. The number changes only "
        "if somebody calls set_epoch. Without it, or if the call reaches another object than the one that draws, "
        "each epoch brings the same batches in the same order.",
        """\
  for epoch in range(epochs):
+     sampler.set_epoch(epoch)
      for inputs, labels in loader:
          train(inputs, labels)
""",
        "labkit compares the order in which samples were read in each epoch with the epochs before it. Where --steps ended "
        "the run within its first epoch it reads in the source whether anything calls set_epoch.",
        "Few samples have few orders, and chance repeats one now and then. Augmentation changes the hash of a sample each "
        "time; then only indices show the order. An evaluation comes in one order on purpose.",
    ),
    "validation-leak": Explained(
        "A split that is drawn with a generator seeded by rank gives each rank a validation set of its own. Other "
        "ranks train on what one rank holds out. The validation score is then measured on data that the model has seen, and "
        "the score on the test set will be worse.",
        """\
- draw = torch.Generator().manual_seed(seed + dist.get_rank())
+ draw = torch.Generator().manual_seed(seed)
  train_set, held_out = random_split(data, [0.9, 0.1], generator=draw)
""",
        "labkit checks whether any rank trains on samples that were read without a backward pass, by index in the whole "
        "data set or by hash.",
        "Copies of a row in both parts look like a leak; for a few of them the answer is inconclusive. Two data sets that "
        "both count from 0 share indices and no content. A last training on all data after the last validation is no "
        "leak.",
    ),
    "worker-random-numbers": Explained(
        "Workers of a loader are forked off the rank, with a copy of all that the data set holds. torch seeds its own "
        "generator, numpy's and Python's anew in each. A generator that the data set made for itself is the same in all: "
        "they draw the same augmentations, and the same again in the next epoch.",
        """\
- loader = DataLoader(data, batch_size=64, num_workers=4)
+ def seed_worker(worker):
+     get_worker_info().dataset.generator = np.random.default_rng(torch.initial_seed())
+ loader = DataLoader(data, batch_size=64, num_workers=4, worker_init_fn=seed_worker)
""",
        "labkit looks at the state of each generator in each worker, before its first batch and after.",
        "A generator that nobody draws from says nothing. Workers of a stream may shuffle alike on purpose, each taking "
        "its part, and are not judged.",
    ),
    "same-index": Explained(
        "A sampler shares out indices, and each rank looks up what they mean. Where ranks list a folder in the order in "
        "which the disk gives it, or number classes in the order of a set, an index or a label means another thing on each "
        "rank: some samples are read twice, others never, and labels contradict each other.",
        """\
- files = os.listdir(folder)
+ files = sorted(os.listdir(folder))
- number_of = {name: at for at, name in enumerate(set(names))}
+ number_of = {name: at for at, name in enumerate(sorted(set(names)))}
""",
        "labkit compares what ranks read under each index, and the labels of what several ranks read.",
        "Ranks that each hold a part of the data number their own, and share no content: then nothing is said. Contents "
        "that change from read to read cannot be compared, nor equal samples in the data.",
    ),
}

FIXES = {
    "iterator-used-up": """\
- batches = iter(loader)
  for epoch in range(epochs):
-     for batch in batches:
+     for batch in loader:
          train(batch)
""",
    "one-batch-again-and-again": """\
- for step in range(steps):
-     inputs, labels = next(iter(loader))
+ for inputs, labels in loader:
      train(inputs, labels)
""",
    "not-shuffled": """\
- loader = DataLoader(data, batch_size=32)
+ loader = DataLoader(data, batch_size=32, shuffle=True)
""",
}
