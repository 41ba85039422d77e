"""Agents behind HTTP: the log is the truth, the model is a cache.

    routes → service → replicas → log → database
                         └─ agent

A request is checked (`requests`), answered by a model that was built from the log (`replica`), and
acknowledged once it is in the log (`log`). Every process reads the log in its order, its own
entries included, so that all models are the same function of the same log.
"""
