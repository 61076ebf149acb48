"""What the control plane remembers. See ``protocol.Store`` for the verbs; ``database`` keeps them in SQL."""
