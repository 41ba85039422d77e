"""Problems: seeded sequences of simulated rounds. One problem a file; import them from `bench`."""
