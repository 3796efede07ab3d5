"""The commands of `caliber`, by subject; each module has a table of its own, `__main__` joins them."""
