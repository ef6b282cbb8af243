#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Who may connect to the sockets of a real daemon: owner, group and mode of devices, ports and the control socket."""
import json
import os
import stat
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))

import control  # noqa: E402
import tap      # noqa: E402

USER, GROUP, OTHER_GROUP = 65534, 65533, 65532      # numbers need no entry in /etc/passwd
CONNECT = "import socket, sys; socket.socket(socket.AF_UNIX, getattr(socket, sys.argv[2])).connect(sys.argv[1])"
ROOT = unittest.skipUnless(os.geteuid() == 0, "only root can give sockets away and become somebody else")


def become(uid, gid, *groups):
    return ["setpriv", "--reuid=%d" % uid, "--regid=%d" % gid, *(["--groups=" + ",".join(str(g) for g in groups)] if groups else
                                                                ["--clear-groups"])]


class Access(unittest.TestCase):
    def make(self, *options, control_socket=True):
        """Return a daemon that is not started, with a folder that everybody may enter; {} in options is the folder."""
        daemon = control.Daemon(self)
        daemon.stop()
        os.chmod(daemon.dir, 0o755)
        daemon.argv = [control.ORNICD, *(option.replace("{}", daemon.dir) for option in options)]
        if control_socket:
            daemon.argv += ["--control", daemon.control]
        return daemon

    def start(self, *options):
        daemon = self.make(*options)
        daemon.start()
        return daemon

    def expect(self, daemon, name, owner, group, mode):
        st = os.stat(daemon.path(name))
        self.assertTrue(stat.S_ISSOCK(st.st_mode))
        self.assertEqual((name, st.st_uid, st.st_gid, oct(stat.S_IMODE(st.st_mode))), (name, owner, group, oct(mode)))

    def may(self, allowed, daemon, name, uid, gid, *groups, kind="SOCK_STREAM"):
        """Check whether this user with these groups may connect."""
        done = subprocess.run([*become(uid, gid, *groups), sys.executable, "-c", CONNECT, daemon.path(name), kind],
                              capture_output=True, text=True)
        self.assertEqual((name, done.returncode == 0), (name, allowed), done.stderr)
        if not allowed:
            self.assertIn("PermissionError", done.stderr)

    def fails(self, status, why, daemon, before=()):
        """Check that the daemon does not start, for this reason, and has created nothing."""
        done = subprocess.run([*before, *daemon.argv], capture_output=True, text=True, timeout=control.PATIENCE)
        self.assertEqual((done.returncode, done.stderr), (status, "ornicd: error: %s\n" % why.replace("{}", daemon.dir)))
        self.assertEqual(os.listdir(daemon.dir), ["log"])

    def test_default(self):
        """Sockets are for the daemon's user, whatever the umask."""
        before = os.umask(0)
        self.addCleanup(os.umask, before)
        for umask in (0, 0o777):
            daemon = self.make("-d", "path={}/a", "-p", "stream,path={}/s", "-p", "dgram,local={}/l,remote={}/r")
            os.umask(umask)
            daemon.start()
            os.umask(before)
            for name in ("a", "s", "l", "control"):
                self.expect(daemon, name, os.geteuid(), os.stat(daemon.dir).st_gid if os.stat(daemon.dir).st_mode & stat.S_ISGID
                            else os.getegid(), 0o600)
            daemon.stop()

    def test_mode(self):
        """Modes of all sockets, and those of one, in any order of the options; no root is needed."""
        daemon = self.start("-d", "path={}/a", "-d", "path={}/b,mode=0666", "--socket-mode", "0640", "-p", "stream,path={}/s,mode=60",
                            "-p", "dgram,local={}/l,remote={}/r")
        mode = {name: stat.S_IMODE(os.stat(daemon.path(name)).st_mode) for name in ("a", "b", "s", "l", "control")}
        self.assertEqual(mode, {"a": 0o640, "b": 0o666, "s": 0o060, "l": 0o640, "control": 0o600})
        self.assertEqual([d["access"]["mode"] for d in daemon.client().call("device.list")], ["0640", "0666"])
        self.assertEqual([d["access"]["owner"] for d in json.loads(daemon.ctl("device", "list", "--json"))], [os.geteuid()] * 2)

    @ROOT
    def test_owner_and_group(self):
        """Users other than root connect to the sockets that are for them, and to no others."""
        daemon = self.start("--socket-group", str(GROUP), "--socket-mode", "0660", "-d", "path={}/all", "-d", "path={}/own,owner=%d,mode=600"
                            % USER, "-d", "path={}/closed,group=%d" % OTHER_GROUP, "-p", "stream,path={}/s", "-p",
                            "dgram,local={}/l,remote={}/r,owner=%d" % USER)
        for name, owner, group, mode in (("all", 0, GROUP, 0o660), ("own", USER, GROUP, 0o600), ("closed", 0, OTHER_GROUP, 0o660),
                                         ("s", 0, GROUP, 0o660), ("l", USER, GROUP, 0o660), ("control", 0, os.getegid(), 0o600)):
            self.expect(daemon, name, owner, group, mode)
        self.assertEqual([d["access"] for d in daemon.client().call("device.list")],
                         [{"owner": owner, "group": group, "mode": mode} for owner, group, mode in
                          ((0, GROUP, "0660"), (USER, GROUP, "0600"), (0, OTHER_GROUP, "0660"))])
        for name, member, user in (("all", True, False), ("own", False, True), ("closed", False, False), ("s", True, False),
                                   ("control", False, False)):
            self.may(member, daemon, name, USER - 1, USER, GROUP)
            self.may(user, daemon, name, USER, USER)
        self.may(True, daemon, "l", USER - 1, USER, GROUP, kind="SOCK_DGRAM")
        self.may(False, daemon, "l", USER - 1, USER, kind="SOCK_DGRAM")
        daemon.stop()
        self.assertEqual(os.listdir(daemon.dir), ["log"])

    @ROOT
    def test_control(self):
        """The control socket has options of its own: who may use a device may not use it."""
        daemon = self.start("-d", "path={}/a", "--socket-owner", str(USER), "--control-owner", str(USER - 1), "--control-group", str(GROUP),
                            "--control-mode", "0660")
        self.expect(daemon, "a", USER, os.getegid(), 0o600)
        self.expect(daemon, "control", USER - 1, GROUP, 0o660)
        self.may(True, daemon, "a", USER, USER)
        self.may(False, daemon, "control", USER, USER)
        self.may(True, daemon, "control", USER - 1, USER)
        self.may(True, daemon, "control", USER, USER, GROUP)

    @ROOT
    def test_file(self):
        """The same in a configuration file, with names."""
        daemon = self.make("--config", "{}/conf", control_socket=False)
        with open(daemon.path("conf"), "w", encoding="utf-8") as f:
            json.dump({"socket_owner": str(USER), "socket_group": str(GROUP), "socket_mode": "0660", "control": daemon.control,
                       "control_owner": str(USER), "control_group": "root", "control_mode": "0606",
                       "devices": [{"path": daemon.path("a")},
                                   {"path": daemon.path("b"), "owner": "root", "group": str(OTHER_GROUP), "mode": "0200"}]}, f)
        daemon.start()
        self.expect(daemon, "a", USER, GROUP, 0o660)
        self.expect(daemon, "b", 0, OTHER_GROUP, 0o200)
        self.expect(daemon, "control", USER, 0, 0o606)

    @ROOT
    def test_names(self):
        daemon = self.start("-d", "path={}/a,owner=nobody,group=nogroup")
        self.may(True, daemon, "a", USER, USER)
        self.expect(daemon, "a", USER, os.stat(daemon.path("a")).st_gid, 0o600)

    @ROOT
    def test_while_running(self):
        """Ports that are added later have the defaults of the start, and take numbers only, because names may have to be waited for."""
        daemon = self.start("-d", "path={}/a", "--socket-group", str(GROUP), "--socket-mode", "0660")
        daemon.ctl("port", "add", "stream,path=%s,name=one" % daemon.path("s"))
        self.expect(daemon, "s", 0, GROUP, 0o660)
        daemon.ctl("port", "add", "stream,path=%s,owner=%d,mode=0600,name=two" % (daemon.path("t"), USER))
        self.expect(daemon, "t", USER, GROUP, 0o600)
        said = daemon.ctl("port", "add", "stream,path=%s,group=root,name=three" % daemon.path("u"), status=1)
        self.assertIn('group "root" is not a number; while the daemon runs, use the number that "getent group root" shows', said)
        self.assertFalse(os.path.exists(daemon.path("u")))

    def test_unknown(self):
        for option, who in ((["-d", "path={}/b,owner=no-such"], '{}/b: there is no user "no-such"'),
                            (["-d", "path={}/b,group=no-such"], '{}/b: there is no group "no-such"'),
                            (["--socket-group", "no-such"], 'sockets: there is no group "no-such"'),
                            (["--control-owner", "no-such"], 'control socket: there is no user "no-such"'),
                            (["-p", "stream,path={}/s,group=no-such"], 'stream,path={}/s,group=no-such: there is no group "no-such"')):
            self.fails(2, who, self.make("-d", "path={}/a", *option))

    @ROOT
    def test_not_permitted(self):
        """A daemon without root may only set its own user and groups. It says so before it creates any socket."""
        user = "cannot listen on {}/%s: cannot give it to user 0: Operation not permitted; only root may do that"
        group = "cannot listen on {}/%s: cannot give it to group %d: Operation not permitted; only root and members of the group may do that"
        for option, why in ((["-d", "path={}/b,owner=root"], user % "b"), (["-d", "path={}/b,group=%d" % OTHER_GROUP], group % ("b", OTHER_GROUP)),
                            (["--socket-group", "0"], group % ("a", 0)), (["--control-owner", "root"], user % "control"),
                            (["-p", "stream,path={}/s,group=0"], group % ("s", 0)),
                            (["-p", "dgram,local={}/l,remote={}/r,owner=0"], user % "l")):
            daemon = self.make("-d", "path={}/a", *option)
            os.chown(daemon.dir, USER, USER)
            self.fails(1, why, daemon, before=become(USER, USER, GROUP))
        daemon = self.make("-d", "path={}/a,owner=%d,group=%d" % (USER, GROUP), "--socket-mode", "0660")
        os.chown(daemon.dir, USER, USER)
        daemon.argv[:0] = become(USER, USER, GROUP)
        daemon.start()
        self.expect(daemon, "a", USER, GROUP, 0o660)
        self.may(True, daemon, "a", USER - 1, USER, GROUP)

    def test_wrong(self):
        for option, why in ((["--socket-mode", "0888"], 'sockets: mode "0888" is not an octal number from 0 to 0777'),
                            (["-d", "path={}/b,mode=01777"], '{}/b: mode "01777" is not an octal number from 0 to 0777'),
                            (["-d", "path={}/b,owner=4294967295"], "{}/b: user 4294967295 is not a number below 4294967295"),
                            (["-p", "stream,path={}/s,server=off,mode=600"],
                             '"stream,path={}/s,server=off,mode=600": mode= is for the socket of server=on')):
            self.fails(2, why, self.make("-d", "path={}/a", *option))


if __name__ == "__main__":
    tap.main()
