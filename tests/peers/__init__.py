"""Comparisons with OpenVINO, onnxruntime and torch, run by `make test-peers`.

The peers come with the `peers` extra.  If OpenVINO cannot be imported the whole group is skipped,
with this reason; no test is skipped for another.  If a case meets a known fault of a peer (see
``faults.FAULTS``) the test follows the document, through the torch oracle of ``oracle.py``.
"""
