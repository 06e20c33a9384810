"""Replacing the names in a trace by pseudonyms, so that it can be shared.

:func:`roast_analyze.scrub.files.scrub` writes the scrubbed trace and proves that no word of the
trace is left in it. A text is replaced word by word: the same word always has the same
pseudonym, and everything between words stays. So what views read from a text, such as the
prefix of a key, the folders of a path or the port of an address, can still be read.
"""
