# SPDX-License-Identifier: GPL-2.0
"""Trace calls of kernel functions in a VM by kprobe events."""
import harness

TRACING = "/sys/kernel/tracing"


def need(test, vm):
    """Skip the test if modules cannot probe functions of the kernel."""
    if vm.run("grep -qw register_kprobe /proc/kallsyms", check=False).rc:
        test.skipTest("the kernel of %s has no kprobes" % harness.GUEST)


def trace(test, vm, *probes):
    """Trace these probes of the group "lab" until the end of the test, which is skipped if the kernel has no kprobe events."""
    if vm.run("mountpoint -q {t} || mount -t tracefs none {t}; [ -e {t}/kprobe_events ]".format(t=TRACING), check=False).rc:
        test.skipTest("the kernel of %s has no kprobe events" % harness.GUEST)
    test.addCleanup(vm.run, "echo 0 > {t}/events/lab/enable; echo > {t}/kprobe_events".format(t=TRACING))
    vm.run("cd %s; echo > trace; %s; echo 1 > events/lab/enable" % (
        TRACING, "; ".join("echo '%s' >> kprobe_events" % probe for probe in probes)))


def traced(vm):
    """Return the text of the trace."""
    return vm.run("cat %s/trace" % TRACING).out
