"""Lists of domains and names: their files, flags from them, suggestions, updates."""
