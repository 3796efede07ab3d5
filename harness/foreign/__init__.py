"""Runs made elsewhere: a directory (or file) of FlagGems output -> rows -> the campaign's own judging.

reading: bytes to text. tables, recorded: text to what it says. run: one run, whole. rounds: which runs stand against
which. comparing: caliber, cells, verdicts. printing: the text. No statistics of its own.
"""
