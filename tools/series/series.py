# SPDX-License-Identifier: GPL-2.0
"""A series of patches from the files of this checkout and a description, SERIES/series.toml, for the source of a base."""
import fnmatch
import os
import re
import shutil
import subprocess
import tempfile
import tomllib

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))


class SeriesError(Exception):
    """The description does not fit the checkout or the base."""


def load(name):
    with open(os.path.join(TOP, "tools", "series", name, "series.toml"), "rb") as f:
        return tomllib.load(f)


def tracked():
    """Files of the checkout, also those not yet committed."""
    out = subprocess.run(["git", "-c", "safe.directory=*", "-C", TOP, "ls-files", "-co", "--exclude-standard"], check=True,
                         capture_output=True, text=True).stdout
    return [f for f in out.splitlines() if os.path.isfile(os.path.join(TOP, f))]


def spread(pattern):
    """Patterns without braces."""
    match = re.fullmatch(r"(.*)\{(.*)\}(.*)", pattern)
    return [match[1] + word + match[3] for word in match[2].split(",")] if match else [pattern]


def matches(path, pattern):
    return any(os.path.dirname(path) == os.path.dirname(p) and fnmatch.fnmatchcase(path, p) for p in spread(pattern))


def split(series):
    """For each patch a list of (file here, file there). A file goes to the patch with the most specific pattern; "*" is the rest."""
    wide = [(i, pattern, to) for i, patch in enumerate(series["patch"]) for pattern, to in patch.get("copy", [])]
    # stable: a pattern with its own names before one with a star
    wide.sort(key=lambda w: os.path.basename(w[1]).startswith("*"))
    files = [[] for _ in series["patch"]]
    used, lost = set(), []
    for path in tracked():
        if not path.startswith(tuple(series["owned"])) or path in series["left_out"]:
            continue
        named = [w for w in wide if matches(path, w[1])]
        exact = [w for w in named if not os.path.basename(w[1]).startswith("*")]
        mine = exact or named
        if len(mine) != 1:
            lost.append("%s is in %d patches" % (path, len(mine)))
            continue
        i, pattern, to = mine[0]
        used.add((i, pattern))
        files[i].append((path, to + os.path.basename(path)))
    lost += ["%s names no file" % pattern for i, pattern, _ in wide if (i, pattern) not in used]
    if lost:
        raise SeriesError("; ".join(lost))
    return files


def newest(text, lacks):
    """A source without the conditionals on what older versions lack: #ifndef of a name that begins with lacks, to its #endif."""
    kept, inside = [], False
    for line in text.splitlines(keepends=True):
        if line.startswith("#ifndef " + lacks):
            inside = True
        elif inside and line.startswith("#endif"):
            inside = False
        elif inside and line.startswith(("#if", "#el")):
            raise SeriesError("%r inside of #ifndef %s*" % (line.rstrip(), lacks))
        else:
            kept.append(line)
    return "".join(kept)


def insert_entry(text, title, add):
    """A section of MAINTAINERS before the first one that sorts behind it."""
    lines = text.splitlines(keepends=True)
    start = next(i for i, line in enumerate(lines) if line.startswith("3C59X NETWORK DRIVER"))
    at = next((i for i in range(start, len(lines) - 1) if lines[i] > title and lines[i][0].isupper() and lines[i - 1] == "\n"
               and re.match(r"[A-Z]:\t", lines[i + 1])), None)
    if at is None:
        raise SeriesError("no place for %s" % title)
    return "".join(lines[:at]) + title + "\n" + add + "\n\n" + "".join(lines[at:])


def edited(text, edit, person):
    add = edit["add"].replace("{person}", person)
    if "entry" in edit:
        return insert_entry(text, edit["entry"], "M:\t%s%s" % (person, add))
    if "replace" in edit:
        if text.count(edit["replace"]) != 1:
            raise SeriesError("%s has %s not once" % (edit["file"], edit["replace"]))
        return text.replace(edit["replace"], add)
    if "end" in edit:
        return text + add.lstrip("\n") + "\n" if text.endswith("\n\n") else text + "\n" + add.lstrip("\n") + "\n"
    lines = text.splitlines(keepends=True)
    begin = edit.get("after") or edit.get("after_each") or edit["after_last"]
    found = [i for i, line in enumerate(lines) if line.startswith(begin)]
    if not found:
        raise SeriesError("the base's %s has no line %s" % (edit["file"], begin))
    chosen = found if "after_each" in edit else found[:1] if "after" in edit else found[-1:]
    for at in reversed(chosen):
        lines.insert(at + 1, add + "\n")
    return "".join(lines)


class Writer:
    """A repository with those files of the base that the series changes."""

    def __init__(self, folder, base):
        self.folder, self.base = folder, base
        self.git("init", "-q")
        for key in ("user.name", "user.email"):
            value = subprocess.run(["git", "-C", TOP, "config", key], capture_output=True, text=True).stdout.strip()
            if not value:
                raise SeriesError("git config %s is not set: a series needs an author" % key)
            self.git("config", key, value)
        self.person = "%s <%s>" % tuple(self.git("config", key).strip() for key in ("user.name", "user.email"))

    def git(self, *args):
        done = subprocess.run(["git", "-C", self.folder, *args], capture_output=True, text=True)
        if done.returncode:
            raise SeriesError("git %s: %s" % (args[0], done.stderr.strip()))
        return done.stdout

    def start(self, paths):
        """The base's own state of these files."""
        for path in paths:
            if os.path.exists(os.path.join(self.base, path)):
                self.put(path, open(os.path.join(self.base, path), encoding="utf-8").read())
        self.git("add", "-A", "-f")
        self.git("commit", "-q", "--allow-empty", "-m", "base")

    def put(self, path, text, mode=0o644):
        path = os.path.join(self.folder, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, mode)

    def copy(self, here, there, lacks=None):
        if os.path.exists(os.path.join(self.base, there)):
            raise SeriesError("the base has a %s of its own" % there)
        with open(os.path.join(TOP, here), encoding="utf-8") as f:
            text = newest(f.read(), lacks) if lacks else f.read()
        self.put(there, text, 0o755 if os.access(os.path.join(TOP, here), os.X_OK) else 0o644)

    def edit(self, edit):
        with open(os.path.join(self.folder, edit["file"]), encoding="utf-8") as f:
            text = f.read()
        self.put(edit["file"], edited(text, edit, self.person))

    def commit(self, subject, body):
        self.git("add", "-A", "-f")
        self.git("commit", "-q", "-s", "-m", subject + "\n\n" + body.strip() + "\n")


def older(writer, base, series):
    """The wrappers for a base whose verbs have older signatures, in each driver's folder."""
    about = series["older"]
    for driver in ("drivers/net/ethernet/ornic/", "drivers/infiniband/hw/ornic/"):
        for path in tracked():
            if path.startswith("compat/"):
                writer.copy(path, driver + path)
        with open(os.path.join(writer.folder, driver, "Makefile"), encoding="utf-8") as f:
            first, rest = f.read().split("\n", 1)
        writer.put(driver + "Makefile", first + "\n\ninclude $(src)/compat/probe.mk\n"
                   "LINUXINCLUDE := -I$(src)/compat/include $(LINUXINCLUDE)\nccflags-y += $(ornic-probe)\n" + rest)
    for edit in about["edit"]:
        writer.edit(edit)
    writer.commit(about["subject"], about["body"])


def make(name, base, tree, out):
    """Write the patches for a base, whose source is tree, into the folder out; return their names."""
    series = load(name)
    files = split(series)
    with tempfile.TemporaryDirectory() as folder:
        w = Writer(folder, tree)
        copied = {there for patch in files for _, there in patch}
        w.start(sorted({e["file"] for p in series["patch"] for e in p.get("edit", [])} - copied))
        for patch, mine in zip(series["patch"], files):
            for here, there in mine:
                w.copy(here, there, series.get("lacks"))
            for edit in patch.get("edit", []):
                w.edit(edit)
            w.commit(patch["subject"], patch["body"])
        text = series["cover"]["text"].strip()
        if base in series.get("older", {}).get("bases", []):
            older(w, base, series)
            text += "\n\n" + series["older"]["text"]
        shutil.rmtree(out, ignore_errors=True)
        os.makedirs(out)
        first = w.git("rev-list", "--max-parents=0", "HEAD").strip()
        out = os.path.abspath(out)
        w.git("format-patch", "-q", "--cover-letter", "--no-signature", "-o", out, first)
    cover = os.path.join(out, "0000-cover-letter.patch")
    with open(cover, encoding="utf-8") as f:
        letter = f.read()
    letter = letter.replace("*** SUBJECT HERE ***", series["cover"]["subject"]).replace("*** BLURB HERE ***", text)
    with open(cover, "w", encoding="utf-8") as f:
        f.write(letter)
    return sorted(os.listdir(out))
