"""Tools outside of Python: where they are, and files for them."""
