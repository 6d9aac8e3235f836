"""More records out of those there are: copies with some tokens moved, left out, added or replaced.

`edits` are the changes, on tokens whose tags go with them (`labels`); `copies` makes records of
them; `synonyms` is a dictionary; `program` has the copies made by a program from outside.
"""
