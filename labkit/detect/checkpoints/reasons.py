"""What the questions about checkpoints say."""

from __future__ import annotations

from ..catalogue import Reason

_FILES = {
    # checkpoint-files
    "nothing-saved": Reason(
        "the script saved nothing with torch.save, torch.distributed.checkpoint or safetensors while it was watched",
        "run the script under `labkit doctor` for so many steps that it saves",
    ),
    "ranks-save-to-one-path": Reason(
        "{ranks:all rank/ranks} save to the same file: what one writes, another tears",
        "save on rank 0 alone (dist.get_rank() == 0, not local_rank == 0 of each node), or give each rank a file of its "
        "own; torch.distributed.checkpoint.save() shares the work out between ranks, unless it is given no_dist=True",
    ),
    "parts-in-different-folders": Reason(
        "ranks save one checkpoint together with torch.distributed.checkpoint, and name {folders} folders for it: each "
        "holds the parts of one rank, and none can be loaded",
        "give save() the same checkpoint_id on every rank; where rank 0 makes the name (a time, a temporary folder), "
        "broadcast it first",
    ),
    "ranks-replace-one-file": Reason(
        "{ranks:all rank/ranks} move checkpoints of different content to the same name: the last one stays, and the state "
        "of the other ranks is lost",
        "save what all ranks hold alike on rank 0 alone, and what each holds for itself under a name with its rank",
    ),
    "torn-by-training": Reason(
        "a thread saves {tensors:plural tensor/tensors} that training changes in place, and {updates:plural update/updates} "
        "were made before it was done: the file mixes weights of several updates",
        "copy the state before you hand it to the thread: copy.deepcopy(state), or .detach().clone() of each tensor; or "
        "wait for the thread before the next optimizer.step()",
    ),
    "save-not-finished": Reason(
        "the script ended while a daemon thread was still writing a checkpoint: Python does not wait for it, and the file "
        "is cut off",
        "join the thread before the script ends, or start it without daemon=True",
    ),
    "scheduler-not-saved": Reason(
        "a checkpoint holds the optimizer and not the learning-rate scheduler that the script steps: after a resume the "
        "schedule starts anew",
        "save scheduler.state_dict() beside the optimizer's, and load both",
    ),
    "schedule-may-be-made-anew": Reason(
        "checkpoints hold the optimizer and not the scheduler, and the source makes schedules that begin in their midst",
        "resume once under `labkit doctor`, and compare the learning rate before and after; or save scheduler.state_dict()",
    ),
    "scaler-not-saved": Reason(
        "a checkpoint holds the optimizer and not the gradient scaler: after a resume the scale is searched anew, and steps "
        "are skipped",
        "save scaler.state_dict() beside the optimizer's, and load both",
    ),
    "average-not-saved": Reason(
        "checkpoints hold the optimizer and never the averaged weights that the script keeps: after a resume the average "
        "starts anew from the weights of that moment",
        "save the average too, with its count of updates (AveragedModel.state_dict() holds both)",
    ),
    "written-over-the-last-one": Reason(
        "{times:plural time/times} a checkpoint was written straight over the last one: a process that dies meanwhile "
        "leaves neither",
        "write to another name in the same folder, then os.replace() it into place",
    ),
    "checkpoints-are-whole": Reason("one rank writes each file, and what trains is in it"),
    "weights-are-exported": Reason("what is saved are weights without an optimizer: exports, of which nobody goes on"),
}
_RESUMES = {
    # resume-is-whole
    "nothing-is-resumed": Reason(
        "nothing was loaded that training went on from",
        "run the script under `labkit doctor` so that it resumes: let it find a checkpoint of an earlier run",
    ),
    "resume-holds-all": Reason("what the checkpoint holds is what training goes on from"),
    "starts-from-weights": Reason("weights were loaded and a training was begun from them, with an optimizer of its own"),
    "nothing-was-loaded": Reason(
        "load_state_dict(strict=False) was given keys of which the module has none ({example}): nothing was loaded, and "
        "nothing was said",
        "take the words in front of the names off (module., _orig_mod.), save model.module.state_dict() under DDP, and look "
        "at the missing and unexpected keys that load_state_dict returns",
    ),
    "nothing-was-read": Reason(
        "torch.distributed.checkpoint.load() was asked for names of which the checkpoint has none ({example}): with "
        "allow_partial_load=True nothing was read, and nothing was said",
        "ask for the names that were saved (get_model_state_dict() takes module. and _orig_mod. off), and leave "
        "allow_partial_load out",
    ),
    "loaded-weights-put-back": Reason(
        "{share:.0%} of the loaded weights are, after the first update, where they were before the load: copies that an "
        "optimizer had made of them earlier (fp32 masters) were written over what was loaded",
        "load the weights before the optimizer is made; or load the optimizer's own copies too, or refresh them from the "
        "model after the load",
    ),
    "loaded-weights-overwritten": Reason(
        "{share:.0%} of the loaded weights have nothing of what was loaded as training begins: they were initialised after "
        "the load",
        "initialise first and load last: model.apply(init), to_empty() and reset_parameters() come before load_state_dict()",
    ),
    "some-weights-overwritten": Reason(
        "{share:.0%} of the loaded weights have nothing of what was loaded as training begins",
        "if a new head is meant, nothing is wrong; else load after all initialisation",
    ),
    "weights-not-given": Reason(
        "the optimizer was given its state from a file, and none of the weights of that file are in the model: moments of "
        "one model move another one",
        "give the model its part of the file too: model.load_state_dict(checkpoint[…]), with the names that it has",
    ),
    "weights-missing-from-file": Reason(
        "{missing:.0%} of the optimizer's weights are in no key of the checkpoint, and its moments are: strict=False or "
        "allow_partial_load=True left them as they were initialised",
        "save all of model.state_dict(), and load with strict=True, or without allow_partial_load",
    ),
    "optimizer-state-dropped": Reason(
        "the optimizer was given its moments from a file, and has none as training goes on: something dropped them, or "
        "another optimizer makes the steps",
        "load the optimizer's state last, into the optimizer that makes the steps: after it is made, and after wrapping",
    ),
    "moments-not-asked-for": Reason(
        "the checkpoint holds the optimizer's moments, and torch.distributed.checkpoint.load() was not asked for them: it "
        "reads the keys that it is given, and a new optimizer's state_dict() has none of its moments yet",
        "ask with get_state_dict(model, optimizer), which makes the moments first, load into what it returns, and give that "
        "back with set_state_dict()",
    ),
    "optimizer-not-given": Reason(
        "the checkpoint holds the optimizer's moments, training goes on from its weights, and the optimizer begins with "
        "none",
        "optimizer.load_state_dict(checkpoint[…]) after the optimizer is made",
    ),
    "optimizer-perhaps-not-given": Reason(
        "the checkpoint holds an optimizer's moments, and the optimizer begins with none; this may be a new training from "
        "its weights",
        "if you resume, optimizer.load_state_dict(checkpoint[…]); if you begin anew from the weights, nothing is wrong",
    ),
    "optimizer-not-in-file": Reason(
        "training counts on from a checkpoint that holds weights and no optimizer: its moments begin at zero again",
        "save optimizer.state_dict() beside the weights, and load both",
    ),
    "optimizer-state-cast": Reason(
        "loading changed the number format of the optimizer's state ({cast}): Optimizer.load_state_dict casts each state to "
        "the format of its parameter, and the digits that the state was kept for are gone",
        "after optimizer.load_state_dict(), put the state back in its own format from the file; or override "
        "load_state_dict in the optimizer",
    ),
    "optimizer-state-grown": Reason(
        "loading changed the number format of the optimizer's state ({cast}): Optimizer.load_state_dict casts each state to "
        "the format of its parameter, and the state takes more memory than before",
        "after optimizer.load_state_dict(), cast the state back to its own format",
    ),
    "optimizer-state-follows": Reason(
        "loading changed the number format of the optimizer's state ({cast}), to that of the weights",
        "if you changed the weights' format on purpose, nothing is wrong; else compare the formats before the save and "
        "after the load",
    ),
    "schedule-starts-again": Reason(
        "the optimizer was restored and its learning-rate scheduler was not: the rate was {then:.3g} as the checkpoint was "
        "saved, and is {now:.3g} as training goes on",
        "save and load the scheduler's state, after the scheduler is made",
    ),
    "schedule-not-given": Reason(
        "the checkpoint holds the learning-rate scheduler's state, the optimizer was restored, and the scheduler begins at "
        "its start",
        "scheduler.load_state_dict(checkpoint[…]) after the scheduler is made",
    ),
    "scaler-not-given": Reason(
        "the checkpoint holds the gradient scaler's state and the scaler was not given it: the scale was {scale_then:g}, "
        "and is {scale_now:g}",
        "scaler.load_state_dict(checkpoint[…])",
    ),
    "one-generator-for-all": Reason(
        "ranks were seeded apart, and all were given the same state of the random generator from a checkpoint: dropout, "
        "augmentation and sampling are the same on all of them from now on",
        "save the generator's state of each rank (a file a rank, or all_gather_object), and give each its own",
    ),
    "loaded-onto-another-gpu": Reason(
        "on rank {rank} torch.load put tensors onto the GPU of another rank, which holds memory for each rank from now on",
        'torch.load(path, map_location="cpu"), or the rank\'s own device',
    ),
}
_POSITIONS = {
    # resume-position
    "no-resume-seen": Reason(
        "no training went on from a checkpoint",
        "run the script under `labkit doctor` so that it resumes: let it find a checkpoint of an earlier run",
    ),
    "no-loader-resumed": Reason(
        "what is trained on comes from no DataLoader, so it is not known what was read",
        "read the data through torch.utils.data.DataLoader, and resume once under `labkit doctor`",
    ),
    "position-not-known": Reason(
        "what was read before the checkpoint was saved is not known",
        "compare the samples after the resume with those of the run that saved, or let one process save, load and go on",
    ),
    "resumes-at-an-epoch": Reason("the checkpoint was saved at the end of an epoch, and the next one follows"),
    "reads-on": Reason("what is left of the epoch is read after the resume, and nothing of it twice"),
    "epoch-begun-anew": Reason(
        "the checkpoint was saved within an epoch, and the resume begins that epoch anew: {twice} of the next "
        "{rest:plural sample/samples} had been read before the save",
        "save the loader's position (StatefulDataLoader.state_dict(), or a sampler that begins at an offset) and begin "
        "there",
    ),
    "epoch-begun-anew-by-count": Reason(
        "the checkpoint was saved after {within} of {updates} updates of an epoch, and the resume reads a whole epoch: "
        "what was read before the save is read again",
        "save the loader's position (StatefulDataLoader.state_dict(), or a sampler that begins at an offset) and begin "
        "there",
    ),
    "resumes-in-another-epoch": Reason(
        "after the resume the data come in the order of epoch {epoch}, which was over before the save: the sampler was not "
        "told the epoch",
        "restore the epoch, and call sampler.set_epoch(epoch) of the loader that is read, before its iterator is made",
    ),
    "order-is-repeated": Reason(
        "after the resume the data come in the order of epoch {epoch}, which was over before the save",
        "save and restore the state of the random generator that shuffles, or seed it by the epoch",
    ),
    "skipped-by-reading": Reason(
        "the resume loads {dropped:plural sample/samples} and drops them to come to where it stopped, which takes "
        "{seconds:duration} before the first update",
        "skip in the sampler, which gives indices and loads nothing: a batch sampler that begins at an offset, or "
        "StatefulDataLoader",
    ),
}
_AVERAGES = {
    # weights-put-back
    "no-evaluation-between-updates": Reason(
        "the model that is trained was not evaluated between two updates",
        "run the script under `labkit doctor` for so many steps that it evaluates and goes on",
    ),
    "evaluations-leave-the-weights": Reason("training goes on from the weights that the last update left"),
    "state-kept-by-reference": Reason(
        "the model is given back a state that is its own: state_dict() copies nothing, so what was kept changed with the "
        "model, and giving it back does nothing",
        "copy what you keep: copy.deepcopy(model.state_dict())",
    ),
    "average-left-in-the-model": Reason(
        "averaged weights are put into the model for an evaluation and not taken out: training goes on from the average "
        "each time",
        "keep a copy of the trained weights before you put the average in, and put it back after; or evaluate another "
        "copy of the model",
    ),
    "weights-changed-for-an-evaluation": Reason(
        "the weights that were evaluated are not those that the last update left, but nearer to earlier ones, and training "
        "goes on from them",
        "if these are averaged weights, put the trained ones back after the evaluation",
    ),
    # averaged-weights
    "no-average-seen": Reason(
        "the script keeps no averaged weights that the doctor knows by their name and their shapes",
        "call them ema or average, or use torch.optim.swa_utils.AveragedModel",
    ),
    "averages-follow": Reason("averaged weights move with those that train"),
    "average-misses-names": Reason(
        "{name} did not change in {updates:plural update/updates}: none of its names is one of the model that is called, "
        "which a wrapper or torch.compile put words in front of",
        "update it from the module inside (model.module, or what was given to torch.compile), or take the words off the "
        "names",
    ),
    "average-never-updated": Reason(
        "{name} is evaluated and did not change in {updates:plural update/updates}: nobody updates it",
        "call its update after each optimizer.step(): averaged.update_parameters(model)",
    ),
    "average-stands-still": Reason(
        "{name} did not change in {updates:plural update/updates}; it may begin later",
        "run the script for so many steps that the average begins",
    ),
    "average-starts-again": Reason(
        "the first update after a load took {name} {pull:.0%} of the way to the raw weights: its count of updates was not "
        "restored, and what it had averaged is gone",
        "save and load the count of updates with the average (AveragedModel.state_dict() holds it)",
    ),
}

REASONS = {**_FILES, **_RESUMES, **_POSITIONS, **_AVERAGES}
