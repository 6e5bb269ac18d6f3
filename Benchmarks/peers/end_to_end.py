"""From a folder of photos to a weights file: Imprint and PyTorch with torchvision, by turns.

    python end_to_end.py PHOTOS [--imprint FILE] [--epochs N] [--rounds N]

Both train LogoNet on 96x96 pixels with flip, rotation and blur, batches of 32 and two threads, and start as new processes. PyTorch
decodes and scales each photo once, as Imprint does, and varies it in the training process (0 workers) or beside it (2): with
so few cores one is best here, the other there. Memory is the greatest sum, over a process and its children, of resident
memory with shared pages counted once.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time


def train(photos, epochs, workers, output):
    """What the child process of PyTorch does."""
    import torch
    from torchvision import datasets, transforms

    from networks import logonet

    torch.set_num_threads(2)
    prepared = datasets.ImageFolder(photos, transforms.Compose([transforms.Resize(96), transforms.CenterCrop(96)]))
    images = [prepared[place] for place in range(len(prepared))]
    vary = transforms.Compose([
        transforms.RandomHorizontalFlip(),
        transforms.RandomRotation(15, interpolation=transforms.InterpolationMode.BILINEAR),
        transforms.GaussianBlur(5, (0.1, 1.5)), transforms.ToTensor(), transforms.Normalize([0.5] * 3, [0.5] * 3)])

    class Varied(torch.utils.data.Dataset):
        def __len__(self):
            return len(images)

        def __getitem__(self, place):
            return vary(images[place][0]), images[place][1]

    loader = torch.utils.data.DataLoader(
        Varied(), 32, shuffle=True, num_workers=workers, persistent_workers=workers > 0)
    network = logonet(len(prepared.classes)).to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
    for _ in range(epochs):
        for batch, labels in loader:
            logits = network(batch.contiguous(memory_format=torch.channels_last))
            loss = torch.nn.functional.cross_entropy(logits, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    torch.save(network.state_dict(), output)


def tree(process):
    """A process and all below it."""
    try:
        with open(f"/proc/{process}/task/{process}/children") as file:
            return [process] + [below for child in file.read().split() for below in tree(int(child))]
    except OSError:
        return []


def resident(process):
    try:
        with open(f"/proc/{process}/smaps_rollup") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("Pss:")) * 1024
    except (OSError, StopIteration):
        return 0


def measure(command):
    """The seconds that a command takes, and the most memory."""
    start, peak = time.perf_counter(), 0
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    errors = []
    reader = threading.Thread(target=lambda: errors.extend(process.stderr))
    reader.start()
    while process.poll() is None:
        peak = max(peak, sum(map(resident, tree(process.pid))))
        time.sleep(0.1)
    reader.join()
    if process.returncode != 0:
        sys.exit(f"{command[0]} ends with {process.returncode}: {''.join(errors)[-2000:]}")
    return time.perf_counter() - start, peak


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", help="a folder of photos, one sub-folder per label")
    parser.add_argument("--imprint", default=".build/release/imprint", help="the command line tool")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=1, help="how often each has its turn")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        output = os.path.join(folder, "model")
        if options.child is not None:
            return train(options.photos, options.epochs, options.child, output)
        epochs = ["--epochs", str(options.epochs)]
        this = [sys.executable, os.path.abspath(__file__), options.photos, *epochs]
        sides = {
            "Imprint": [
                options.imprint, "train", options.photos, "--output", output, *epochs, "--augment", "flip,rotate,blur",
                "--network", "logonet", "--validation", "0", "--threads", "2"],
            "torch, 0 workers": [*this, "--child", "0"], "torch, 2 workers": [*this, "--child", "2"]}
        runs = {side: [] for side in sides}
        for _ in range(options.rounds):
            for side, command in sides.items():
                runs[side].append(measure(command))
    print("| from photos to a weights file | s | peak memory | Imprint is |\n|---|---|---|---|")
    ours = statistics.median(seconds for seconds, _ in runs["Imprint"])
    for side, measured in runs.items():
        seconds = statistics.median(seconds for seconds, _ in measured)
        memory = max(memory for _, memory in measured) / 1e6
        print(f"| {side} | {seconds:.1f} | {memory:.0f} MB | {'' if side == 'Imprint' else f'{seconds / ours:.2f}x'} |")


main()
