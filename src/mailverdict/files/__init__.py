"""Tables larger than memory: readers, which `readers.py` opens, and writers (`writers.py`)."""
