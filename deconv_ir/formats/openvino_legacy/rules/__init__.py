"""The rules of old layers, one file for each family; each has a table `RULES`."""
