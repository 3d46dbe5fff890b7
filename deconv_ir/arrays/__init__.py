"""Arrays of users: accepted, converted, and matched with a model's inputs."""
