# SPDX-License-Identifier: GPL-2.0
"""Debian root directories by mmdebstrap, from the mirror that this machine's own apt uses."""
import ctypes
import os
import re
import shutil
import signal
import subprocess

from .errors import LabError

# The first keyrings of each host release with the keys of Debian 13.
KEYRING_MINIMUM = "2023.3+deb12u2"
RELEASES = ("bookworm", "trixie", "forky", "sid", "oldstable", "stable", "testing", "unstable")
PR_SET_PDEATHSIG = 1

# Environment of programs whose output is parsed: English, and with the administrator's programs in PATH, in any root shell.
# HOSTS: variables of make and its caller for builds on the host; a root has its own compilers.
HOSTS = ("CC", "CXX", "LD", "AR", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES",
         "MAKELEVEL", "O", "V")
PLAIN = {**{name: value for name, value in os.environ.items() if name not in HOSTS},
         "LC_ALL": "C.UTF-8", "PATH": os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"}

# Messages of apt, and their meaning for the user.
COMPLAINTS = (
    (r"Could not resolve|Temporary failure resolving|Cannot initiate the connection|Unable to connect|Could not connect|Connection timed out|Connection refused|Network is unreachable|"
     r"Connection failed", "the Debian mirror of apt's configuration cannot be reached: check network and proxy"),
    (r"No space left on device", "the disk of the cache is full: free some space or set ORNIC_CACHE"),
    (r"NO_PUBKEY|not signed|couldn't be verified", "the mirror's signature cannot be checked: "
     "upgrade debian-archive-keyring"),
    (r"Unable to locate package linux-(headers|source)", "the mirror has moved on from the guest image's kernel: "
     "'lab build --force' rebuilds image and build root"),
    (r"Release.*does not have a Release file|404  Not Found", "the mirror does not have what the recipe asks for"),
)


def mirror():
    """Return the URI of the Debian mirror in this machine's apt configuration (works before the first 'apt-get update')."""
    fields = "$(REPO_URI) $(RELEASE) $(COMPONENT)"
    out = subprocess.run(["apt-get", "indextargets", "--no-release-info", "--format", fields,
                          "Created-By: Packages"], capture_output=True, text=True).stdout
    uris = []
    for line in out.splitlines():
        uri, release, component = (line.split() + ["", "", ""])[:3]
        if component == "main" and release in RELEASES and "security" not in uri:
            uris.append(listed_mirror(uri.rstrip("/")))
    if not uris:
        raise LabError("apt on this machine has no Debian mirror: its sources need a line such as "
                       "'deb http://MIRROR/debian trixie main'")
    uris.sort(key=lambda u: not u.endswith("/debian"))
    return uris[0]


def listed_mirror(uri):
    """Return the first mirror of a list in a file of this machine, which a new root does not have; Debian's cloud images use
    one."""
    if not uri.startswith("mirror+file:"):
        return uri
    try:
        with open(uri.removeprefix("mirror+file:")) as f:
            entries = [line.split()[0] for line in f if line.strip() and not line.startswith("#")]
    except OSError as e:
        raise LabError("apt's list of mirrors %s cannot be read: %s" % (e.filename, e.strerror)) from None
    if not entries:
        raise LabError("apt's list of mirrors %s is empty" % uri)
    return entries[0].rstrip("/")


def host_apt_options():
    """Return the options of the host's apt without which a download may fail: proxies and date checks."""
    out = subprocess.run(["apt-config", "dump"], capture_output=True, text=True).stdout
    wanted = re.compile(r'^(Acquire::(https?::Proxy\S*|Check-Valid-Until|Check-Date) "[^"]+");$', re.M)
    return [m.group(1) for m in wanted.finditer(out)]


def host_packages(*needed):
    """Install missing packages on the host; needed holds (program, package) pairs."""
    missing = [] if keyring_is_new_enough() else ["debian-archive-keyring"]
    missing += sorted({package for program, package in needed if not shutil.which(program)})
    if not missing:
        return
    if os.geteuid() != 0:
        raise LabError("missing on this machine: apt-get install " + " ".join(missing))
    env = {**PLAIN, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-y", "-q", "-o", "DPkg::Lock::Timeout=300", "--no-install-recommends"] + missing
    done = subprocess.run(install, capture_output=True, text=True, env=env)
    if done.returncode:
        subprocess.run(["apt-get", "update", "-q"], capture_output=True, env=env)
        done = subprocess.run(install, capture_output=True, text=True, env=env)
    if done.returncode:
        raise LabError("cannot install %s: %s" % (" ".join(missing), last_error(done.stdout + done.stderr)))


def keyring_is_new_enough():
    if not shutil.which("dpkg-query") or not shutil.which("apt-get"):
        raise LabError("no apt-get here: guest images are built on a Debian 12 or 13 machine")
    have = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "debian-archive-keyring"],
                          capture_output=True, text=True).stdout
    return bool(have) and subprocess.run(["dpkg", "--compare-versions", have, "ge", KEYRING_MINIMUM]).returncode == 0


def last_error(text):
    """Return the most informative line of a failed apt or mmdebstrap run; a recipe's script prints "error: ..." itself."""
    own = re.findall(r"^error: (.*)", text, re.M)
    if own:
        return own[-1]
    for pattern, meaning in COMPLAINTS:
        if re.search(pattern, text):
            return meaning
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"E: |.*: error", line) and "mmdebstrap" not in line]
    return (errors or lines or ["no output"])[-1][:200]


def make_root(path, suites, packages, log, step, source=False, hooks=()):
    """Make a Debian root of suites[0] (later suites are preferred) at path; raise LabError with the reason.

    It runs in a separate mount and process namespace: an interrupted build leaves no mount and no process.
    """
    host_packages(("mmdebstrap", "mmdebstrap"), ("unshare", "util-linux"))
    uri = mirror()
    kinds = ("deb", "deb-src") if source else ("deb",)
    sources = "".join("%s %s %s main\n" % (k, uri, s) for s in suites for k in kinds)
    command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
               "mmdebstrap", "--variant=minbase", "--mode=root", '--aptopt=Acquire::Retries "3"',
               "--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/man/*",
               "--dpkgopt=path-exclude=/usr/share/locale/*", "--dpkgopt=force-unsafe-io",
               # a mirror may serve an older state of testing for good; signatures are still checked
               '--aptopt=Acquire::Check-Valid-Until "false"']
    command += ["--aptopt=" + option for option in host_apt_options()]
    if len(suites) > 1:
        command.append('--aptopt=APT::Default-Release "%s"' % suites[-1])
    for hook in hooks:
        command.append("--customize-hook=" + hook)
    command += ["--include=" + ",".join(packages), suites[0], path, "-"]
    run_logged(command, log, step, sources)


def run_logged(command, log, step, stdin=""):
    """Run a long command, with its output in log and its last line as the step's remark."""
    with open(log, "ab") as out:
        out.write(("\n$ " + " ".join(command) + "\n").encode())
        out.flush()
        start = out.tell()
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=out, text=True,
                                 preexec_fn=die_with_parent, env=PLAIN)
        try:
            child.stdin.write(stdin)
            child.stdin.close()
            while True:
                try:
                    child.wait(1)
                    break
                except subprocess.TimeoutExpired:
                    step.note(last_line(log, start))
        except BaseException:
            child.kill()
            child.wait()
            raise
    if child.returncode:
        with open(log, errors="replace") as f:
            f.seek(start)
            raise LabError("%s failed: %s (log: %s)" % (step.what, last_error(f.read()), log))


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def last_line(path, start):
    with open(path, "rb") as f:
        f.seek(0, os.SEEK_END)
        f.seek(max(start, f.tell() - 400))
        lines = [l.strip() for l in re.split(r"[\r\n]", f.read().decode(errors="replace")) if l.strip()]
    return lines[-1] if lines else ""
