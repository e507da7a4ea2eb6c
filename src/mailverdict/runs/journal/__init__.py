"""The journal of a run: `journal` (the class), `sql` (schema and statements), `recall` (columns), `locks`."""
