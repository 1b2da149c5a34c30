"""transformers' Trainer: a tiny model made in place, accumulation and evaluation, on the ranks that are there."""

import os
import tempfile

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

RANKS = 2
NEEDS = "transformers"


class Words(Dataset):
    """Rows of token ids, each its own label."""

    def __init__(self, rows: int, seed: int) -> None:
        self.rows = torch.randint(0, 50, (rows, 12), generator=torch.Generator().manual_seed(seed))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, at: int) -> dict:
        return {"input_ids": self.rows[at], "labels": self.rows[at]}


folder = os.environ.get("TRAINER_OUTPUT") or tempfile.mkdtemp()
arguments = TrainingArguments(
    output_dir=folder,
    per_device_train_batch_size=4,
    gradient_accumulation_steps=2,
    num_train_epochs=3,
    learning_rate=1e-3,
    lr_scheduler_type="cosine",
    warmup_steps=2,
    eval_strategy="epoch",
    save_strategy="no",
    logging_steps=4,
    report_to=[],
    use_cpu=True,
    disable_tqdm=True,
    seed=3,
)
model = GPT2LMHeadModel(GPT2Config(vocab_size=50, n_positions=16, n_embd=16, n_layer=1, n_head=2))
Trainer(model=model, args=arguments, train_dataset=Words(96, 0), eval_dataset=Words(24, 1)).train()
