// Holds a precompiled header of the tests.
