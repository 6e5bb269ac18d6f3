# interrupt.py N COMMAND…: interrupts a training run after its N-th epoch.
import signal
import subprocess
import sys

process = subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE, text=True)
epochs = 0
for line in process.stdout:
    epochs += '"event":"epoch"' in line
    if epochs == int(sys.argv[1]):
        process.send_signal(signal.SIGINT)
