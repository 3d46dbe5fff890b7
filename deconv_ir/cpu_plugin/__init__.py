"""Which layers OpenVINO's CPU plugin computes in integers."""
