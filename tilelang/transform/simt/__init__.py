"""Tile programs to thread programs: the passes that every GPU backend shares.

``expand`` turns element-wise tile ops into parallel nests, ``pipeline`` overlaps copies with
computation, ``inference`` decides which thread holds which element, ``lower`` writes the code of
one thread, ``barriers`` orders the threads, ``shared_memory`` and ``flatten`` place the tiles.
"""
