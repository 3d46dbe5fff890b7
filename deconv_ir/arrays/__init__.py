"""Arrays that users give and get: accepted, converted, matched with a model's inputs."""
