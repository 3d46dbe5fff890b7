"""One model from many threads, forks and spawns after import: right results, no deadlock."""

from __future__ import annotations

import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from support import IR, deconvolution_ir

import deconv_ir
from hostile.children import bounded, die

ATTRIBUTES = {"strides": "2,2", "dilations": "1,1", "pads_begin": "1,1", "pads_end": "1,1"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Make a deconvolution large enough for the BLAS, or the compiled kernel, to use threads."""
    return deconvolution_ir("?,32,?,?", (32, 24, 4, 4), ATTRIBUTES).save(tmp_path)


def image(seed: int, side: int = 24) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((1, 32, side, side)).astype(np.float32)


def results_alone(path: Path, seeds: range) -> dict[int, np.ndarray]:
    model = deconv_ir.load(path)
    return {seed: model.run([image(seed, 20 + seed % 3)])["y"] for seed in seeds}


def test_eight_threads_on_one_model(path: Path) -> None:
    """Threads run images of several sizes at once; the first runs, which prepare, also race."""
    expected = results_alone(path, range(16))
    model = deconv_ir.load(path)
    start = threading.Barrier(8)
    wrong: list[object] = []

    def work(first: int) -> None:
        start.wait()
        try:
            for seed in (first, first + 8) * 4:
                found = model.run([image(seed, 20 + seed % 3)])["y"]
                np.testing.assert_allclose(found, expected[seed], rtol=1e-5, atol=1e-5)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(t.is_alive() for t in threads), "a deadlock"
    assert not wrong


def test_eight_threads_of_which_some_fail(path: Path) -> None:
    """An error in one thread does not affect the runs of the others."""
    expected = results_alone(path, range(4))
    model = deconv_ir.load(path)
    outcomes: list[str] = []

    def work(number: int) -> None:
        for _ in range(5):
            if number % 2:
                try:
                    model.run([np.zeros((1, 31, 5, 5), np.float32)])
                except deconv_ir.InputError:
                    outcomes.append("refused")
            else:
                found = model.run([image(number // 2, 20 + number // 2 % 3)])["y"]
                np.testing.assert_allclose(found, expected[number // 2], rtol=1e-5, atol=1e-5)
                outcomes.append("right")

    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(outcomes) == ["refused"] * 20 + ["right"] * 20


def _run_in_child(path: Path, seed: int) -> np.ndarray:
    result: np.ndarray = deconv_ir.load(path).run([image(seed)])["y"]
    return result


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # Python 3.12: a BLAS has threads
def test_processes_after_a_run(method: str, path: Path) -> None:
    """After a run the parent has threads of the BLAS and the kernel, which a fork loses."""
    expected = deconv_ir.load(path).run([image(1)])["y"]
    with multiprocessing.get_context(method).Pool(2) as pool:
        pending = [pool.apply_async(_run_in_child, (path, 1)) for _ in range(4)]
        for one in pending:
            np.testing.assert_allclose(one.get(timeout=60), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(deconv_ir.load(path).run([image(1)])["y"], expected)


def test_a_model_that_was_loaded_before_the_fork(path: Path) -> None:
    """The child shares the parent's model and its open weights file."""
    code = (
        "import os, numpy as np\n"
        f"model = deconv_ir.load({str(path)!r})\n"
        "x = np.ones((1, 32, 9, 9), np.float32)\n"
        "{before}"
        "pid = os.fork()\n"
        "mine = model.run([x])['y']\n"
        "np.save({folder!r} + ('/child.npy' if pid == 0 else '/parent.npy'), mine)\n"
        "if pid == 0:\n"
        "    os._exit(0)\n"
        "assert os.waitpid(pid, 0)[1] == 0\n"
        "print('done')\n"
    )
    for before in ("", "model.run([x])\n"):
        done = bounded(code.format(before=before, folder=str(path.parent)), 4 << 30)
        assert done == "done\n"
        child, parent = (np.load(path.parent / f"{n}.npy") for n in ("child", "parent"))
        np.testing.assert_allclose(child, parent, rtol=1e-6)


def test_a_fork_while_other_threads_run(path: Path) -> None:
    """A lock that another thread holds during the fork is released in the child."""
    code = (
        "import os, threading, numpy as np\n"
        f"model = deconv_ir.load({str(path)!r})\n"
        "x = np.ones((1, 32, 16, 16), np.float32)\n"
        "expected = model.run([x])['y']\n"
        "stop = threading.Event()\n"
        "def work():\n"
        "    while not stop.is_set():\n"
        "        model.run([x])\n"
        "threads = [threading.Thread(target=work) for _ in range(3)]\n"
        "for t in threads: t.start()\n"
        "statuses = []\n"
        "for _ in range(10):\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        fresh = deconv_ir.load(" + repr(str(path)) + ")\n"
        "        same = np.allclose(fresh.run([x])['y'], expected, 1e-5, 1e-5)\n"
        "        os._exit(0 if same else 1)\n"
        "    statuses.append(os.waitpid(pid, 0)[1])\n"
        "stop.set()\n"
        "for t in threads: t.join()\n"
        "print(statuses)\n"
    )
    assert bounded(code, 4 << 30) == f"{[0] * 10}\n"


def test_a_fork_while_another_thread_is_within_the_same_model(path: Path) -> None:
    """A lock that another thread holds during the fork is released in the child."""
    code = (
        "import os, signal, threading, numpy as np\n"
        "from deconv_ir.execute import executor\n"
        f"model = deconv_ir.load({str(path)!r})\n"
        "x = np.ones((1, 32, 16, 16), np.float32)\n"
        "there, go_on = threading.Event(), threading.Event()\n"
        "original = executor.Preparation.run\n"
        "def held(self):\n"
        "    if threading.current_thread() is not threading.main_thread():\n"
        "        there.set()\n"
        "        go_on.wait()\n"
        "    return original(self)\n"
        "executor.Preparation.run = held\n"
        "thread = threading.Thread(target=model.run, args=([x],))\n"
        "thread.start()\n"
        "there.wait()\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    signal.alarm(30)  # ends the child where it waits for ever\n"
        "    mine = model.run([x])['y']\n"
        f"    fresh = deconv_ir.load({str(path)!r}).run([x])['y']\n"
        "    os._exit(0 if np.array_equal(mine, fresh) else 1)\n"
        "status = os.waitpid(pid, 0)[1]\n"
        "go_on.set()\n"
        "thread.join()\n"
        "print(status)\n"
    )
    assert bounded(code, 4 << 30) == "0\n"


def test_forks_while_eight_threads_run_the_same_model(path: Path) -> None:
    """Workers of the compiled kernel and of the BLAS are running during the forks."""
    code = (
        "import os, signal, threading, numpy as np\n"
        "from deconv_ir.kernels import set_threads\n"
        "set_threads(4)\n"
        f"model = deconv_ir.load({str(path)!r})\n"
        "images = [np.ones((1, 32, n, n), np.float32) for n in range(14, 22)]\n"
        "expected = [model.run([x])['y'] for x in images]\n"
        "def right(n):\n"
        "    return np.allclose(model.run([images[n]])['y'], expected[n], 1e-5, 1e-5)\n"
        "stop, wrong = threading.Event(), []\n"
        "def work(n):\n"
        "    while not stop.is_set():\n"
        "        if not right(n):\n"
        "            wrong.append(n)\n"
        "threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]\n"
        "for t in threads: t.start()\n"
        "statuses = []\n"
        "for n in range(8):\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        signal.alarm(30)\n"
        "        found = []\n"
        "        mine = [threading.Thread(target=lambda i=i: found.append(right(i)))"
        " for i in range(8)]\n"
        "        for t in mine: t.start()\n"
        "        for t in mine: t.join()\n"
        "        os._exit(0 if found == [True] * 8 else 1)\n"
        "    statuses.append(os.waitpid(pid, 0)[1])\n"
        "stop.set()\n"
        "for t in threads: t.join()\n"
        "print(statuses, wrong)\n"
    )
    assert bounded(code, 8 << 30, seconds=120) == f"{[0] * 8} []\n"


def _run_in_threads(path: Path) -> list[np.ndarray]:
    model = deconv_ir.load(path)
    with ThreadPoolExecutor(8) as pool:
        return [r["y"] for r in pool.map(lambda n: model.run([image(n)]), range(8))]


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_eight_threads_in_each_of_several_processes(method: str, path: Path) -> None:
    expected = _run_in_threads(path)
    with multiprocessing.get_context(method).Pool(2) as pool:
        for one in [pool.apply_async(_run_in_threads, (path,)) for _ in range(2)]:
            for found, wanted in zip(one.get(timeout=120), expected, strict=True):
                np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_a_fork_leaves_the_blas_as_it_was() -> None:
    """The thread that had limited the BLAS to one thread does not exist in the child to undo it."""
    code = (
        "import os, numpy as np\n"
        "from threadpoolctl import threadpool_info, threadpool_limits\n"
        "from deconv_ir.kernels.runtime.parallel import single_threaded_blas\n"
        "def threads():\n"
        "    return [i['num_threads'] for i in threadpool_info() if i['user_api'] == 'blas']\n"
        "threadpool_limits(2, user_api='blas')\n"
        "before = threads()\n"
        "held = single_threaded_blas()\n"
        "held.__enter__()\n"
        "assert set(threads()) <= {1}\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    with single_threaded_blas():\n"
        "        np.ones((64, 64)) @ np.ones((64, 64))\n"
        "    os._exit(0 if threads() == before else 1)\n"
        "print(os.waitpid(pid, 0)[1])\n"
    )
    assert bounded(code, 4 << 30) == "0\n"


def test_loading_in_many_threads_at_once(tmp_path: Path) -> None:
    """The file of an operation is imported at its first use, in any thread."""
    ir = IR()
    x = ir.parameter("x", "1,4")
    for kind in ("ReLU", "Sigmoid", "Tanh", "Exp"):
        x = ir.layer(kind, [x])
    ir.result(x)
    path = ir.save(tmp_path)
    code = (
        "import threading, numpy as np\n"
        "found = []\n"
        "def work():\n"
        f"    model = deconv_ir.load({str(path)!r})\n"
        "    found.append(list(model.run([np.zeros((1, 4), np.float32)]).values())[0].sum())\n"
        "threads = [threading.Thread(target=work) for _ in range(8)]\n"
        "for t in threads: t.start()\n"
        "for t in threads: t.join()\n"
        "print(len(found), len(set(found)))\n"
    )
    assert bounded(code, 4 << 30) == "8 1\n"


def test_a_linter_process_that_the_system_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process killed for lack of memory gives one error instead of a traceback of the pool."""
    from deconv_ir.linter import runner
    from deconv_ir.linter.options import choose

    jobs = [runner.FileCheck(file=str(tmp_path / f"{i}.xml"), options=choose()) for i in range(4)]
    monkeypatch.setattr(runner, "check", die)
    with pytest.raises(deconv_ir.ResourceError, match="the system ended a process"):
        list(runner.check_all(jobs, processes=2))
