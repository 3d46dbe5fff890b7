"""Tables of cases for single operations: how OpenVINO builds them, and their inputs."""
