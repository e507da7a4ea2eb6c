"""Verification of frames on Dask and Spark: pure stages, the tasks that ask, and one driver for each engine.

`mailverdict.dask` and `mailverdict.spark` are the names that users import.
"""
