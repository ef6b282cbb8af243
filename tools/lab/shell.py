# SPDX-License-Identifier: GPL-2.0
"""An interactive shell in a guest: the local terminal in raw mode, a tty in the guest, bytes between them."""
import os
import select
import shutil
import signal
import sys
import termios
import tty

LEAVE = b"\x1d"                 # Ctrl-]


def interactive(vm):
    """Run a shell on a tty in the guest; return its exit status."""
    if not sys.stdin.isatty():
        return piped(vm)
    size = shutil.get_terminal_size()
    saved = termios.tcgetattr(0)
    process = vm.spawn("exec bash -i", tty=(size.lines, size.columns), sink=show)
    signal.signal(signal.SIGWINCH, lambda *_: process.resize(*reversed(shutil.get_terminal_size())))
    sys.stderr.write("%s: Ctrl-] leaves\r\n" % vm.name)
    tty.setraw(0)
    try:
        while process.poll() is None:
            if select.select([0], [], [], 0.1)[0]:
                data = os.read(0, 4096)
                if not data or LEAVE in data:
                    process.kill()
                    return 0
                process.write(data)
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, saved)
    return process.wait()


def piped(vm):
    """Pass standard input to a plain bash, without a terminal."""
    process = vm.spawn("exec bash", sink=show)
    while (data := os.read(0, 1 << 16)):
        process.write(data)
    process.end_input()
    return process.wait()


def show(kind, data):
    """Return a sink that copies a guest's output to ours."""
    stream = sys.stdout.buffer if kind == b"o" else sys.stderr.buffer
    stream.write(data)
    stream.flush()
