"""Input that means harm, and conditions that do: see docs/reliability.md."""
