"""The package behind `scalemark report`: records in, one page and its plots out.

files -> machines -> collection -> sets (which the program compares) -> measured, verdict, notices, sections (with plots_*) -> page.
Nothing is computed here that a record already says; docs/report.md has the few rules that need more than a comparison.
"""
