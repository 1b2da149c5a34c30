"""A teacher is trained, then a student on what it says: the first optimizer is gone, and the teacher stays in eval()."""

import torch
from torch.nn.functional import cross_entropy, mse_loss
from torch.utils.data import DataLoader, TensorDataset

RANKS = 1

torch.manual_seed(0)
inputs = torch.randn(192, 8)
loader = DataLoader(TensorDataset(inputs, (inputs.sum(1) > 0).long()), batch_size=8, shuffle=True)
teacher = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.BatchNorm1d(32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
optimizer = torch.optim.SGD(teacher.parameters(), lr=0.1)
for batch, labels in loader:
    loss = cross_entropy(teacher(batch), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
teacher.eval()
student = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
for _ in range(2):
    for batch, _ in loader:
        with torch.no_grad():
            wanted = teacher(batch)
        loss = mse_loss(student(batch), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
