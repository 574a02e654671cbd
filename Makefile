# Thin: CMakeLists.txt builds, CMakePresets.json names the kinds of builds. `make` lists the targets.
.DEFAULT_GOAL := help
.PHONY: help deps deps-build deps-test deps-docs deps-develop build demo demo-vunet demo-pix2pix install package wheel docs test torture fuzz test-asan test-tsan \
        format format-check tidy bench bench-page gallery clean

sources = $(shell git ls-files --cached --others --exclude-standard '*.h' '*.cpp' | sort -u)

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 14

deps: deps-build deps-test deps-develop  ## install what is missing for everything below
deps-build:
	@cmake/install_deps.sh build
deps-test: deps-build
	@cmake/install_deps.sh test
	@cmake/install_deps.sh docs || echo "stepop: the test of the site is skipped, as its packages cannot be installed"
deps-docs: deps-build
	@cmake/install_deps.sh docs
deps-develop: deps-test
	@cmake/install_deps.sh develop

build: deps-build  ## build/stepop and build/libstepop.so, optimized
	@test -f build/build.ninja || { echo "stepop: configuring"; cmake --preset release; }
	@cmake/compile.sh stepop stepop stepop_components

demo: build  ## train on the handwritten digits that ship with the tree
	@echo "stepop: training, some 10 seconds"
	build/stepop -n digits -b configs/digits.yaml -t

vunet = configs/vunet/base.yaml configs/vunet/small.yaml
demo-vunet: build  ## train a small VUNet on people that it draws, put the clothes of some on others
	build/stepop -n vunet -b $(vunet) -t
	run=$$(ls -d logs/*_vunet | tail -1) && build/stepop -p $$run -b $(vunet) configs/vunet/transfer.yaml && \
		evaluation=$$(dirname $$(dirname $$(ls -t $$run/eval/*/*/matrix/*.png | head -1))) && \
		echo && echo "transfer matrix  $$(ls $$evaluation/matrix/*.png)" && echo "evaluation       $$evaluation"

demo-pix2pix: build  ## train a GAN to render label maps of buildings that it draws
	@echo "stepop: training, some 3 minutes"
	build/stepop -n pix2pix -b configs/pix2pix/base.yaml configs/pix2pix/small.yaml -t && \
		echo && echo "label map, rendering, truth of held-out buildings  $$(ls -t logs/*_pix2pix/eval/*/*/pairs/*.png | head -1)"

install: build  ## install to PREFIX=/usr/local, with LibTorch when `make deps` brought it
	cmake --install build --prefix $(or $(PREFIX),/usr/local)

package: build  ## build/stepop-*.tar.gz and build/stepop_*.deb
	cd build && cpack

wheel: build  ## dist/stepop-*.whl, for pip: with all but LibTorch, which is the package torch
	python3 cmake/wheel/backend.py dist

docs: deps-docs build  ## build/site/index.html: these pages with a search, and a reference of components, keys and headers
	@.venv/bin/python3 -B cmake/site/build_site.py . build/stepop build/site

# Three tests at once, on two cores: some wait for time limits.
test: deps-test build  ## build and run all tests
	@cmake/compile.sh all stepop_tests stepop_tests
	@echo "stepop: running the tests"
	ctest --test-dir build --output-on-failure -j3

torture: deps-test  ## kill trainings N times (N=200), as SEED says, and compare the ends bit by bit
	cmake --build --preset release --target stepop_tests
	STEPOP_TORTURE=$(or $(N),200) $(if $(SEED),STEPOP_TORTURE_SEED=$(SEED)) \
		build/stepop_tests --source-file='*tests/cli/kill_test.cpp,*tests/runtime/train/loop/full_disk_test.cpp' \
		--success=false

fuzz: deps-test  ## read N broken files of each kind that is read (N=10000), as SEED says, under ASan
	cmake --preset asan >/dev/null
	cmake --build --preset asan --target stepop_tests
	@seed=$(or $(SEED),$$(date +%s)); echo "seed $$seed"; \
		STEPOP_FUZZ_COUNT=$(or $(N),10000) STEPOP_FUZZ_SEED=$$seed UBSAN_OPTIONS=halt_on_error=1 \
		LSAN_OPTIONS=suppressions=$(CURDIR)/tests/lsan.supp:print_suppressions=0 \
		build-asan/stepop_tests --source-file='*fuzz_test.cpp' $(if $(KIND),--test-case='*$(KIND)*')

test-asan: deps-test  ## all tests under AddressSanitizer and UBSan, in build-asan/
	cmake --workflow --preset asan

test-tsan: deps-test  ## the tests of threaded code under ThreadSanitizer, in build-tsan/
	cmake --workflow --preset tsan

format: deps-develop  ## format all sources
	clang-format -i $(sources)

format-check: deps-develop  ## fail when a source is not formatted
	@clang-format --dry-run -Werror $(sources)

tidy: deps-develop  ## clang-tidy on all sources, by .clang-tidy
	@cmake -S . -B build-tidy -G Ninja -DSTEPOP_UNITY=OFF \
		-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -DCCACHE= >/dev/null
	run-clang-tidy -quiet -p build-tidy -j2 -extra-arg=-Wno-unknown-warning-option "$(CURDIR)/(runtime|eval_out|models|iterators|tests)/.*"

bench: deps-test build  ## benchmarks, each a ratio to a named baseline
	cmake --build --preset release --target bench

bench-page: deps-test build  ## tests/bench/BENCHMARKS.md, some 30 minutes; STEPOP_BENCH_PYTHON: a Python with other frameworks
	cmake --build --preset release --target stepop_bench
	.venv/bin/python3 -B tests/bench/page.py

gallery: deps-test build  ## train what configs/GALLERY.md has not yet, and write it; ONLY="digits sr" redoes these, FRESH=1 all
	.venv/bin/python3 -B configs/gallery/make.py $(if $(FRESH),--fresh) $(ONLY)

clean:  ## remove what was built; .venv and logs stay
	rm -rf build build-debug build-asan build-tsan build-tidy dist
