# SPDX-License-Identifier: GPL-2.0
"""A series of patches from the files of this checkout and a description, SERIES/series.toml, for the source of a base."""
import datetime
import fnmatch
import glob
import os
import re
import shutil
import subprocess
import tempfile
import tomllib

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))


# A list of objects of a Makefile, and a source in the list of a CMakeLists.txt.
OBJECTS = re.compile(r"^(\w+-y := )((?:[^\n\\]|\\\n)*)", re.M)
SOURCE = re.compile(r"^  (\w+\.c)\n", re.M)
# A member of a table of functions.
MEMBER = re.compile(r"^\t\.\w+ = (\w+),\n", re.M)


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


INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"(?:\.\./)*([^"]+)"|<([^>]+)>)', re.M)


def included(path):
    """Names of the headers that a file includes, as it writes them, without ../"""
    with open(os.path.join(TOP, path), encoding="utf-8") as f:
        return {quoted or angled for quoted, angled in INCLUDE.findall(f.read())}


def place_headers(series, files):
    """A header below "headers" goes to the first patch whose files include it, also by way of another header."""
    waiting = {path: to + os.path.basename(path) for path in tracked() for pattern, to in series.get("headers", [])
               if matches(path, pattern) and path not in series["left_out"]}
    for mine in files:
        todo = [here for here, _ in mine]
        while todo:
            folder, names = os.path.dirname(todo[-1]), included(todo.pop())
            for path in sorted(waiting):
                # a private header is next to the file, or in the folder above its tests
                if os.path.basename(path) in names and folder.removesuffix("/tests").endswith(os.path.dirname(path)):
                    mine.append((path, waiting.pop(path)))
                    todo.append(path)
    return ["no file includes %s" % path for path in sorted(waiting)]


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
        if any(matches(path, pattern) for pattern, _ in series.get("headers", [])):
            continue
        named = [w for w in wide if matches(path, w[1])]
        exact = [w for w in named if not os.path.basename(w[1]).startswith("*")]
        mine = exact or named
        if len(mine) != 1:
            lost.append("%s is in %d patches" % (path, len(mine)))
            continue
        i, pattern, to = mine[0]
        used |= {(i, name) for name in spread(pattern) if matches(path, name)}
        files[i].append((path, to + os.path.basename(path)))
    lost += ["%s names no file" % name for i, pattern, _ in wide for name in spread(pattern) if (i, name) not in used]
    # earlier forms of files that a later patch brings
    for i, patch in enumerate(series["patch"]):
        for here, to in patch.get("first", []):
            there = to + os.path.basename(here)
            if not any(there == t for later in files[i + 1:] for _, t in later):
                lost.append("no later patch has %s" % there)
            files[i].append((here, there))
    lost += place_headers(series, files)
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


def grown(text, exists):
    """A Makefile or CMakeLists.txt whose list of sources has only those that exist already."""
    def cut(match):
        lines = [" ".join(w for w in line.split() if exists(w[:-1] + "c")) for line in match[2].split("\\\n")]
        indent = re.search(r"\\\n(\s*)|$", match[2])[1]
        return match[1] + (" \\\n%s" % indent).join(line for line in lines if line)
    if all(exists(w[:-1] + "c") for _, names in OBJECTS.findall(text) for w in names.replace("\\\n", "").split()):
        cut = None
    text = OBJECTS.sub(cut, text) if cut else text
    return SOURCE.sub(lambda match: match[0] if exists(match[1]) else "", text)


def with_members(text, exists):
    """A source whose tables of functions have only the functions that exist already."""
    return MEMBER.sub(lambda match: match[0] if exists(match[1]) else "", text)


def insert_entry(text, title, add):
    """A section of MAINTAINERS before the first one that sorts behind it."""
    lines = text.splitlines(keepends=True)
    start = next(i for i, line in enumerate(lines) if line.startswith("3C59X NETWORK DRIVER"))
    at = next((i for i in range(start, len(lines) - 1) if lines[i] > title and lines[i][0].isupper() and lines[i - 1] == "\n"
               and re.match(r"[A-Z]:\t", lines[i + 1])), None)
    if at is None:
        raise SeriesError("no place for %s" % title)
    return "".join(lines[:at]) + title + "\n" + add + "\n\n" + "".join(lines[at:])


def edited(text, edit, name, mail):
    person = "%s <%s>" % (name, mail)
    add = edit["add"].replace("{person}", person).replace("{name}", name).replace("{year}", str(datetime.date.today().year))
    if "entry" in edit:
        return insert_entry(text, edit["entry"], "M:\t%s\n%s" % (person, add.strip("\n")))
    if "replace" in edit:
        if text.count(edit["replace"]) != 1:
            raise SeriesError("%s has %s not once" % (edit["file"], edit["replace"]))
        return text.replace(edit["replace"], add)
    if "end" in edit:
        return text + add.lstrip("\n") + "\n" if text.endswith("\n\n") else text + "\n" + add.lstrip("\n") + "\n"
    lines = text.splitlines(keepends=True)
    begin = next(edit[how] for how in ("after", "after_each", "after_last", "before", "sorted") if how in edit)
    found = [i for i, line in enumerate(lines) if line.startswith(begin)]
    if "sorted" in edit:
        found = [i for i in found if lines[i] < add]
    if not found:
        raise SeriesError("the base's %s has no line %s" % (edit["file"], begin))
    chosen = found if "after_each" in edit else found[-1:] if "after_last" in edit or "sorted" in edit else found[:1]
    if "before" in edit:
        chosen = [chosen[0] - 1]
    for at in reversed(chosen):
        lines.insert(at + 1, add + "\n")
    return "".join(lines)


class Writer:
    """A repository with those files of the base that the series changes."""

    def __init__(self, folder, base, tables=()):
        self.folder, self.base, self.tables = folder, base, tables
        self.whole = {}     # files that grow, as they are after the last patch
        self.git("init", "-q")
        for key in ("user.name", "user.email"):
            value = subprocess.run(["git", "-C", TOP, "config", key], capture_output=True, text=True).stdout.strip()
            if not value:
                raise SeriesError("git config %s is not set: a series needs an author" % key)
            self.git("config", key, value)
        self.person = [self.git("config", key).strip() for key in ("user.name", "user.email")]

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

    def copy(self, here, there, lacks=None, before=""):
        if os.path.exists(os.path.join(self.base, there)):
            raise SeriesError("the base has a %s of its own" % there)
        with open(os.path.join(TOP, here), encoding="utf-8") as f:
            text = newest(f.read(), lacks) if lacks else f.read()
        if os.path.basename(there) in ("Makefile", "CMakeLists.txt") or there in self.tables:
            if before:
                first, rest = text.split("\n", 1)
                text = first + "\n" + before + rest
            self.whole[there] = text
        self.put(there, text, 0o755 if os.access(os.path.join(TOP, here), os.X_OK) else 0o644)

    def edit(self, edit):
        path = edit["file"]
        if path in self.whole:
            self.whole[path] = edited(self.whole[path], edit, *self.person)
            return
        if not os.path.exists(os.path.join(self.folder, path)):
            raise SeriesError("the base has no %s" % path)
        with open(os.path.join(self.folder, path), encoding="utf-8") as f:
            text = f.read()
        self.put(path, edited(text, edit, *self.person))

    def commit(self, subject, body):
        for path, text in self.whole.items():
            folder = os.path.join(self.folder, os.path.dirname(path))
            if path in self.tables:
                sources = "".join(open(c, encoding="utf-8").read() for c in glob.glob(folder + "/*.c"))
                self.put(path, with_members(text, lambda name: not name.startswith("ornic_") or
                                            re.search(r"^\w[^\n;=]*\b%s[(\[ ]" % name, sources, re.M)))
            else:
                self.put(path, grown(text, lambda name: os.path.exists(os.path.join(folder, name))))
        self.git("add", "-A", "-f")
        self.git("commit", "-q", "-s", "-m", subject + "\n\n" + body.strip() + "\n")


def older(writer, about):
    """The wrappers for a base whose verbs have older signatures, in each driver's folder."""
    for driver in about["drivers"]:
        for path in tracked():
            if path.startswith("compat/"):
                writer.copy(path, driver + path)
    writer.commit(about["subject"], about["body"])


# Where the source of a kind has its version.
VERSIONS = {"kernel": ("Linux", "Makefile", [r"^VERSION = (\d+)", r"^PATCHLEVEL = (\d+)", r"^SUBLEVEL = (\d+)"]),
            "rdma-core": ("rdma-core", "CMakeLists.txt", [r'set\(PACKAGE_VERSION "([\d.]+)'])}


def version(kind, tree):
    """The numbers of the version of the source in tree."""
    what, name, patterns = VERSIONS[kind]
    try:
        with open(os.path.join(tree, name), encoding="utf-8") as f:
            text = f.read()
    except OSError as e:
        raise SeriesError("%s is not a source tree of %s: %s" % (tree, what, e)) from e
    found = [re.search(p, text, re.M) for p in patterns]
    if not all(found):
        raise SeriesError("%s is not a source tree of %s: its %s has no version" % (tree, what, name))
    return [int(n) for match in found for n in match[1].split(".")]


def base_lines(kind, tree):
    """What the source in tree is, and its commit if it is a checkout of git."""
    lines = ["base-version: %s %s" % (VERSIONS[kind][0], ".".join(map(str, version(kind, tree))))]
    done = subprocess.run(["git", "-C", tree, "rev-parse", "--show-cdup", "HEAD"], capture_output=True, text=True)
    if done.returncode == 0 and done.stdout.startswith("\n"):   # tree is the top of a checkout
        lines.append("base-commit: " + done.stdout.strip())
    return "\n".join(lines)


def ranges(series, skip):
    """For each mailing list the numbers of its patches, of a series that begins with skip others."""
    numbers = {}
    for i, patch in enumerate(series["patch"], 1 + skip):
        numbers.setdefault(patch.get("to", "all"), []).append(i)
    said = {}
    for to, mine in numbers.items():
        if mine != list(range(mine[0], mine[-1] + 1)):
            raise SeriesError("patches for %s are not one after the other" % to)
        said[to] = "patch %d" % mine[0] if len(mine) == 1 else "patches %d to %d" % (mine[0], mine[-1])
    return said


def is_older(series, kind, tree):
    """Whether the source in tree needs the wrappers."""
    return "older" in series and version(kind, tree) < series["older"]["before"]


def make(name, tree, out):
    """Write the patches for the source in tree into the folder out; return their names."""
    series = load(name)
    files = split(series)
    about = series["older"] if is_older(series, name, tree) else {}
    with tempfile.TemporaryDirectory() as folder:
        w = Writer(folder, tree, series.get("tables", ()))
        copied = {there for patch in files for _, there in patch}
        w.start(sorted({e["file"] for p in series["patch"] for e in p.get("edit", [])} - copied))
        if about:
            older(w, about)
        for patch, mine in zip(series["patch"], files):
            for here, there in mine:
                w.copy(here, there, series.get("lacks"), about.get("makefile", "") if there.startswith(tuple(about.get("drivers", ())))
                       and "/tests/" not in there else "")
            edits = patch.get("edit", [])
            for edit in edits + [e for e in about.get("edit", []) if e["file"] in {mine["file"] for mine in edits}]:
                w.edit(edit)
            w.commit(patch["subject"], patch["body"])
        text = series["cover"]["text"].strip().format(**ranges(series, 1 if about else 0))
        text = "\n\n".join([text] + ([about["text"].strip()] if about else []) + [base_lines(name, tree)])
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
