# SPDX-License-Identifier: GPL-2.0
#
# make help lists the targets. All output goes to build/; downloads (guest image, QEMU, compilers for the guest) go once to
# $ORNIC_CACHE.

O	?= build
GUEST	?= trixie
KDIR	?=
DESTDIR	?=
PREFIX	?= /usr/local
LAB	:= tools/lab/lab
guest	:= $(O)/guest/$(GUEST)

ifeq ($(origin CC),default)
CC	:= gcc
endif
CFLAGS	?= -O2 -g
warn	:= -Wall -Wextra -Werror -Wmissing-prototypes -Wstrict-prototypes
base	:= -std=gnu11 -D_GNU_SOURCE $(warn) -Iinclude -Itools/ornicd -MMD -MP $(CPPFLAGS)
san	:= -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer

# V=1 shows the commands
Q	:= $(if $(V),,@)

# As many commands at a time as there are processors, unless the user gives -j or this make was started by another
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc)
endif

# su without a dash leaves root a path on which dpkg does not find its own programs
export PATH := $(PATH):/usr/sbin:/sbin

# ---- errors are reported before anything starts -----------------------------

goals := $(filter-out help clean,$(or $(MAKECMDGOALS),all))
ifneq ($(goals),)
ifneq ($(words $(CURDIR)),1)
$(error the path of this checkout has a space in it, which make cannot handle: move the checkout)
endif
ifneq ($(filter /% ~% ../%,$(O))$(filter-out 1,$(words $(O))),)
$(error O=$(O) is no name of a folder inside this checkout, such as O=build)
endif
ifneq ($(shell test -w $(firstword $(wildcard $(O)) .) || echo no),)
$(error $(abspath $(firstword $(wildcard $(O)) .)) may not be written by user $(shell id -un): it is read-only or belongs to somebody else, use a clone of your own)
endif
ifneq ($(KDIR),)
ifeq ($(wildcard $(KDIR)/Makefile),)
$(error KDIR=$(KDIR) has no Makefile: name a kernel's build folder, on Debian apt-get install linux-headers-VERSION makes /lib/modules/VERSION/build)
endif
endif
endif

.PHONY: all
all: $(O)/ornicd $(O)/ornicctl provider modules
	@echo
	@echo "built: $(O)/ornicd                                the reference device"
	@echo "       $(O)/ornicctl                              shows and changes what it does"
	@echo "       $(patsubst $(CURDIR)/%,%,$(wildcard $(CURDIR)/$(guest)/libornic-rdmav*.so))  provider, with ornic.driver beside it"
ifeq ($(KDIR),)
	@echo "       $(guest)/ornic.ko ornic_ib.ko drivers for the kernel of guest $(GUEST)"
else
	@echo "       $(O)/modules/ornic.ko ornic_ib.ko             drivers for $(KDIR)"
endif
	@echo "next:  make demo, or make check"

# ---- requirements of the host ----------------------------------------------

deps := $(O)/.deps
$(deps): tools/build/deps
	@mkdir -p $(O)
	@tools/build/deps && touch $@ || [ $$? = 3 ]	# 3: lists what some tests or targets need, and comes again

# ---- ornicd and ornicctl -------------------------------------------------------

# Options that harden the programs, as far as the compiler takes them: found out when they are first needed
harden := tools/build/harden
harden_compile = $(eval harden_compile := $$(shell $(harden) compile pie "$$(CC)" $$(CPPFLAGS) $$(CFLAGS)))$(harden_compile)
harden_link = $(eval harden_link := $$(shell $(harden) link pie "$$(CC)" $$(LDFLAGS)))$(harden_link)

# ornicd_rules: $(1) folder for objects, $(2) extra flags, $(3) flags of the compiler and $(4) of the linker before the user's
ornicd_src := $(wildcard tools/ornicd/*.c tools/ornicd/*/*.c)
ornicd_lib := $(filter-out tools/ornicd/main.c,$(ornicd_src))
ornicd_libs := -ljansson -ldeflate
ornicctl_src := $(wildcard tools/ornicctl/*.c)
define ornicd_rules
$(1)/%.o: %.c $(harden) | $(deps)
	@mkdir -p $$(@D)
	@echo "  CC      $$@"
	$$(Q)$$(CC) $$(base) $(3) $$(CFLAGS) $(2) -c -o $$@ $$<

$(1)/libornicd.a: $(patsubst %.c,$(1)/%.o,$(ornicd_lib))
	@rm -f $$@
	@echo "  AR      $$@"
	$$(Q)ar rcs $$@ $$^

$(1)/ornicd: $(1)/tools/ornicd/main.o $(1)/libornicd.a
	@echo "  LD      $$@"
	$$(Q)$$(CC) $(2) $(4) $$(LDFLAGS) -o $$@ $$^ $$(ornicd_libs)

$(1)/ornicctl: $(patsubst %.c,$(1)/%.o,$(ornicctl_src))
	@echo "  LD      $$@"
	$$(Q)$$(CC) $(2) $(4) $$(LDFLAGS) -o $$@ $$^ -ljansson

-include $(patsubst %.c,$(1)/%.d,$(ornicd_src) $(ornicctl_src))
endef
$(eval $(call ornicd_rules,$(O)/host,,$$(harden_compile),$$(harden_link)))
$(eval $(call ornicd_rules,$(O)/san,$(san)))

$(O)/ornicd $(O)/ornicctl: $(O)/%: $(O)/host/%
	@cp -f $< $@.new && mv $@.new $@

# ---- drivers and provider, for the guest --------------------------------------

kernel_src := $(shell find -L drivers include uapi compat Kbuild Kconfig -type f 2>/dev/null)
provider_src := $(wildcard tools/libornic/*) $(harden) $(wildcard include/ornic/*) $(wildcard uapi/rdma/*)
ko := drivers/net/ethernet/ornic/ornic.ko drivers/infiniband/hw/ornic/ornic_ib.ko
in_guest := $(LAB) buildroot-run --guest $(GUEST) --
recipe := $(wildcard tools/lab/recipes/$(GUEST).toml)

# kernel_tree: a copy of the sources in which Kbuild may write
define kernel_tree
	@mkdir -p $(1)
	@cp -au drivers include uapi compat Kbuild Kconfig $(1)/
endef

.PHONY: modules provider guest-modules
provider: $(guest)/ornic.driver
guest-modules: $(guest)/ornic.ko

# Warnings are errors for the guest whose compiler does not change. W=1 also checks kernel-doc, in a process for each file.
kbuild := $(if $(filter trixie,$(GUEST)),W=1 KCFLAGS=-Werror)

# kbuild_in: $(1) folder in $(guest), $(2) more arguments. Its path is in the compiler's arguments, so it is the same for all
# checkouts; otherwise ccache would find nothing that another one compiled.
kbuild_in = $(in_guest) sh -c 'mount --bind $(CURDIR)/$(guest) /mnt && \
	make -s -j$$(nproc) -C /lib/modules/*/build M=/mnt/$(1) $(kbuild) $(2)'

$(guest)/ornic.ko: $(kernel_src) $(recipe) | $(deps)
	$(call kernel_tree,$(guest)/tree)
	@echo "  KBUILD  $@"
	$(Q)$(call kbuild_in,tree,modules)
	@for ko in $(ko); do objcopy --strip-debug $(guest)/tree/$$ko $(guest)/$${ko##*/} || exit; done

# The objects stay: only sparse runs again
.PHONY: sparse
sparse: $(guest)/ornic.ko
	$(Q)$(call kbuild_in,tree,C=2 CF=-Wsparse-error modules)

# The number in the library's name is that of rdma-core's private interface.
$(guest)/ornic.driver: $(provider_src) $(recipe) | $(deps)
	@mkdir -p $(guest)/libornic
	@echo "  LD      $(guest)/libornic-rdmav*.so"
	$(Q)$(in_guest) sh -c 'make -s -j$$(nproc) -C tools/libornic RDMA_CORE=/usr/src/rdma-core O=$(CURDIR)/$(guest)/libornic'
	@rm -f $(guest)/libornic-rdmav*.so
	@cp $(guest)/libornic/libornic-rdmav*.so $(guest)/
	@cp tools/libornic/ornic.driver $(guest)/

# Objects built for one kernel do not serve another: the folder remembers which it was.
ifeq ($(KDIR),)
modules: guest-modules
else
modules: | $(deps)
	@[ "$$(cat $(O)/modules/kdir 2>/dev/null)" = "$(realpath $(KDIR))" ] || rm -rf $(O)/modules
	$(call kernel_tree,$(O)/modules/tree)
	@echo $(realpath $(KDIR)) > $(O)/modules/kdir
	@echo "  KBUILD  $(O)/modules/ornic.ko for $(KDIR)"
	$(Q)$(MAKE) -s -C $(KDIR) M=$(CURDIR)/$(O)/modules/tree $(if $(W),W=$(W)) modules
	@cp $(addprefix $(O)/modules/tree/,$(ko)) $(O)/modules/
	@echo "built: $(O)/modules/ornic.ko ornic_ib.ko for $(KDIR)"
endif

# ---- install -------------------------------------------------------------------

.PHONY: install
install: $(O)/ornicd $(O)/ornicctl
	for p in ornicd ornicctl; do \
		install -D -m 755 $(O)/$$p $(DESTDIR)$(PREFIX)/sbin/$$p && \
		install -D -m 644 Documentation/man/$$p.8 $(DESTDIR)$(PREFIX)/share/man/man8/$$p.8 || exit; \
	done

# ---- series for the kernel and rdma-core ----------------------------------------

BASE	?= 7.2
.PHONY: kernel-series rdma-core-series upstream-check
kernel-series: | $(deps)
	@tools/series/make kernel $(BASE) $(O)/series/kernel-$(notdir $(BASE:/=))

rdma-core-series: BASE := rdma-core
rdma-core-series: | $(deps)
	@tools/series/make rdma-core $(BASE) $(O)/series/rdma-core

upstream-check: $(O)/ornicd | $(deps)
	O=$(CURDIR)/$(O) selftests/upstream/test_series.py --all
	O=$(CURDIR)/$(O) selftests/upstream/test_boot.py --all

# ---- use -------------------------------------------------------------------------

.PHONY: demo check bench fresh-check docs clean help
demo: $(O)/ornicd provider guest-modules
	@tools/lab/demo $(if $(KEEP),--keep) $(if $(RUNS),--runs $(RUNS))

bench: $(O)/ornicd provider guest-modules
	@tools/lab/bench $(if $(SHORT),--short) $(if $(RUNS),--runs $(RUNS)) $(if $(JSON),--json $(JSON))

fresh-check: | $(deps)
	@tools/build/fresh --dir $(O)/fresh $(if $(SUITE),--suite $(SUITE))

include selftests/Makefile

docs: | $(deps)
	@$(MAKE) -s -C Documentation html OUT=$(CURDIR)/$(O)/doc

clean:
	rm -rf $(O)

help:
	@echo "make           build ornicd, ornicctl, the drivers and the provider into $(O)/"
	@echo "make demo      boot two VMs with an ornic device each and show what they can do (as root)"
	@echo "make demo KEEP=1      leave the VMs up afterwards and tell how to get into them"
	@echo "make check     run all tests (as root); make check T=unit/test_mr runs one"
	@echo "make check JOBS=1     one test program after the other, not as many at a time as there is room for"
	@echo "make check HOSTS=udp T=guest     the guest tests with a daemon for each VM; also HOSTS=veth"
	@echo "make check INTEROP=all T=interop every test of Soft-RoCE with each release, not with one only"
	@echo "make fuzz      look for inputs that break the device; make fuzz T=packet TIME=1800 one target for so many seconds"
	@echo "make mutants   make small mistakes in the sources that changed since the last commit and list those that no test notices"
	@echo "make mutants REV=main N=200   since another revision, more of them; also FILES=tools/ornicd/vfu, ALL=1, SEED=7 as before"
	@echo "make device-faults GUEST=trixie-debug TIME=3600 SEED=1   inject device faults while programs and the kernel use the device"
	@echo "make uverbs-fuzz GUEST=trixie-debug TIME=3600 SEED=1     send changed commands to uverbs while the device comes and goes"
	@echo "make bench     measure against Soft-RoCE and virtio-net; make bench SHORT=1 does a twentieth of the work"
	@echo "make fresh-check      download, build and measure in a new Debian root with an empty cache (as root, takes long)"
	@echo "make modules KDIR=/lib/modules/\$$(uname -r)/build   drivers for another kernel"
	@echo "make kernel-series    patches for a kernel tree; BASE=6.12, BASE=7.2 (Debian's source) or BASE=FOLDER"
	@echo "make rdma-core-series the same for rdma-core"
	@echo "make sparse    check the drivers with sparse (as root)"
	@echo "make upstream-check   build the series step by step, all of rdma-core, boot the kernels"
	@echo "make install   ornicd, ornicctl and their man pages below PREFIX=$(PREFIX)"
	@echo "make docs      specification and guides as HTML into $(O)/doc"
	@echo "make clean     remove $(O)/ (the cache stays: tools/lab/lab cache --help)"

.DELETE_ON_ERROR:
