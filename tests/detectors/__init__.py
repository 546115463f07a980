"""Each further rule: reached at default settings, quiet on its legitimate twin."""
