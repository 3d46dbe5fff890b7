"""Single operations, as tables of cases: how OpenVINO builds them, and with which inputs."""
