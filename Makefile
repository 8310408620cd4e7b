# Baleen. `make run` starts it, `make test` tests it; `make help` lists the rest.
# Everything built goes to $(B); a second tree (sanitizers, clang) is `make B=build/x ...`.

B        ?= build
CC       ?= gcc
PREFIX   ?= /usr/local
OPT      ?= -O2
SANITIZE ?=
PYTHON   ?= /usr/bin/python3

VERSION  := $(shell cat VERSION 2>/dev/null || echo 0)

WARNINGS := -Wall -Wextra -Wshadow -Wvla -Wstrict-prototypes -Wmissing-prototypes -Werror
HARDEN   := -fstack-protector-strong -fstack-clash-protection -fcf-protection -fPIE
ifeq ($(SANITIZE),)
HARDEN   += -D_FORTIFY_SOURCE=2
else
SANFLAGS := -fsanitize=$(SANITIZE) -fno-omit-frame-pointer -fno-sanitize-recover=all
endif
CPPFLAGS += -I. -Icore/include -D_GNU_SOURCE -DBALEEN_VERSION='"$(VERSION)"' -DBALEEN_PREFIX='"$(PREFIX)"'
CFLAGS   += -std=gnu11 -g $(OPT) $(WARNINGS) $(HARDEN) $(SANFLAGS) -fvisibility=hidden
LDFLAGS  += -pie -Wl,-z,relro,-z,now,-z,noexecstack $(SANFLAGS)
LDLIBS   := -levent_core -levent_extra -llmdb -lcurl -lcjson -lyaml -lpsl -lidn2 -lseccomp -lz -lzstd -ldl

# One archive a folder. Arrows point one way: each may use only what stands behind it in this list.
FOLDERS  := core/cli core/process core/dns core/chain core policies feeds feeds/formats feeds/set base
SOURCES  := $(foreach f,$(FOLDERS),$(filter-out core/cli/main.c,$(wildcard $(f)/*.c)))
ARCHIVES := $(foreach f,$(FOLDERS),$(if $(wildcard $(f)/*.c),$(B)/lib/$(subst /,-,$(f)).a))
PLUGINS  := $(patsubst plugins/%/,%,$(dir $(wildcard plugins/*/Makefile plugins/*/*.c)))
PLUGINS  := $(sort $(filter-out examples,$(PLUGINS)))
UNITS    := $(patsubst tests/unit/%.c,%,$(wildcard tests/unit/test_*.c))

all: $(B)/baleen plugins

define archive
$(B)/lib/$(subst /,-,$(1)).a: $(patsubst %.c,$(B)/obj/%.o,$(filter-out core/cli/main.c,$(wildcard $(1)/*.c)))
	@mkdir -p $$(@D)
	@rm -f $$@
	@ar rcs $$@ $$^
endef
$(foreach f,$(FOLDERS),$(eval $(call archive,$(f))))

$(B)/obj/%.o: %.c
	@mkdir -p $(@D)
	@echo "CC $<"
	@$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(B)/baleen: $(B)/obj/core/cli/main.o $(ARCHIVES)
	@echo "LD $@"
	@$(CC) $(LDFLAGS) -o $@ $< -Wl,--start-group $(ARCHIVES) -Wl,--end-group $(LDLIBS)

# A plugin sees plugin.h and nothing else.
plugins: $(PLUGINS:%=$(B)/plugins/%.so)
$(B)/plugins/%.so: plugins/%/*.c core/include/baleen/plugin.h
	@mkdir -p $(@D)
	@echo "PLUGIN $*"
	@$(CC) -Icore/include -D_GNU_SOURCE $(filter-out -fPIE,$(CFLAGS)) -fPIC -shared \
		-Wl,-z,relro,-z,now,-z,defs $(SANFLAGS) -o $@ $(wildcard plugins/$*/*.c)

units: $(UNITS:%=$(B)/tests/%)
$(B)/tests/%: tests/unit/%.c $(ARCHIVES)
	@mkdir -p $(@D)
	@echo "TEST $*"
	@$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -MMD -MP -MF $@.d -o $@ $< \
		-Wl,--start-group $(ARCHIVES) -Wl,--end-group -lcmocka $(LDLIBS)

.PHONY: all plugins units
.SECONDARY:
-include $(shell find $(B) -name '*.d' 2>/dev/null)
