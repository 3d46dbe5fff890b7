"""The lint rules: a module for each family, a function for each rule."""
