#!/usr/bin/env python3
"""Runs a command and draws what it prints, with its colours, as an SVG in which lines appear as they came.

    scripts/terminal_svg.py OUT.svg [--width 100] [--pause 0.6] -- COMMAND...

Stdout is a terminal for the command, stderr is a pipe: a live view becomes plain lines. Long waits are shortened to --pause. Whoever
asked for less motion sees the end at once.
"""

import argparse
import fcntl
import os
import pty
import re
import select
import shlex
import struct
import subprocess
import sys
import termios
import time
from html import escape
from pathlib import Path

CELL, LINE, PAD = 8.4, 19, 14
COLOURS = ["#8b949e", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#39c5cf", "#e6edf3"]
CODES = re.compile(r"\x1b\[([0-9;]*)m")
OTHER_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-ln-z]|\x1b\][^\x07\x1b]*(\x07|\x1b\\)|\r")
STYLE = "text{font:14px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#e6edf3;white-space:pre}" \
        ".l{opacity:0;animation:a .01s linear forwards}@keyframes a{to{opacity:1}}" \
        "@media(prefers-reduced-motion:reduce){.l{opacity:1;animation:none}}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--width", type=int, default=100, help="columns [100]")
    parser.add_argument("--pause", type=float, default=0.6, help="the longest wait between two lines, in seconds [0.6]")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    told, code = recorded(options.command, options.width)
    options.out.write_text(drawn(shlex.join(options.command), told, options.width, options.pause))
    return code


def recorded(command: list, width: int) -> tuple:
    """What a command prints, as lines with their seconds, and its exit code."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    begun, told, parts = time.monotonic(), [], {}
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.PIPE)
    os.close(theirs)
    open_ends = {ours, process.stderr.fileno()}
    while open_ends:
        for end in select.select(list(open_ends), [], [])[0]:
            try:
                piece = os.read(end, 65536)
            except OSError:  # how a terminal ends
                piece = b""
            if not piece:
                open_ends.remove(end)
            *lines, parts[end] = (parts.get(end, b"") + piece).split(b"\n")
            told += [(time.monotonic() - begun, line.decode(errors="replace")) for line in lines]
    return told, process.wait()


def drawn(command: str, told: list, width: int, pause: float) -> str:
    rows, at, before = [(0.0, f"\x1b[2m$\x1b[0m \x1b[1m{command}\x1b[0m")], 0.8, 0.0
    for seconds, line in told:
        at, before = at + min(seconds - before, pause), seconds
        rows.append((at, line))
    columns = max(width, *(len(CODES.sub("", OTHER_CODES.sub("", line))) for _, line in rows))
    size = (2 * PAD + columns * CELL, 2 * PAD + len(rows) * LINE)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]:.0f} {size[1]}" role="img">',
             f"<title>{escape(command)}</title>", f"<style>{STYLE}</style>",
             '<rect width="100%" height="100%" rx="8" fill="#0d1117"/>']
    style = {}  # a colour that is not ended goes on in the next line
    for place, (seconds, line) in enumerate(rows):
        y = PAD + place * LINE + 14
        parts.append(f'<text class="l" x="{PAD}" y="{y}" style="animation-delay:{seconds:.1f}s">{spans(line, style)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def spans(line: str, style: dict) -> str:
    """A line's text with its colours; other control sequences are left out. `style` is what holds at its begin, then at its end."""
    found, end = [], 0
    line = OTHER_CODES.sub("", line)
    for code in [*CODES.finditer(line), None]:
        text = line[end:code.start() if code else len(line)]
        if text:
            attributes = "".join(f' {name}="{value}"' for name, value in style.items())
            found.append(f"<tspan{attributes}>{escape(text)}</tspan>" if attributes else escape(text))
        if code:
            end = code.end()
            for number in map(int, filter(None, (code[1] or "0").split(";"))):
                turn(style, number)
    return "".join(found)


def turn(style: dict, number: int) -> None:
    """What one number of an SGR sequence does."""
    if number == 0:
        style.clear()
    elif number == 1:
        style["font-weight"] = "bold"
    elif number == 2:
        style["opacity"] = "0.6"
    elif number == 22:
        style.pop("font-weight", None), style.pop("opacity", None)
    elif number == 39:
        style.pop("fill", None)
    elif number in range(30, 38) or number in range(90, 98):
        style["fill"] = COLOURS[number % 10]


if __name__ == "__main__":
    sys.exit(main())
