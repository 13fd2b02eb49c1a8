# skippipe: one Makefile, no generator.
#
#   make          build everything for which this machine has the tools (CUDA code if nvcc is found); V=1 shows the commands
#   make demo     install missing packages, build, open the console on an embedded cluster
#   make check    install missing packages, build, run every test
#   make wan      the wide-area test bed (docs/testbed.md)
#   make bundle   one archive that runs on other systems (docs/machines.md)
#   make deps | install PREFIX= | image | fmt | tidy | clean | layers | fuzz | tsan | simulate | crash-points | storm | long | history | mutants | check-gpu | bench-gpu
#
# Each folder is one archive, build/lib<folder>.a, made of <folder>/*.c except main.c.
# A folder with a main.c is also a program. <folder>/tests/*_test.c are its tests:
# each test links the folder's own archive and the archives that the folder may use, nothing else.

BUILD  ?= build
PREFIX ?= /usr/local
CC     ?= cc
ifeq ($(origin CXX),default)
CXX    := $(if $(findstring clang,$(CC)),clang++,c++)
endif
ARGS   ?=

# The archives that a folder's code may use, in link order, its own first. docs/architecture.md
# explains this rule, and tests/layers.sh reads these lines to check the includes.
uses_base       := base
uses_wire       := wire base
uses_schedule   := schedule base
uses_model      := model base
uses_planner    := planner schedule model base
uses_store      := store base
uses_agent      := agent wire model base
uses_controller := controller wire schedule store model base
uses_verify     := verify store schedule model base
uses_doctor     := doctor wire store schedule model base
uses_tui        := tui wire store base
uses_cli        := cli base
# floors_X: the parts of folder X, subfolders and some files, lowest first. A part may use only the parts before it, and
# files of X that are not named here may use all parts (tests/layers.sh).
# whole_X: the structs through which a function reaches the whole state of X, and most_whole_X: the
# number of functions that may receive them.
floors_schedule   := format execution problem improve start bound published search fleet recipes
floors_agent      := shared network tensors sums weights execution
floors_controller := options run members network planning weights trust iteration joining operator replay monitor
floors_cli        := args verbs fleet
floors_tui        := json_line run screen input panels views
whole_agent       := agent
most_whole_agent  := 99
whole_controller  := controller operators
most_whole_controller := 59
FOLDERS := base wire schedule model planner store agent controller verify doctor tui cli

# The program of each folder that has one.
program_planner    := skippipe-plan
program_model      := skippipe-model
program_agent      := skippipe-agent
program_controller := skippipe-controller
program_verify     := skippipe-verify
program_doctor     := skippipe-doctor
program_tui        := skippipe-console
program_wire       := skippipe-key
program_cli        := skippipe

# Libraries from outside. Only the named folder may use its library; all folders may use jansson, which belongs to base.
libs_base       := -ljansson -lm -lpthread
libs_wire       := -lnanomsg -lsodium -lcrypto
libs_model      := -ldnnl -lgomp -lunistring
libs_store      := -lsqlite3
libs_controller := -lmicrohttpd
libs_tui        := -lncursesw -ltinfo

OPT      ?= -O2 -g
WARN     := -Wall -Wextra -Wconversion -Wshadow -Wmissing-prototypes -Werror
# Many constants of the code are enumerators, and newer clangs warn of arithmetic with enumerators and floats.
WARN     += $(if $(findstring clang,$(CC)),-Wno-enum-float-conversion)
SANITIZE ?=
VERSION  := $(shell cat VERSION)
CPPFLAGS += -I. -D_GNU_SOURCE -DSKIPPIPE_VERSION='"$(VERSION)"' -DSKIPPIPE_PREFIX='"$(PREFIX)"'
CFLAGS   += -std=c11 $(WARN) $(OPT) -ffp-contract=off -fno-omit-frame-pointer $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all)
LDFLAGS  += -rdynamic -Wl,--as-needed $(if $(SANITIZE),-fsanitize=$(SANITIZE))

# model/cpu and model/vector are C; model/cuda needs nvcc.
NVCC := $(or $(shell command -v nvcc 2>/dev/null),$(wildcard /usr/local/cuda/bin/nvcc))
CUDA_SRC := $(wildcard model/cuda/*.cu)
ifneq ($(NVCC),)
ifneq ($(CUDA_SRC),)
CUDA_HOME := $(patsubst %/bin/nvcc,%,$(realpath $(NVCC)))
# A program has code for all cards from Ampere on that this nvcc knows, and PTX, which the driver of any later card
# compiles. CUDA_ARCH=sm_89 builds code for cards of this architecture only, which takes less time.
CUDA_ARCH ?= $(filter sm_80 sm_86 sm_89 sm_90 sm_100 sm_120,$(shell $(NVCC) --list-gpu-code 2>/dev/null))
CUDA_PTX  := $(firstword $(CUDA_ARCH)) $(filter-out $(firstword $(CUDA_ARCH)),$(lastword $(CUDA_ARCH)))
# Debian's nvcc uses the gcc in PATH, which may be too new or lack C++. Debian puts a suitable gcc here.
CUDA_CC   := $(if $(filter /usr/bin/nvcc /bin/nvcc,$(NVCC)),$(wildcard /usr/lib/nvidia-cuda-toolkit/bin))
NVCCFLAGS := $(addprefix -ccbin ,$(CUDA_CC)) -O3 -std=c++17 -I. --compiler-options -fPIC --threads 2 \
	$(foreach a,$(CUDA_ARCH:sm_%=%),-gencode arch=compute_$(a),code=sm_$(a)) \
	$(foreach a,$(CUDA_PTX:sm_%=%),-gencode arch=compute_$(a),code=compute_$(a))
CPPFLAGS += -DSKIPPIPE_CUDA=1
cuda_objects := $(patsubst %.cu,$(BUILD)/%.o,$(CUDA_SRC))
extra_model += $(cuda_objects)
# Programs must start on machines without the CUDA toolkit. CUDA's runtime is therefore linked statically, and a program
# opens cuBLASLt only when it finds a GPU (model/cuda/product.cu; -rpath names the folder).
# libstdc++ is linked by its full name: if C++ was installed only for nvcc, cc has another version and finds no libstdc++.
cuda_libs := $(foreach d,$(wildcard $(CUDA_HOME)/lib64 $(CUDA_HOME)/lib),-L$(d) -Wl,-rpath,$(d)) -lcudart_static -ldl -lrt -l:libstdc++.so.6
libs_model += $(cuda_libs)
endif
endif

# SentencePiece is optional: without it only bytes and ready token shards can be read.
# (--exists fails in Debian 13: its .pc file names packages that only static linking needs, and does not install them.)
pieces_libs := $(shell pkg-config --libs sentencepiece 2>/dev/null)
ifeq ($(and $(pieces_libs),$(shell command -v $(CXX) 2>/dev/null)),)
WITHOUT += SentencePiece (libsentencepiece-dev, g++)
else
CPPFLAGS += -DSKIPPIPE_SENTENCEPIECE=1
libs_model += $(pieces_libs) -lstdc++
extra_model += $(BUILD)/model/text/pieces.o
endif

sources  = $(filter-out $(1)/main.c,$(wildcard $(1)/*.c $(1)/*/*.c))
lib_src  = $(foreach s,$(call sources,$(1)),$(if $(findstring /tests/,$(s)),,$(s)))
objects  = $(patsubst %.c,$(BUILD)/%.o,$(call lib_src,$(1)))
archives = $(foreach u,$(uses_$(1)),$(BUILD)/lib$(u).a)
libs     = $(foreach u,$(uses_$(1)),$(libs_$(u)))
test_src = $(wildcard $(1)/tests/*_test.c)

PROGRAMS := $(foreach f,$(FOLDERS),$(if $(wildcard $(f)/main.c),$(BUILD)/bin/$(program_$(f))))
TESTS    := $(foreach f,$(FOLDERS),$(patsubst %.c,$(BUILD)/%,$(call test_src,$(f))))
TESTS    += $(patsubst %.c,$(BUILD)/%,$(wildcard tests/wan/*_test.c)) $(BUILD)/tests/sim/sim_test
BENCHES  := $(patsubst %.c,$(BUILD)/%,$(wildcard bench/*.c))

# make prints a line for each file; `make V=1` prints the commands, `make -s` nothing.
Q   := $(if $(V),,@)
say  = $(if $(or $(V),$(findstring s,$(filter-out --%,$(firstword -$(MAKEFLAGS))))),@:,@echo "  $(1)	$@")

all: $(PROGRAMS)
	@$(if $(WITHOUT),echo "skippipe: built without $(WITHOUT)",:)

define folder_rules
$(BUILD)/lib$(1).a: $(call objects,$(1)) $(extra_$(1))
	@mkdir -p $$(@D)
	@rm -f $$@
	$$(call say,AR)
	$$(Q)ar rcs $$@ $$^
$(if $(wildcard $(1)/main.c),
$(BUILD)/bin/$(program_$(1)): $(BUILD)/$(1)/main.o $(call archives,$(1))
	@mkdir -p $$(@D)
	$$(call say,LD)
	$$(Q)$$(CC) $$(LDFLAGS) -o $$@ $$^ $(call libs,$(1)))
$(BUILD)/$(1)/tests/%: $(BUILD)/$(1)/tests/%.o $(patsubst %.c,$(BUILD)/%.o,$(filter-out %_test.c %_fuzz.c %_main.c,$(wildcard $(1)/tests/*.c))) $(BUILD)/libtest.a $(call archives,$(1))
	$$(call say,LD)
	$$(Q)$$(CC) $$(LDFLAGS) -o $$@ $$^ $(call libs,$(1)) -lcmocka
endef
$(foreach f,$(FOLDERS),$(eval $(call folder_rules,$(f))))

# The main function of unit tests. It is in an archive, which the linker ignores for tests that have their own main.
$(BUILD)/libtest.a: $(BUILD)/base/tests/test_main.o
	@rm -f $@
	$(call say,AR)
	$(Q)ar rcs $@ $^

# The script that a fleet's hosts run is a part of the program.
$(BUILD)/cli/fleet/script.o: cli/fleet/host.sh

# These tests run a whole controller.
$(patsubst %,$(BUILD)/controller/tests/%_test,contingency admission invited ending faulty silent announce preparation overuse): | $(BUILD)/bin/skippipe-controller

# A bench is named after the folder it measures: bench/schedule.c links schedule's archives.
$(BUILD)/bench/%: $(BUILD)/bench/%.o $(foreach f,$(FOLDERS),$(BUILD)/lib$(f).a)
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(LDFLAGS) -o $@ $< $(call archives,$*) $(call libs,$*)

# bench/codec.c measures the formats of tensors, which belong to model.
$(BUILD)/bench/codec: $(BUILD)/bench/codec.o $(call archives,model)
	$(call say,LD)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(call libs,model)

# The CPU kernels are one source, compiled for several instruction sets. The program chooses one at run time.
VECTOR := -O3 -fno-math-errno -Wno-psabi
$(BUILD)/model/vector/vector_%.o: CFLAGS += $(VECTOR) -ffp-contract=fast
# Code whose bits must be equal on all replicas: the compiler may not contract products and sums.
$(BUILD)/model/vector/exact_%.o: CFLAGS += $(VECTOR) -ffp-contract=off
ifeq ($(shell uname -m),x86_64)
$(BUILD)/model/vector/%_v3.o: CFLAGS += -march=x86-64-v3
$(BUILD)/model/vector/%_v4.o: CFLAGS += -march=x86-64-v4
endif

$(BUILD)/%.o: %.c Makefile VERSION
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/%.o: %.cc Makefile
	@mkdir -p $(@D)
	$(call say,CXX)
	$(Q)$(CXX) $(CPPFLAGS) -std=c++17 -Wall -Wextra -Werror $(OPT) -MMD -MP -c -o $@ $<

$(BUILD)/%.o: %.cu Makefile
	@mkdir -p $(@D)
	$(call say,NVCC)
	$(Q)$(NVCC) $(NVCCFLAGS) -MMD -MP -c -o $@ $<

-include $(shell test -d $(BUILD) && find $(BUILD) -name '*.d')

deps:
	@deploy/deps.sh

demo: deps
	@$(MAKE) --no-print-directory -j2 all
	@$(BUILD)/bin/skippipe demo $(ARGS)

# Libraries that tests load into programs: crash.so kills the program at its k-th durable step, jump.so replaces its clock with one that jumps,
# stuck.so stops its arithmetic, nvml.so and nvml_old.so replace NVIDIA's library.
$(BUILD)/tests/%.so: tests/%.c Makefile
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) -I. -D_GNU_SOURCE -std=c11 $(WARN) -Wno-missing-prototypes $(OPT) -fPIC -shared $(soname) -o $@ $<

$(BUILD)/tests/nvml.so: soname := -Wl,-soname,libnvidia-ml.so.1
$(BUILD)/tests/nvml.so $(BUILD)/tests/nvml_old.so: model/tests/nvml_script.h
$(BUILD)/tests/nvml_old.so: tests/nvml.c
$(BUILD)/model/tests/nvml_test $(BUILD)/agent/tests/gpu_monitor_test: | $(BUILD)/tests/nvml.so $(BUILD)/tests/nvml_old.so

# The wide-area test bed (docs/testbed.md): a router in user space, and the tool that sends it commands.
wan: $(BUILD)/tests/wan_router $(BUILD)/tests/wan_tool
WAN := $(patsubst %,$(BUILD)/tests/wan/%.o,map orders traffic tun) $(call archives,schedule)
$(BUILD)/tests/wan_router: $(BUILD)/tests/wan/router.o $(WAN)
$(BUILD)/tests/wan_tool: $(BUILD)/tests/wan/tool.o
$(BUILD)/tests/wan/%_test: $(BUILD)/tests/wan/%_test.o $(BUILD)/libtest.a $(WAN)
	$(call say,LD)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(call libs,schedule) -lcmocka
$(BUILD)/tests/wan_router $(BUILD)/tests/wan_tool:
	$(call say,LD)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(call libs,schedule)

# The controller and its agents in one process, with a clock and a network that a seed determines (tests/sim/sim.h). The
# archives of agent and verify export only the names in their headers, because several archives define the same names.
# The simulation replaces the agents' worker and processor times.
SIM := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/sim/*.c)) $(patsubst %,$(BUILD)/tests/sim/only_%.o,agent verify)
$(BUILD)/tests/sim/only_agent.o: $(filter-out %/worker.o %/processor_time.o,$(call objects,agent))
$(BUILD)/tests/sim/only_verify.o: $(call objects,verify)
$(BUILD)/tests/sim/only_%.o:
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)ld -r -o $@ $^
	$(Q)objcopy --wildcard $(foreach s,agent_* fetch_hash audit_* compare_*,--keep-global-symbol='$(s)') $@
$(BUILD)/tests/sim/sim_test: $(SIM) $(call archives,controller)
	$(call say,LD)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(call libs,controller)

# SEEDS= is the number of runs, FROM= the first seed. SIM_SEED=N build/tests/sim/sim_test repeats one run and prints its trace.
SEEDS ?= 200
FROM  ?= 1
simulate: $(BUILD)/tests/sim/sim_test
	@SIM_SEEDS=$(SEEDS) SIM_FROM=$(FROM) $<

# An agent whose admitted key an attacker uses (tests/hostile/hostile.h): the agent's archives, and the attacks.
HOSTILE := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/hostile/*.c))
$(BUILD)/tests/hostile_agent: $(HOSTILE) $(call archives,agent)
	$(call say,LD)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(call libs,agent)

tests: all wan $(BUILD)/deploy/launch $(BUILD)/gpu $(BUILD)/tests/hostile_agent $(TESTS) $(BENCHES) $(patsubst %,$(BUILD)/tests/%.so,crash jump stuck nvml nvml_old)

check: deps
	@$(MAKE) --no-print-directory -j2 layers tests
	@tests/run.sh $(BUILD) $(TESTS)

# Unit tests alone, built with the sanitizers of SANITIZE=. They are quick and start no processes and no network.
# FOLDER=schedule runs the unit tests of that folder only.
FOLDER ?=
UNIT := $(if $(FOLDER),$(filter $(BUILD)/$(FOLDER)/%,$(TESTS)),$(TESTS))
check-unit: $(UNIT)
	@tests/run.sh --unit $(BUILD) $(UNIT)

# Tests the programs with threads under ThreadSanitizer, in a build folder of its own.
tsan:
	@$(MAKE) --no-print-directory SANITIZE=thread BUILD=build-tsan all \
		$(patsubst $(BUILD)/%,build-tsan/%,$(foreach f,wire store agent controller verify,$(filter $(BUILD)/$(f)/%,$(TESTS))))
	@tests/tsan.sh build-tsan

# check-gpu compares a real GPU with the CPU, and bench-gpu measures its speed. Without a GPU both say so. They need nvcc
# and the C library, and no other package. Without nvcc `make check` links the program, to show that GPU_SRC is complete.
GPU_SRC := $(wildcard base/alloc.c base/array.c base/file.c base/not_text.c base/process/cgroup.c base/process/numa.c base/process/turn.c base/error.c base/rng.c base/clock.c base/tensor_format.c model/adamw.c model/device_check.c model/device_name.c model/hash.c model/squares.c model/stage.c model/tensor.c model/trainer.c model/config.c model/cut.c model/codec/*.c model/rehearsal/pretend.c \
	model/tests/kernel_check.c model/tests/repeat_check.c model/tests/sums_check.c model/cuda/*.c model/cuda/check/*.c model/cpu/check/*.c) $(filter-out model/cpu/product.c,$(wildcard model/cpu/*.c model/vector/*.c))
$(BUILD)/gpu: $(patsubst %.c,$(BUILD)/%.o,$(GPU_SRC)) $(cuda_objects)
	$(call say,LD)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(cuda_libs) -lm -lpthread
ifneq ($(NVCC),)
check-gpu bench-gpu: WARN := -Wall
check-gpu: $(BUILD)/gpu
	@$< check || [ $$? = 77 ]
bench-gpu: $(BUILD)/gpu
	@$< bench || [ $$? = 77 ]
else
check-gpu bench-gpu:
	@echo "no nvcc: nothing to check or measure on a GPU"
endif

# Kills every program at each of its durable steps, one step after another.
crash-points: tests
	@SKIPPIPE_BUILD=$(CURDIR)/$(BUILD) tests/crash_points_test.sh all kept
	@SKIPPIPE_BUILD=$(CURDIR)/$(BUILD) tests/crash_points_test.sh all lost

# Trains the 124m preset with 8 agents and verifies the run, and with 5 agents while its stages change. Takes minutes and
# 12 GiB of memory.
long: all $(BUILD)/tui/tests/terminal_test
	@INPUT_SECONDS=60 $(BUILD)/tui/tests/terminal_test
	@SKIPPIPE_BUILD=$(CURDIR)/$(BUILD) tests/long.sh
	@SKIPPIPE_BUILD=$(CURDIR)/$(BUILD) tests/recut_124m.sh || [ $$? = 77 ]

# Runs a controller for 100,000 iterations, and prints the size of its record and its memory after each tenth of them.
history: $(BUILD)/controller/tests/history_test
	@HISTORY_ITERATIONS=100000 $<

# Makes small changes to the code, and checks that a test notices each. ARGS are the options of tests/mutants.sh.
mutants:
	@tests/mutants.sh $(ARGS)

# Runs a cluster for an hour with a fault every two seconds, and prints how much time the faults cost.
storm: all
	@SKIPPIPE_BUILD=$(CURDIR)/$(BUILD) tests/chaos.sh 1300 1 emulated

layers:
	@tests/layers.sh
	@tests/house.sh
	@tests/plain.sh

# Writes the console's golden screens, and copies those that docs/console.md shows into it.
GOLDEN := $(patsubst %,$(BUILD)/tui/tests/%_test,view map_view history runs)
screens: $(BUILD)/bin/skippipe-console $(GOLDEN)
	@for test in $(GOLDEN); do GOLDEN_UPDATE=1 $$test || exit 1; done
	@tui/tests/screens.sh $(BUILD)

bench: $(BENCHES)

# libFuzzer needs clang. Each fuzzer runs for FUZZ_SECONDS; its corpus is in <folder>/tests/corpus/.
FUZZ_SECONDS ?= 60
fuzz:
	@tests/fuzz.sh $(FUZZ_SECONDS)

# Makes manual pages and shell completion from the programs' own help.
manual: all
	@deploy/manual.sh $(BUILD)/bin $(BUILD)/manual

install: all manual
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/skippipe/themes $(DESTDIR)$(PREFIX)/share/doc/skippipe
	install -m 755 $(PROGRAMS) $(DESTDIR)$(PREFIX)/bin
	install -m 644 themes/*.json $(DESTDIR)$(PREFIX)/share/skippipe/themes
	install -d $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/bash-completion/completions \
		$(DESTDIR)$(PREFIX)/share/zsh/site-functions
	install -m 644 $(BUILD)/manual/man1/*.1 $(DESTDIR)$(PREFIX)/share/man/man1
	install -m 644 $(BUILD)/manual/skippipe.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/skippipe
	install -m 644 $(BUILD)/manual/_skippipe $(DESTDIR)$(PREFIX)/share/zsh/site-functions
	install -m 644 deploy/*.json $(DESTDIR)$(PREFIX)/share/skippipe
	install -m 644 README.md LICENSE CHANGELOG.md docs/*.md $(DESTDIR)$(PREFIX)/share/doc/skippipe

# One archive that runs on other systems (deploy/bundle.sh), and a container image of it (deploy/image.sh).
BUNDLE := $(BUILD)/skippipe-$(VERSION)-$(shell uname -m).tar.gz
bundle: all $(BUILD)/deploy/launch
	@deploy/bundle.sh $(BUILD) $(BUNDLE)
image: bundle
	@deploy/image.sh $(BUNDLE) $(BUILD)/skippipe-$(VERSION)-image.tar
# Statically linked, so that it starts with any C library.
$(BUILD)/deploy/launch: deploy/launch.c Makefile
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) -std=c11 -D_GNU_SOURCE $(WARN) -O2 -static -o $@ $<

SOURCES := $(shell git ls-files '*.c' '*.h' 2>/dev/null)
# Formats only the lines that differ from the last commit.
fmt:
	git clang-format --quiet --force HEAD
tidy:
	clang-tidy --quiet $(filter %.c,$(SOURCES)) -- $(CPPFLAGS) -std=c11

clean:
	rm -rf $(BUILD)

.PHONY: bundle image simulate wan tsan crash-points storm long history mutants screens all deps demo tests check check-unit check-gpu layers bench bench-gpu fuzz manual install fmt tidy clean
.SECONDARY:
