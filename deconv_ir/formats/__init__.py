"""Files and graphs: reading and writing each format."""
