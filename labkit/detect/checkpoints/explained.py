"""More of the questions about what is in a checkpoint."""

from __future__ import annotations

from ..explained import Explained

SUBJECT, PLACE = "Checkpoints and restarts", 7
AT_A_CRASH = True

_SAVE_THE_REST = """\
  torch.save(
      {
          "model": model.state_dict(),
          "optimizer": optimizer.state_dict(),
+         "schedule": schedule.state_dict(),
+         "scaler": scaler.state_dict(),
      },
      path,
  )
"""

EXPLAINED = {
    "checkpoint-files": Explained(
        "Ranks that write one file at once tear it, and so does training that changes tensors while a thread writes them. "
        "A file that is written over the last one leaves neither where the process dies meanwhile. A checkpoint without "
        "the schedule, the scaler or the averaged weights restores the rest and starts these anew.",
        """\
- torch.save(state, path)
+ if dist.get_rank() == 0:
+     torch.save(state, f"{path}.part")
+     os.replace(f"{path}.part", path)
+ dist.barrier()
""",
        "labkit watches torch.save, torch.distributed.checkpoint, safetensors, renames and copies: the path, what is there "
        "already, which states are in what is saved, by the keys that torch gives them, and in a thread whether the tensors "
        "are those that training changes.",
        "What other libraries write is not seen, nor how far torch's own save in the background has come. A schedule that a "
        "program keeps as numbers of its own is not recognised.",
        lab="crash-recovery",
    ),
    "resume-is-whole": Explained(
        "A resume that restores the weights alone runs, and its loss falls. Moments that are zero again, a schedule at "
        "its start, a scale that is searched anew or weights that were overwritten after the load cost updates, and "
        "nothing says so. Optimizer.load_state_dict casts each state to the format of its parameter; strict=False loads "
        "nothing where no name fits.",
        """\
  state = torch.load(path, map_location="cpu")
  model.load_state_dict(state["model"])
+ optimizer.load_state_dict(state["optimizer"])
+ schedule.load_state_dict(state["schedule"])
+ scaler.load_state_dict(state["scaler"])
""",
        "labkit watches torch.load, torch.distributed.checkpoint, load_file of safetensors and each load_state_dict, knows "
        "tensors again by some of their values, and looks at the first step of each optimizer after a load: its moments, "
        "its learning rate, the scale, and whether the weights are those that were loaded.",
        "A training that begins anew from the weights of a checkpoint looks like a resume that forgets. Labkit says found "
        "only where the script restores a part, counts on from the file or writes it again, with the same settings. "
        "Parts of sharded weights are not read, nor what safe_open gives tensor by tensor.",
        lab="crash-recovery",
        needs="a run that loads a checkpoint and trains on",
    ),
    "resume-position": Explained(
        "A loader that begins its epoch anew reads the first part of it twice, and a sampler that is told the wrong epoch "
        "repeats the order of another one. The loss looks better, on samples that were seen before.",
        """\
  sampler.set_epoch(state["epoch"])
+ sampler.begin = state["samples_read"]
  for batch in loader:
      train_step(batch)
""",
        "labkit compares the samples of the epoch in which the checkpoint was saved with those that are read after the "
        "load, by the indices that the sampler gives.",
        "Where another process saved the checkpoint, its reads are not known: then only counters in the file can say that "
        "it was saved within an epoch. Data without a DataLoader are not seen.",
        lab="crash-recovery",
        needs="a run that loads a checkpoint and trains on",
    ),
    "weights-put-back": Explained(
        "Averaged weights are evaluated by copying them into the model. state_dict() copies nothing: a backup made by it "
        "changes with the model, and giving it back does nothing. Training then goes on from the average.",
        """\
- kept = model.state_dict()
+ kept = copy.deepcopy(model.state_dict())
  model.load_state_dict(average)
  evaluate(model)
  model.load_state_dict(kept)
""",
        "labkit keeps some values of one parameter after each update, and compares them with those at an evaluation and "
        "at the update that follows. It sees a module that is given back tensors of its own.",
        "Weights that ranks average, prune, bound or roll back change between updates too. Labkit says found only where "
        "what was evaluated are the values of an average that the script keeps, or a backup by reference has changed.",
        needs="evaluations of an average that is put into the model",
    ),
    "averaged-weights": Explained(
        "An average that looks up names of a wrapped or compiled model finds none and stands still. One whose count of "
        "updates is not restored warms up again after a resume, and takes the raw weights over.",
        """\
- ema.update(ddp_model)
+ ema.update(ddp_model.module)
""",
        "labkit finds averages by what the script calls them (ema, average, shadow, AveragedModel) and by their shapes, "
        "and looks whether they move.",
        "An average that begins late does not move at first: one that nobody evaluates is left open. One under another "
        "name is not seen.",
        needs="averaged weights (ema, AveragedModel)",
    ),
}

FIXES = {"scheduler-not-saved": _SAVE_THE_REST, "scaler-not-saved": _SAVE_THE_REST}
FIXES["written-over-the-last-one"] = """\
- torch.save(state, path)
+ torch.save(state, f"{path}.part")
+ os.replace(f"{path}.part", path)
"""
