"""Threads, memory and processor: the state that the whole process shares."""
