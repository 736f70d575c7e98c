"""
Count all pages of a site by their paths, and the site as a whole: an app of its own.

The middleware asks paths.py under which path a page is counted, and recording.py to count it.
"""
