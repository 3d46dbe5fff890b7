"""oneDNN Graph files: JSON as ONEDNN_GRAPH_DUMP writes it and benchdnn reads it."""
