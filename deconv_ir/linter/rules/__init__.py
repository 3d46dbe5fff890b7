"""The lint rules: a module for each family, with a tuple ``RULES``."""
