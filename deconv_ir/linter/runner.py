"""Check of many files: in order, with the cache, in several processes."""

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from deconv_ir.errors import ResourceError
from deconv_ir.findings import plain
from deconv_ir.formats.openvino_xml.weights import weights_beside
from deconv_ir.hints import Hint
from deconv_ir.limits import DEFAULT_LIMITS, Limits
from deconv_ir.linter.engine import FileResult, check_bytes, read_or_check
from deconv_ir.linter.options import CheckOptions

PARALLEL_FILES = 8
PARALLEL_BYTES = 4 << 20
"""Minimum number of files and bytes for which starting processes pays off."""


class FileCheck(NamedTuple):
    """One file to check."""

    file: str
    """Path of the .xml, also for messages."""
    options: CheckOptions
    weights: str | None = None
    """The .bin, if it is not next to the .xml."""
    cache: str | None = None
    """Folder of the cache; None: no cache."""
    limits: Limits = DEFAULT_LIMITS

    @property
    def weights_path(self) -> str:
        """The expected path of the .bin."""
        return self.weights or weights_beside(self.file)


def check(job: FileCheck) -> FileResult:
    """Check one file, or return the result of an earlier check of the same bytes."""
    data = read_or_check(job.file, job.options, job.limits)
    if isinstance(data, FileResult):
        return _light(data)
    weights = job.weights_path
    if job.cache is None:
        return _light(check_bytes(data, job.file, job.options, weights, job.limits))
    from deconv_ir.linter.cache import Cache

    cache = Cache(job.cache)
    key = cache.key(data, job.options, weights, job.limits)
    found = cache.load(key, job.file, weights)
    if found is None:
        result = check_bytes(data, job.file, job.options, weights, job.limits)
        cache.store(key, result, weights)
        found = _light(result)
    return found


def _light(result: FileResult) -> FileResult:
    """Remove large data that is only needed for fixes."""
    findings = [
        f._replace(
            expected=plain(f.expected),
            actual=plain(f.actual),
            fix=f.fix and f.fix._replace(edits=()),
        )
        for f in result.findings
    ]
    return result._replace(findings=findings, parsed=None)


def check_all(jobs: Sequence[FileCheck], processes: int | None = None) -> Iterator[FileResult]:
    """Check files, and yield the results in the order of the jobs.

    By default, one process per core is used, or only this process if there is little work.

    Raises
    ------
    ResourceError
        The system ended a process, for example because memory is short.
    """
    count = processes if processes is not None else _worthwhile(jobs)
    if count <= 1 or len(jobs) < 2:
        yield from map(check, jobs)
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    # Not fork: the library may be used in a process with threads.
    context = multiprocessing.get_context("forkserver" if os.name == "posix" else "spawn")
    with ProcessPoolExecutor(min(count, len(jobs)), mp_context=context) as pool:
        chunk = max(1, min(16, len(jobs) // (4 * count)))
        try:
            yield from pool.map(check, jobs, chunksize=chunk)
        except BrokenProcessPool:
            raise ResourceError(
                "the system ended a process that checked files; is memory short?",
                hint=Hint.FEWER_JOBS(),
                rule="memory",
            ) from None
        except BaseException:
            # After an interruption, jobs that have not begun are cancelled, not awaited.
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _worthwhile(jobs: Sequence[FileCheck]) -> int:
    if len(jobs) < PARALLEL_FILES:
        return 1
    total = 0
    for job in jobs:
        try:
            total += os.stat(job.file).st_size
        except OSError:
            continue
        if total >= PARALLEL_BYTES:
            return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    return 1
