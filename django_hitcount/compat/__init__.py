"""
The names of django-hitcount, for templates and views of a site that used it.

It has its tags, views and URLs in modules of the same names. They record and read hits as all else
here does. docs/moving.rst has the names to use in the end.
"""
