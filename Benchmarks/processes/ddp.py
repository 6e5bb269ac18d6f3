"""PyTorch: training steps with DistributedDataParallel and Gloo, for measure.py, which starts this script with torchrun.

Each process has a batch of the size of the case. The first process prints the median rate of all processes in images per second as JSON.
"""

import argparse
import json
import os
import pathlib
import statistics
import sys
import time

import torch
import torch.distributed as distributed
from torch.nn import functional

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "peers"))
from cases import TRAIN  # noqa: E402
from networks import NETWORKS  # noqa: E402

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("case", choices=[name for name, case in TRAIN.items() if case[4]])
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--seconds", type=float, default=5)
options = parser.parse_args()

torch.set_num_threads(options.threads)
torch.manual_seed(0)
distributed.init_process_group("gloo")
rank, count = distributed.get_rank(), distributed.get_world_size()
name, size, channels, batch, labels = TRAIN[options.case]
# The memory format that is fastest for convolutions.
network = NETWORKS[name](labels).to(memory_format=torch.channels_last)
images = torch.randn(batch, channels, size, size).contiguous(memory_format=torch.channels_last)
targets = torch.arange(batch) % labels
# PyTorch does not average the statistics of batch normalization over processes on CPUs.
model = torch.nn.parallel.DistributedDataParallel(network) if count > 1 else network
optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)


def step():
    loss = functional.cross_entropy(model(images), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


for _ in range(2):
    step()
times = []
start = time.perf_counter()
while True:
    before = time.perf_counter()
    step()
    times.append(time.perf_counter() - before)
    # The first process decides for all.
    done = torch.tensor([float(len(times) >= 3 and time.perf_counter() - start > options.seconds)])
    distributed.broadcast(done, 0)
    if done.item():
        break
if rank == 0:
    print(json.dumps({"version": torch.__version__, "median": batch * count / statistics.median(times)}), flush=True)
# Destroying the group would abort some processes: Gloo still has threads.
distributed.barrier()
os._exit(0)
