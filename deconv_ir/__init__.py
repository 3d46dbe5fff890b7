"""Loader, shape linter and executor for OpenVINO-style XML IR."""
