"""Building blocks of generated CPU code."""
