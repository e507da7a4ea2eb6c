"""Delivery reports: what a mail says about the delivery of another one.

`message` reads a mail, `notices` reads bounces that are plain text, `outcome` judges what a server said.
"""
