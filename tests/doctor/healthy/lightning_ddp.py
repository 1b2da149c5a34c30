"""Lightning: Trainer with DDP over the ranks that a launcher made; validation, clipping and a schedule a step."""

import lightning
import torch
from lightning.pytorch.plugins.environments import TorchElasticEnvironment
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

RANKS = 2
NEEDS = "lightning"


class Classifier(lightning.LightningModule):
    """Two layers, and the whole recipe beside them."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))

    def forward(self, batch):
        return self.layers(batch)

    def training_step(self, batch, _):
        loss = cross_entropy(self(batch[0]), batch[1])
        self.log("loss", loss, sync_dist=True)
        return loss

    def validation_step(self, batch, _):
        self.log("checked", cross_entropy(self(batch[0]), batch[1]), sync_dist=True)

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=0.01)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=self.trainer.estimated_stepping_batches)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def samples(rows: int, seed: int) -> TensorDataset:
    inputs = torch.randn(rows, 8, generator=torch.Generator().manual_seed(seed))
    return TensorDataset(inputs, (inputs.sum(1) > 0).long())


lightning.seed_everything(7, verbose=False)
trainer = lightning.Trainer(
    accelerator="cpu",
    devices=RANKS,
    strategy="ddp",
    plugins=[TorchElasticEnvironment()],
    max_epochs=3,
    gradient_clip_val=1.0,
    accumulate_grad_batches=2,
    enable_progress_bar=False,
    enable_model_summary=False,
    enable_checkpointing=False,
    logger=False,
)
trainer.fit(
    Classifier(),
    DataLoader(samples(128, 0), batch_size=8, shuffle=True),
    DataLoader(samples(32, 1), batch_size=8),
)
