# SPDX-License-Identifier: Apache-2.0
# The front door. Meson does the work; each target first installs what it needs from
# Debian (tools/install-deps) and says plainly what it could not install.
#
#   make            build/assay and libassay          make soak    the long tests
#   make test       everything quick, two compilers   make fuzz    FUZZ_SECONDS per target
#   make demo       a first look                      make bench   measurements
#   make install    PREFIX= DESTDIR= LIBDIR=          make format  rewrite with clang-format
#   make clean      remove every build directory

PREFIX ?= /usr/local
LIBDIR ?= lib# below PREFIX; packagers may want lib/<triplet>
DESTDIR ?=
FUZZ_SECONDS ?= 60

# What users get, and what is measured. What their compiler warns of is their business;
# `make test` minds ours.
PRODUCT = -Dwhole=true -Dwerror=false

all: build/build.ninja
	@ninja -C build product

build/build.ninja:
	@tools/install-deps build
	@meson setup build $(PRODUCT) --prefix=$(PREFIX) --libdir=$(LIBDIR)

test:
	@tools/install-deps test
	@PRODUCT="$(PRODUCT)" tools/run-tests quick

soak:
	@tools/install-deps test
	@tools/run-tests soak

demo: all
	@ninja -C build --quiet example-record example-server example-client
	@tools/demo build/assay build/example-record build/example-server build/example-client

bench:
	@tools/install-deps bench
	@PRODUCT="$(PRODUCT)" tools/run-bench

fuzz:
	@tools/install-deps fuzz
	@tools/run-fuzz $(FUZZ_SECONDS)

install: all
	@meson configure build --prefix=$(PREFIX) --libdir=$(LIBDIR)
	@ninja -C build product
	@DESTDIR=$(DESTDIR) meson install -C build --no-rebuild
	@tools/after-install "$(PREFIX)" "$(LIBDIR)" "$(DESTDIR)"

format:
	@tools/install-deps test
	@find src include tests -name '*.[ch]' -exec clang-format -i {} +

clean:
	rm -rf build build-test build-asan build-clang build-fuzz build-bench

.PHONY: all test soak demo bench fuzz install format clean
