"""The journal of a run: `journal` (the class), `sql`, `recall` (columns), `locks`."""
