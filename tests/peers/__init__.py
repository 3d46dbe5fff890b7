"""Comparisons with OpenVINO, onnxruntime and torch: run with `make test-peers`.

The peers come with the `peers` extra.  Where OpenVINO cannot be imported the
whole group is skipped, and says so; nothing in it is skipped for any other
reason.  Where a case meets a known fault of a peer (see ``faults.FAULTS``)
the test follows the document, through the torch oracle of ``oracle.py``.
"""
