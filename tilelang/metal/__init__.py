"""The Metal backend: target kind ``metal``."""
