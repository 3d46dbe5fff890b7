"""Targets: whether a release of OpenVINO reads and compiles a file; see docs/targets.md."""
