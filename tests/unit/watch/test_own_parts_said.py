"""Words of a script's source by which it says that each rank keeps a part of the model for itself."""

from __future__ import annotations

import pytest

from labkit.watch.outside import own_parts_said as said

OWN = """\
local_head = torch.nn.Linear(16, 2)
logits = heads[rank](features)
head = self.heads[dist.get_rank()]
torch.save(head.state_dict(), f"head_{rank}.pt")
# the personalised layer is left out of DDP
# each rank keeps a classifier of its own
own_adapter = Adapter()
"""

SHARED = """\
head = torch.nn.Linear(16, 2)
local_rank = int(os.environ["LOCAL_RANK"])
model = DistributedDataParallel(model, device_ids=[rank])
# the loss has a weight of its own, and an optimizer trains it
domain_classifier = Classifier()
local_loss = loss.item()
model.to(rank)
norms = local_norm(model)
"""


@pytest.mark.parametrize(("line", "own"), [(o, True) for o in OWN.splitlines()] + [(s, False) for s in SHARED.splitlines()])
def test_what_a_source_says_of_parts(line, own, tmp_path, monkeypatch):
    file = tmp_path / "script.py"
    file.write_text(f"import torch\n{line}\n")
    monkeypatch.setattr(said, "script_files", lambda: [str(file)])
    said.text_of.cache_clear()
    assert said.own_parts_said().endswith("script.py:2") == own
