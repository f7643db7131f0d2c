"""What ``import torch`` finds in a process that a program under gradfn has started.

It puts the import hook in place and steps aside.
"""

import sys

import gradfn
from gradfn import compat

del sys.modules[__name__]
compat.install()
sys.modules[__name__] = gradfn
