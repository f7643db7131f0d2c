"""A folder for ``sys.path``, so that ``import torch`` finds gradfn in new processes.

``gradfn run`` puts it there for the processes that a program starts by way of
multiprocessing: they are given its ``sys.path``, but not its import hooks.
"""
