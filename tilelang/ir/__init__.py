"""The tile IR: tile-op records, regions, spans and helpers over stock TVM nodes."""
