"""Lists of domains and names: flags, files, the store, updates, suggestions."""
