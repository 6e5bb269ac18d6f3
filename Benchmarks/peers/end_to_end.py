"""Measures training from a folder of photos to a model file, alternately in Imprint and in PyTorch with torchvision.

    python end_to_end.py PHOTOS [--imprint FILE] [--epochs N] [--rounds N]

Both train LogoNet on 96x96 pixels with flip, rotation and blur, a batch size of 32 and two threads, in new processes. PyTorch decodes
and scales each photo once, as Imprint does, and augments it in the training process (0 workers) or in 2 worker processes; which is
faster depends on the machine. Memory is the peak of the sum, over a process and its children, of proportional set sizes (PSS).
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
    """Trains in PyTorch; runs in a child process."""
    import torch
    from torchvision import datasets, transforms

    from networks import logonet

    torch.set_num_threads(2)
    prepared = datasets.ImageFolder(photos, transforms.Compose([transforms.Resize(96), transforms.CenterCrop(96)]))
    images = [prepared[index] for index in range(len(prepared))]
    augment = transforms.Compose([
        transforms.RandomHorizontalFlip(),
        transforms.RandomRotation(15, interpolation=transforms.InterpolationMode.BILINEAR),
        transforms.GaussianBlur(5, (0.1, 1.5)), transforms.ToTensor(), transforms.Normalize([0.5] * 3, [0.5] * 3)])

    class Augmented(torch.utils.data.Dataset):
        def __len__(self):
            return len(images)

        def __getitem__(self, index):
            return augment(images[index][0]), images[index][1]

    loader = torch.utils.data.DataLoader(
        Augmented(), 32, shuffle=True, num_workers=workers, persistent_workers=workers > 0)
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


def process_tree(process):
    """Returns a process and its descendants."""
    try:
        with open(f"/proc/{process}/task/{process}/children") as file:
            return [process] + [descendant for child in file.read().split() for descendant in process_tree(int(child))]
    except OSError:
        return []


def proportional_set_size(process):
    try:
        with open(f"/proc/{process}/smaps_rollup") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("Pss:")) * 1024
    except (OSError, StopIteration):
        return 0


def measure(command):
    """Returns the seconds and the peak memory of a command."""
    start, peak = time.perf_counter(), 0
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    errors = []
    reader = threading.Thread(target=lambda: errors.extend(process.stderr))
    reader.start()
    while process.poll() is None:
        peak = max(peak, sum(map(proportional_set_size, process_tree(process.pid))))
        time.sleep(0.1)
    reader.join()
    if process.returncode != 0:
        sys.exit(f"{command[0]} failed with exit code {process.returncode}: {''.join(errors)[-2000:]}")
    return time.perf_counter() - start, peak


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", help="a folder of photos, one sub-folder per label")
    parser.add_argument("--imprint", default=".build/release/imprint", help="the command-line tool")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=1, help="the number of measurements of each program")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        output = os.path.join(folder, "model")
        if options.child is not None:
            return train(options.photos, options.epochs, options.child, output)
        epochs = ["--epochs", str(options.epochs)]
        torch_command = [sys.executable, os.path.abspath(__file__), options.photos, *epochs]
        commands = {
            "Imprint": [
                options.imprint, "train", options.photos, "--output", output, *epochs, "--augment", "flip,rotate,blur",
                "--network", "logonet", "--validation", "0", "--threads", "2"],
            "torch, 0 workers": [*torch_command, "--child", "0"], "torch, 2 workers": [*torch_command, "--child", "2"]}
        runs = {program: [] for program in commands}
        for _ in range(options.rounds):
            for program, command in commands.items():
                runs[program].append(measure(command))
    print("| from photos to a model file | s | peak memory | speed of Imprint |\n|---|---|---|---|")
    imprint_seconds = statistics.median(seconds for seconds, _ in runs["Imprint"])
    for program, results in runs.items():
        seconds = statistics.median(seconds for seconds, _ in results)
        memory = max(memory for _, memory in results) / 1e6
        speed = "" if program == "Imprint" else f"{seconds / imprint_seconds:.2f}x"
        print(f"| {program} | {seconds:.1f} | {memory:.0f} MB | {speed} |")


main()
