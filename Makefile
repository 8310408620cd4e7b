# Baleen. `make run` starts it, `make test` tests it, `make help` lists the rest.
# Everything built goes to $(B); a second tree is `make B=build/x ...`, with other flags if you like.

B            ?= build
PREFIX       ?= /usr/local
DESTDIR      ?=
OPT          ?= -O2
SANITIZE     ?=
PYTHON       ?= /usr/bin/python3
CONFIG       ?= examples/baleen.yaml
FUZZ_SECONDS ?= 20

VERSION := $(shell cat VERSION)
MACHINE := $(shell uname -m)

WARNINGS := -Wall -Wextra -Wshadow -Wvla -Wstrict-prototypes -Wmissing-prototypes -Werror
HARDEN   := -fstack-protector-strong -fstack-clash-protection
HARDEN   += $(if $(filter x86_64,$(MACHINE)),-fcf-protection)
ifeq ($(SANITIZE),)
HARDEN   += -D_FORTIFY_SOURCE=2
NO_UNDEF := -Wl,-z,defs
else
SANFLAGS := -fsanitize=$(SANITIZE) -fno-omit-frame-pointer -fno-sanitize-recover=all
endif
# gcc would copy names with `rep movs`, whose start costs more than the C library's whole copy.
TUNE     := -mmemcpy-strategy=libcall:-1:noalign -mmemset-strategy=libcall:-1:noalign
TUNE     := $(if $(filter x86_64,$(MACHINE)),$(shell $(CC) -Werror $(TUNE) -E -x c /dev/null >/dev/null 2>&1 && echo $(TUNE)))
CPPFLAGS += -I. -Icore/include -D_GNU_SOURCE -DBALEEN_VERSION='"$(VERSION)"' -DBALEEN_PREFIX='"$(PREFIX)"'
CFLAGS   += -std=gnu11 -g $(OPT) $(TUNE) $(WARNINGS) $(HARDEN) $(SANFLAGS) -fPIE -fno-plt -fvisibility=hidden
LDFLAGS  += -pie -Wl,-z,relro,-z,now,-z,noexecstack $(SANFLAGS)
LDLIBS   := -levent_core -levent_extra -llmdb -lcurl -lcjson -lyaml -lpsl -lidn2 -lseccomp -lz -lzstd -lbz2 -ldl

# ---- what is built ----

# One archive a folder. Arrows point one way: each may use only what stands behind it in this list.
FOLDERS  := core/cli core/process core/dns core/chain core policies feeds feeds/formats feeds/set base
ARCHIVES := $(foreach f,$(FOLDERS),$(if $(wildcard $(f)/*.c),$(B)/lib/$(subst /,-,$(f)).a))
LIBRARY   = -Wl,--start-group $(ARCHIVES) -Wl,--end-group
PLUGINS  := $(sort $(patsubst plugins/%/,%,$(dir $(wildcard plugins/*/*.c))))
UNITS    := $(patsubst tests/unit/%.c,$(B)/tests/%,$(wildcard tests/unit/test_*.c))
ABI      := $(patsubst tests/abi/%.c,$(B)/abi/%.so,$(wildcard tests/abi/*.c))
FUZZERS  := $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/fuzz_*.c))

all: $(B)/baleen plugins

# A file that is rewritten only when the text is another one: what depends on it is then made anew.
note = @mkdir -p $(@D); echo $(1) | cmp -s - $@ || echo $(1) > $@

# The list of objects is noted too: a source that has gone must leave the archive.
define archive
$(B)/lib/$(subst /,-,$(1)).list: always
	$$(call note,$(wildcard $(1)/*.c))
$(B)/lib/$(subst /,-,$(1)).a: $(patsubst %.c,$(B)/obj/%.o,$(filter-out core/cli/main.c,$(wildcard $(1)/*.c))) \
		$(B)/lib/$(subst /,-,$(1)).list
	@rm -f $$@
	@ar rcs $$@ $$(filter %.o,$$^)
endef
$(foreach f,$(FOLDERS),$(eval $(call archive,$(f))))

# Other flags, other objects.
$(B)/flags: always
	$(call note,'$(subst ','\'',$(CC) $(CPPFLAGS) $(CFLAGS))')

$(B)/obj/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	@echo "CC $<"
	@$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(B)/baleen: $(B)/obj/core/cli/main.o $(ARCHIVES)
	@echo "LD $@"
	@$(CC) $(LDFLAGS) -o $@ $< $(LIBRARY) $(LDLIBS)

# A plugin sees plugin.h and nothing else: no other header, no symbol of the host.
SHARED = $(CC) -Icore/include -D_GNU_SOURCE $(filter-out -fPIE,$(CFLAGS)) -fPIC -shared \
	 -Wl,-z,relro,-z,now $(NO_UNDEF)

plugins: $(PLUGINS:%=$(B)/plugins/%.so)
.SECONDEXPANSION:
$(B)/plugins/%.so: $$(wildcard plugins/%/*.c plugins/%/*.h) core/include/baleen/plugin.h $(B)/flags
	@mkdir -p $(@D)
	@echo "PLUGIN $*"
	@$(SHARED) -o $@ $(filter plugins/%.c,$^)

# ---- what is tested ----

# Which headers a program of several parts has read.
DEPENDS = -MMD -MP -MF $@.d

# Plugins that are wrong on purpose.
$(B)/abi/%.so: tests/abi/%.c $(B)/flags
	@mkdir -p $(@D)
	@echo "ABI $*"
	@$(SHARED) $(DEPENDS) -o $@ $<

# The path's test plays the chain itself.
$(B)/tests/test_path: LDFLAGS += -Wl,--wrap=chain_run,--wrap=chain_has,--wrap=policy_group_of

units: $(UNITS) $(ABI) plugins
$(B)/tests/%: tests/unit/%.c $(ARCHIVES)
	@mkdir -p $(@D)
	@echo "TEST $*"
	@$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) $(DEPENDS) -o $@ $< $(LIBRARY) -lcmocka $(LDLIBS)

# A fuzz target as a plain program that replays its corpus.
replays: $(FUZZERS:%=$(B)/replay/%)
$(FUZZERS:%=$(B)/replay/%): $(B)/obj/tests/fuzz/replay.o
$(B)/replay/%: tests/fuzz/%.c $(ARCHIVES)
	@mkdir -p $(@D)
	@echo "REPLAY $*"
	@$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) $(DEPENDS) -o $@ $< $(B)/obj/tests/fuzz/replay.o $(LIBRARY) $(LDLIBS)

# The same as a libFuzzer program; in a tree of its own, see `fuzz`.
fuzzers: $(FUZZERS:%=$(B)/fuzzers/%)
$(B)/fuzzers/%: tests/fuzz/%.c $(ARCHIVES)
	@mkdir -p $(@D)
	@echo "FUZZER $*"
	@$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -fsanitize=fuzzer -o $@ $< $(LIBRARY) $(LDLIBS)

# ---- what you type ----

help:
	@sed -n 's/^#: //p' Makefile

#: make run        build what is missing, start Baleen on 127.0.0.1:5353 (CONFIG=file: another configuration)
run:
	@scripts/deps.sh build run
	@$(MAKE) --no-print-directory all
	@exec env B=$(B) scripts/run.sh $(CONFIG)

#: make test       build and run every test
test:
	@scripts/deps.sh build run test
	@$(MAKE) --no-print-directory all units replays
	@B=$(B) PYTHON=$(PYTHON) tests/run

#: make check-asan the same with AddressSanitizer and UndefinedBehaviorSanitizer
check-asan:
	@$(MAKE) --no-print-directory B=$(B)/asan SANITIZE=address,undefined OPT=-O1 test

#: make fuzz       libFuzzer, each target for FUZZ_SECONDS (20)
fuzz:
	@scripts/deps.sh build lint
	@$(MAKE) --no-print-directory B=$(B)/fuzz CC=clang OPT=-O1 \
		SANITIZE=fuzzer-no-link,address,undefined fuzzers
	@B=$(B)/fuzz FUZZ_SECONDS=$(FUZZ_SECONDS) scripts/fuzz.sh $(FUZZERS)

#: make bench      the benchmarks of bench/
bench:
	@scripts/deps.sh build run test
	@$(MAKE) --no-print-directory all
	@B=$(B) bench/run

#: make bench-sets domain sets: octets, seconds, nanoseconds; NAMES=FILE for a list of your own
bench-sets: $(B)/bench/bench_sets
	@cd $(B)/bench && ./bench_sets -f 0 -f 1 -f 50 $(if $(NAMES),,-n 2e6) $(abspath $(NAMES))
	@cd $(B)/bench && ./bench_sets -n 1e6 -n 2e6 -n 5e6 -n 10e6 $(abspath $(NAMES))
$(B)/bench/bench_sets: bench/sets/bench_sets.c $(B)/lib/feeds-set.a $(B)/lib/base.a
	@mkdir -p $(@D)
	@$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

#: make bench-instructions  instructions a query under callgrind; an error 3 % over the record (RECORD=1)
bench-instructions:
	@scripts/deps.sh build run bench
	@$(MAKE) --no-print-directory $(B)/bench/instructions plugins
	@$(PYTHON) bench/instructions/run --build $(B) --compiler $(CC) $(if $(RECORD),--record)
$(B)/bench/instructions: bench/instructions/instructions.c $(ARCHIVES)
	@mkdir -p $(@D)
	@$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $< $(LIBRARY) $(LDLIBS)

#: make lint       layout, static analysis, the arrows between folders
lint:
	@scripts/deps.sh build lint
	@B=$(B) scripts/lint.sh

#: make format     lay out all C files
format:
	@scripts/deps.sh lint
	@clang-format -i $$(git ls-files '*.c' '*.h')

#: make deps       install the packages of the distribution that all of this needs
deps:
	@scripts/deps.sh build run test lint bench

#: make install    into PREFIX (/usr/local), below DESTDIR
install: all
	@B=$(B) PREFIX=$(PREFIX) DESTDIR=$(DESTDIR) VERSION=$(VERSION) scripts/install.sh

#: make clean      remove $(B)
clean:
	@rm -rf $(B)

.PHONY: always all plugins units replays fuzzers help run test check-asan fuzz bench bench-instructions bench-sets lint format deps install clean
-include $(shell find $(B)/obj $(B)/tests $(B)/replay $(B)/abi -name '*.d' 2>/dev/null)
