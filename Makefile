# Two commands are enough: `make run` and `make test`.  Each sets up what it needs.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
OUT := out

SECONDS ?= 60
COUNT ?= 100000
PROBLEMS ?= 300
# fuzz-sanitized runs one of ONE_IN cases of large test functions.
ONE_IN ?= 1
# Number of test processes; JOBS=0 runs tests in the main process, where pdb works.
JOBS ?= auto
PROCESSES = -n $(JOBS) --maxprocesses 8 --dist worksteal
PYTEST = $(BIN)/python -P -m pytest $(PROCESSES)

.PHONY: help run test test-without-compiler test-lowest test-peers test-peers-quick test-browser check regen docs bench fit-costs fuzz fuzz-sanitized mutate mutate-lint generate headers dist wheels test-wheel test-arm64 clean

help:
	@echo "make run         upsample a photograph and name the pictures to look at"
	@echo "make test        run the tests"
	@echo "make test-without-compiler  run what computes on an install that had no C compiler"
	@echo "make test-lowest run the tests with the lowest versions that pyproject.toml allows"
	@echo "make check       ruff, mypy --strict, direction of imports and of C headers, generated files are up to date"
	@echo "make test-peers  compare with OpenVINO, onnxruntime and torch (installs them)"
	@echo "make test-peers-quick  the same with every third case of the large groups"
	@echo "make test-browser  open pages of deconv-show in Chromium (installs playwright)"
	@echo "make fuzz        coverage-guided fuzzing, SECONDS=60 for each target (installs atheris)"
	@echo "make mutate-lint recall of the linter by kind of mutation, docs/lint-recall.md; fixes of PROBLEMS=300 networks"
	@echo "make mutate      COUNT=100000 mutated IRs through load, lint and run"
	@echo "make generate    COUNT=100000 IRs generated from the operations' declarations, the same way"
	@echo "make headers     COUNT=100000 hostile .npy and .npz files through the reader of arrays"
	@echo "make regen       write the generated files anew"
	@echo "make docs        build the documentation as a site, out/site/index.html"
	@echo "make bench       time kernels and networks beside OpenVINO, onnxruntime and torch (installs them)"
	@echo "make fit-costs   measure this machine, fit the constants of the cost model, list its errors"
	@echo "make fuzz-sanitized  random geometries through the compiled kernel under ASan and UBSan"
	@echo "make dist        build sdist and wheel"
	@echo "make wheels      build wheels for x86_64 and aarch64, repaired and checked by auditwheel"
	@echo "make test-wheel  install this machine's in a clean environment without a compiler, and test it"
	@echo "make test-arm64  test the other's kernels, fuzz and samples on an emulated processor"

# The package is built and installed once; each target installs the extras that it needs.
$(VENV)/installed: pyproject.toml setup.py $(wildcard deconv_ir/kernels/_native/*.[ch] deconv_ir/kernels/_native/*/*)
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@# If Python may not write bytecode, each start would compile the sources again.
	$(BIN)/python -m compileall -q deconv_ir cli
	@touch $@

$(VENV)/installed-%: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_OPTIONS) 'deconv-ir[$*]'
	@touch $@

run: $(VENV)/installed-samples
	@mkdir -p $(OUT)
	$(BIN)/python samples/upsample/picture.py photo $(OUT)/photo.png
	$(BIN)/python samples/upsample/picture.py to-npy $(OUT)/photo.png $(OUT)/photo.npy --border 1
	$(BIN)/deconv-run samples/upsample/bilinear_x2.xml --input $(OUT)/photo.npy --output $(OUT)/photo_x2.npy --force
	$(BIN)/python samples/upsample/picture.py to-png $(OUT)/photo_x2.npy $(OUT)/photo_x2.png
	@echo
	@echo "Look at $(OUT)/photo.png and, twice as large, $(OUT)/photo_x2.png"

# Independent of the installed extras: peers and the browser have targets of their own.  Their
# files are not even imported, which takes each process some seconds.
HERE := --ignore tests/peers --ignore tests/browser

test: $(VENV)/installed-dev
	$(PYTEST) $(HERE)

test-without-compiler: $(VENV)/installed-dev
	rm -rf $(OUT)/without-compiler build
	CC=false $(BIN)/python -m pip install --quiet --no-deps --disable-pip-version-check \
		--target $(OUT)/without-compiler .
	@rm -rf build
	PYTHONPATH=$(abspath $(OUT)/without-compiler) $(BIN)/python -P -c \
		"from deconv_ir.kernels import kernel_info as info; print(info()); assert not info().available"
	@# `make test` runs every case of the NumPy fallback; types do not depend on the compiler.
	@# PYTHONSAFEPATH: processes that tests start would find the checkout first.
	PYTHONSAFEPATH=1 PYTHONPATH=$(abspath $(OUT)/without-compiler) \
		$(PYTEST) --one-in 3 --ignore tests/samples/test_typed.py \
		tests/kernels tests/execute tests/samples tests/ir tests/tiling tests/ops/convolution/test_deconvolution.py \
		tests/ops/test_scratch.py tests/test_*.py

test-lowest:
	rm -rf build
	$(PYTHON) -m venv --clear $(OUT)/lowest
	$(PYTHON) tools/lowest.py > $(OUT)/lowest.txt
	$(OUT)/lowest/bin/python -m pip install --quiet --disable-pip-version-check \
		--prefer-binary --constraint $(OUT)/lowest.txt '.[dev]'
	$(OUT)/lowest/bin/python -m pip freeze
	@# The sources are not checked with the types of the lowest NumPy.
	PYTHONSAFEPATH=1 $(OUT)/lowest/bin/python -m pytest $(PROCESSES) $(HERE) \
		--ignore tests/samples/test_typed.py

test-peers: $(VENV)/installed-dev $(VENV)/installed-peers $(VENV)/installed-detector
	$(PYTEST) -m peers tests/peers

test-peers-quick: $(VENV)/installed-dev $(VENV)/installed-peers
	$(PYTEST) -m peers --one-in 3 --ignore tests/peers/test_trained.py tests/peers

CHROMIUM ?= chromium

test-browser: $(VENV)/installed-dev $(VENV)/installed-browser
	@command -v "$(CHROMIUM)" > /dev/null || \
		{ echo "$(CHROMIUM) is not installed (CHROMIUM=/path/to/chromium names another browser)"; exit 1; }
	CHROMIUM="$(CHROMIUM)" $(BIN)/python -m pytest -m browser tests/browser

# Building these packages from source takes hours.
$(VENV)/installed-peers: PIP_OPTIONS := --only-binary monai,onnx,onnxruntime,opencv-python-headless,openvino,torch

# Only the trained model in this package is used, so its dependencies are not installed.
$(VENV)/installed-detector: $(VENV)/installed-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps \
		--ignore-requires-python 'rapidocr-onnxruntime==1.4.4'
	@touch $@

check: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/check_c_layers.py
	$(BIN)/python tools/check_sources.py
	$(BIN)/python tools/regen.py --check

regen: $(VENV)/installed-dev
	$(BIN)/python tools/regen.py

docs: $(VENV)/installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	$(BIN)/python -P tools/check_site.py $(OUT)/site
	@echo "Look at $(OUT)/site/index.html"

bench: $(VENV)/installed-samples $(VENV)/installed-peers
	@mkdir -p $(OUT)/bench
	$(BIN)/python bench/compare.py --random 28 --output $(OUT)/bench
	$(BIN)/python bench/compare.py --random 28 --output $(OUT)/bench --avx2
	$(BIN)/python bench/networks.py --output $(OUT)/bench/networks.json
	$(BIN)/python bench/memory.py --output $(OUT)/bench/memory.json
	$(BIN)/python bench/growth.py --output $(OUT)/bench
	$(BIN)/python bench/coldstart.py

# Changes no source; WRITE=--write does.
fit-costs: $(VENV)/installed-dev
	$(BIN)/python tools/fit_costs.py --output $(OUT)/costs $(WRITE)

# The compiled kernel, in a separate build with sanitizers, against the loop kernel.  Code for
# AVX-512 is lowered to AVX2, so that it is tested on processors without AVX-512, too.
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g1 \
	-DDECONV_LOWER_AVX512
SANITIZED = LD_PRELOAD="$$($(CC) -print-file-name=libasan.so) $$($(CC) -print-file-name=libubsan.so)" \
	ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 PYTHONPATH=$(abspath $(OUT)/sanitized)

fuzz-sanitized: $(VENV)/installed-dev
	rm -rf $(OUT)/sanitized build
	CFLAGS="$(SANITIZE)" LDFLAGS="$(SANITIZE)" $(BIN)/python -m pip install --quiet --no-deps \
		--disable-pip-version-check --target $(OUT)/sanitized .
	@# The next installation would reuse the sanitized extension in build/.
	@rm -rf build
	$(SANITIZED) $(BIN)/python tests/kernels/fuzz.py --count $(PROBLEMS) --algorithm direct --algorithm winograd --algorithm bf16
	@# Without tests that never call the extension, or that start processes.
	$(SANITIZED) $(PYTEST) --one-in $(ONE_IN) -k "not numpy and not col2im and not im2col" \
		--ignore tests/kernels/test_numpy_methods.py \
		tests/kernels tests/hostile/test_kernel_arguments.py tests/hostile/test_kernel_interface.py tests/hostile/test_codes_interface.py

# atheris has wheels for few Pythons and machines; building it requires its own clang.
$(VENV)/installed-fuzz: PIP_OPTIONS := --only-binary atheris

fuzz: $(VENV)/installed-dev $(VENV)/installed-fuzz
	@$(BIN)/python -c "import atheris" || { echo "atheris does not support this Python"; exit 1; }
	@mkdir -p $(OUT)/fuzz
	@for target in xml npy attributes shapes scanner; do \
		echo "fuzzing $$target"; \
		$(BIN)/python tests/hostile/fuzz.py $$target $(OUT)/fuzz $(if $(RUNS),--runs $(RUNS),--seconds $(SECONDS)) \
			> $(OUT)/fuzz/$$target.log 2>&1 \
			|| { tail -40 $(OUT)/fuzz/$$target.log; exit 1; }; \
		grep -E "number_of_executed_units|peak_rss_mb" $(OUT)/fuzz/$$target.log; \
	done

mutate-lint: $(VENV)/installed-dev
	$(BIN)/python tests/linter/study.py --table docs/lint-recall.md
	$(BIN)/python tests/linter/drawn.py --networks $(PROBLEMS)

mutate: $(VENV)/installed-dev
	$(BIN)/python tests/hostile/mutate.py --count $(COUNT) --keep $(OUT)/mutate

generate: $(VENV)/installed-dev
	$(BIN)/python tests/hostile/generate.py --count $(COUNT) --keep $(OUT)/generate

headers: $(VENV)/installed-dev
	$(BIN)/python tests/hostile/headers.py --count $(COUNT) --keep $(OUT)/headers

dist: $(VENV)/installed-dev
	$(BIN)/python -m build

WHEEL_ARCHITECTURES ?= x86_64 aarch64

wheels: $(VENV)/installed-dev $(VENV)/installed-wheels
	rm -f dist/*manylinux*.whl
	$(BIN)/python tools/wheels.py $(WHEEL_ARCHITECTURES)

test-wheel:
	$(PYTHON) -m venv --clear $(OUT)/wheel
	$(OUT)/wheel/bin/python -m pip install --quiet --disable-pip-version-check \
		"$$(ls dist/*manylinux*_$$(uname -m).whl)[dev]"
	CC=false $(OUT)/wheel/bin/python -P -c \
		"from deconv_ir.kernels import kernel_info as info; print(info()); assert info().available"
	@# Processes started by tests must import the wheel, not the sources in the working directory.
	CC=false PYTHONSAFEPATH=1 $(OUT)/wheel/bin/python -m pytest $(PROCESSES) $(HERE)

# An emulator takes thirty times as long.  One case in five of each large kernel test is run.  Left
# out are tests that do not depend on the processor (the NumPy fallback, types checked by mypy) and
# tests of signals that are sent after a fraction of a second.
NOT_EMULATED := kernels/test_interrupts kernels/test_numpy_methods samples/test_typed

test-arm64:
	$(PYTHON) tools/emulated.py dist/*manylinux*_aarch64.whl tests/kernels/fuzz.py --count $(PROBLEMS)
	$(PYTHON) tools/emulated.py dist/*manylinux*_aarch64.whl -m pytest -p no:cacheprovider \
		$(PROCESSES) --one-in 5 $(NOT_EMULATED:%=--ignore tests/%.py) --durations 20 \
		tests/samples tests/spec_examples/test_golden.py tests/kernels
	@# The processor above has every instruction: these have dot products of signed bytes, and none.
	for processor in neoverse-n1 cortex-a57; do QEMU_CPU=$$processor \
		$(PYTHON) tools/emulated.py dist/*manylinux*_aarch64.whl -m pytest -p no:cacheprovider \
			$(PROCESSES) tests/kernels/test_quantized.py || exit 1; done

clean:
	rm -rf $(VENV) $(OUT) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache
