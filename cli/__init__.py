"""The command line ``ml``.

It knows the control plane by HTTP alone, and imports ``schemas`` alone. The rooms: ``verbs`` (one function for each
command), ``documents`` (YAML), ``assets`` (files of models), ``resources`` (changes), ``server`` (the local process),
``session`` (one run of a command) and ``terminal`` (options and output).
"""
