# SPDX-License-Identifier: GPL-2.0
"""The output: a line for each mutant, a diff for each survivor, the share of killed mutants by folder."""
import os
import sys

from record import COUNTED


def progress(text):
    """A line that the next one replaces, on a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K" + text[:120])
        sys.stderr.flush()


def line(number, wanted, mutant, result):
    progress("")
    print("[%*d/%d] %-10s %s:%d %s" % (len(str(wanted)), number, wanted, result["state"], mutant.source.path, mutant.line,
                                       result["by"] and "(%s, %.1f s)" % (result["by"], result["seconds"])), flush=True)


def survivors(entries):
    for m in sorted((m for m in entries if m["state"] == "survived"), key=lambda m: (m["file"], m["line"])):
        print("\nsurvived: %s:%d %s%s" % (m["file"], m["line"], m["function"], m["by"] and " (%s)" % m["by"]))
        print("\n".join(["-" + t for t in m["before"].split("\n")] + ["+" + t for t in m["after"].split("\n")]))


def percent(entries):
    """Share of killed mutants, None if none counts."""
    tried = sum(m["state"] in COUNTED for m in entries)
    return 100.0 * sum(m["state"] == "killed" for m in entries) / tried if tried else None


def share(entries):
    killed = sum(m["state"] == "killed" for m in entries)
    tried = sum(m["state"] in COUNTED for m in entries)
    return "%d of %d killed, %.1f %%" % (killed, tried, 100.0 * killed / tried) if tried else "nothing tried"


def summary(entries, seed):
    """Print a line for each folder, and at the end one for all."""
    folders = {}
    for m in entries:
        folders.setdefault(os.path.dirname(m["file"]), []).append(m)
    print()
    shares = []
    for folder in sorted(folders):
        print("%-28s %s" % (folder, share(folders[folder])))
        tried = [m for m in folders[folder] if m["state"] in COUNTED]
        if tried:
            shares.append("%s %.0f %%" % (os.path.basename(folder), 100.0 * sum(m["state"] == "killed" for m in tried) / len(tried)))
    states = {}
    for m in entries:
        states[m["state"]] = states.get(m["state"], 0) + 1
    print("left out: %d do not compile, %d have the same object code, %d are reviewed equivalents" %
          tuple(states.get(s, 0) for s in ("invalid", "equivalent", "reviewed")))
    print("mutants: %s (%s; seed %s)" % (share(entries), ", ".join(shares), seed))
